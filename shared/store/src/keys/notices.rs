//! The key names of notices.

use super::AccountKeys;
use domain::mode::Mode;

impl AccountKeys {
    /// Thresholds that were reached in a period, `d<day>` or `m<month>` (hash of `<limit> <percent> <agent or *>` to
    /// when it was noticed): see [`crate::threshold::notice`].
    pub fn notices(&self, mode: Mode, period: &str) -> String {
        self.key(&["/", mode.as_str(), "/notices/", period])
    }
}
