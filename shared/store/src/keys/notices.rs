//! The key names of notices.

use super::Realm;

keys! {
    Realm:
    /// Thresholds that were reached in a period, `d<day>` or `m<month>` (hash of `<limit> <percent> <agent or *>` to
    /// the time of the notice): see [`crate::threshold::notice`].
    pub notices(period: &str) = "/notices/", period;
}
