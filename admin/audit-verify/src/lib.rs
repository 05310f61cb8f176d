//! Whether an audit trail is what was recorded: every hash is computed again, every link and number checked, and the end
//! compared with something that whoever cut it off could not change (decisions D25, D50).

mod broken;
pub mod checkpoint;
mod end;
pub mod file;
mod json;
mod lists;
mod online;
mod turns;
mod verdict;
mod walk;

pub use broken::Broken;
pub use end::{Known, Source};
pub use online::online;
pub use turns::{Busy, Turn, Turns};
pub use verdict::Verdict;
pub use walk::Walk;
