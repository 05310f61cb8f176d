//! Connections of both listeners: the address of a request's client ([`client_address`]), rules on a request's head
//! ([`request_head`]), limits on open connections in total and per address ([`limit`]), turns of requests that
//! arrive together ([`bursts`]), the limit of open files ([`open_files`]), and returning memory after use
//! ([`allocator`]).

pub mod allocator;
pub mod bursts;
pub mod client_address;
pub mod limit;
pub mod open_files;
pub mod request_head;
