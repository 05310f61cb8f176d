//! The OpenAPI documents: that they match the code, are valid, and are accurate.
//!
//! * [`documents`]: the files in docs/reference/openapi follow OpenAPI 3.1, every example follows its schema, and that
//!   of the management API matches the code (that of the edge: a test of `proxy`)
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
