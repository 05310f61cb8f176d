//! The OpenAPI documents: that they match the code, are valid, and are accurate.
//!
//! * [`documents`]: the files in docs/reference/openapi match the code, follow OpenAPI 3.1, and every example follows
//!   its schema
//! * [`agreement`]: bodies and queries have exactly the documented fields, by the server's own errors
//! * [`fuzz`]: Schemathesis finds no 5xx and no undocumented answer
//! * [`pages`]: the documents and pages that the server serves
//! * [`fixture`]: a server with an account, and the operations of the document
#![cfg(test)]

mod agreement;
mod documents;
mod fixture;
mod fuzz;
mod pages;
