//! Owners of virtual keys.

pub mod known_key;
