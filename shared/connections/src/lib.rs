//! What both listeners need of connections: from where a request comes ([`client_address`]), how many connections are open
//! in all and for each address ([`limit`]), and how many files the system lets a process open ([`open_files`]).

pub mod client_address;
pub mod limit;
pub mod open_files;
