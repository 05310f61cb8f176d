//! The OpenAPI documents: that they are those of the code, valid, and true.
//!
//! * [`documents`]: the files in docs/openapi are what the code says, follow OpenAPI 3.1, and every example is one of its schema
#![cfg(test)]

mod documents;
