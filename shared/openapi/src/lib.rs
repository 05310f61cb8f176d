//! What both servers' OpenAPI documents are made of: JSON that keeps its order, schemas by name, and examples that follow
//! from them. The schemas themselves are derived from the structs that are serialised.

pub mod components;
pub mod example;
pub mod json;
pub mod types;

pub use components::Components;
pub use json::{Json, object};

/// The version of OpenAPI that the documents follow.
pub const VERSION: &str = "3.1.0";
