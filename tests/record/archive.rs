//! The archive: moved entries, reads across store and archive, and failures on the way.
//!
//! * [`fixture`]: an account with audit lines as scripts write them
//! * [`model`]: every filter and page before and after archiving; decisions; undelivered webhooks
//! * [`race`]: archivers and sealers at once
//! * [`damage`]: segments and manifests that are changed, missing, or cannot be written
//! * [`crash`]: servers and the store killed while they archive, under traffic
//! * [`bucket`]: an S3-compatible service
//! * [`remaining_data`]: what stays in the store of archived entries, and counts as the account's

mod bucket;
mod crash;
mod damage;
mod fixture;
mod model;
mod race;
mod remaining_data;
