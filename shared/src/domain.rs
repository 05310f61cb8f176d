//! Nouns and rules, without I/O: what an amount, a key, a plan, a denial and a decision are.

pub mod amount;
pub mod blocked;
pub mod budget;
pub mod cap;
pub mod chain;
pub mod check;
pub mod checkpoint;
pub mod denial;
pub mod denial_window;
pub mod email;
pub mod entry;
pub mod event;
pub mod id;
pub mod intent;
pub mod mode;
pub mod money;
pub mod names;
pub mod number;
pub mod period;
pub mod permission;
pub mod plan;
pub mod price;
pub mod rate;
pub mod role;
pub mod spend_cap;
pub mod statistics;
