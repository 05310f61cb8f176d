//! Building blocks of both servers' OpenAPI documents: JSON that preserves order, schemas by name, and derived
//! examples. The schemas themselves are derived from the serialised structs.

pub mod components;
pub mod example;
pub mod json;
pub mod parts;
pub mod types;

pub use components::Components;
pub use json::{Json, object};

/// The version of OpenAPI that the documents follow.
pub const VERSION: &str = "3.1.0";
