//! Parts that the four benchmarks share.

pub mod facts;
pub mod lines;
pub mod output;
pub mod published;
