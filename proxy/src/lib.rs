//! placeholder

pub mod call;
