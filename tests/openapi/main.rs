//! The OpenAPI documents: that they are those of the code, valid, and true.
//!
//! * [`documents`]: the files in docs/reference/openapi are what the code says, follow OpenAPI 3.1, and every example
//!   is one of its schema
//! * [`agreement`]: bodies and queries have exactly what is documented, as the server itself says
//! * [`fuzz`]: Schemathesis finds no 5xx and no answer that is not documented
//! * [`pages`]: what the server serves of all this
//! * [`world`]: a server with an account, and the operations of the document
#![cfg(test)]

mod agreement;
mod documents;
mod fuzz;
mod pages;
mod world;
