//! The OpenAPI document and the reference pages, generated from the route table.
//!
//! [`table`] collects the rows that the resources declare, [`openapi`](mod@openapi) generates the document from them
//! and from the [`Doc`](endpoint::doc::Doc) of each function, [`reference`](mod@reference) renders it for people. Uses
//! `api`, `people` and `endpoint`; pages are sent like those of the dashboard.

pub mod openapi;
pub mod reference;
pub mod table;
