//! The limits of a policy whose thresholds are watched.

use domain::money::Nanos;

/// The limits of a policy whose thresholds are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchedLimits {
    /// True if Cap is enabled: a policy that denies everything has no thresholds.
    pub is_enabled: bool,
    /// `maxSpendPerDay`
    pub day: Option<Nanos>,
    /// `maxSpendPerMonth`
    pub month: Option<Nanos>,
}

impl WatchedLimits {
    /// Parses a policy's fields as scripts write them; `None` if they are malformed.
    pub(crate) fn from_fields(cap: &str, day: Option<String>, month: Option<String>) -> Option<Self> {
        let limit = |text: Option<String>| match text.filter(|text| !text.is_empty()) {
            None => Some(None),
            Some(text) => text.parse().ok().map(|nanos| Some(Nanos::from_stored(nanos))),
        };
        Some(Self {
            is_enabled: cap == "1",
            day: limit(day)?,
            month: limit(month)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_scripts_write_them() {
        let text = |text: &str| Some(text.to_owned());
        let limits = WatchedLimits::from_fields("1", text("5"), text("")).unwrap();
        assert_eq!(
            (limits.is_enabled, limits.day, limits.month),
            (true, Some(Nanos::from_stored(5)), None)
        );
        assert!(!WatchedLimits::from_fields("0", None, None).unwrap().is_enabled);
        assert_eq!(WatchedLimits::from_fields("1", text("x"), None), None);
    }
}
