//! Connections of both listeners: the address of a request's client ([`client_address`]), what a request's head must be
//! ([`request_head`]), the bound on open connections in all and for each address ([`limit`]), the limit of open files
//! ([`open_files`]), and giving back the memory that they took ([`allocator`]).

pub mod allocator;
pub mod client_address;
pub mod limit;
pub mod open_files;
pub mod request_head;
