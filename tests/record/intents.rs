//! Archived intents: moved records, reads across store and archive, and failures on the way.
//!
//! * [`fixture`]: an account with spends and escrows
//! * [`cursors`]: going through lists by cursor meanwhile
//! * [`moves`]: every list, page, document and export before and after; what has to stay; keys used again
//! * [`failures`]: archivers that race or are cut off, and segments that are damaged

mod cursors;
mod failures;
mod fixture;
mod moves;
