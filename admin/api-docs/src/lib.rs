//! The OpenAPI document and the reference pages, generated from the route table.
//!
//! [`table`] collects the rows that the resources declare, [`openapi`](mod@openapi) makes the document of them and of
//! what stands beside each function, [`reference`](mod@reference) renders it for people. Uses `api`, `people` and
//! `endpoint`; pages are sent as those of the dashboard.

pub mod openapi;
pub mod reference;
pub mod table;
