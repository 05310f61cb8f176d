//! One call through the gate, from its body to its settlement.

pub mod body;
