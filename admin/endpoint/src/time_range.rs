//! The span of time of a query: `from` and `to`, the end exclusive.

use super::query::QueryParams;
use crate::problem::Problem;
use domain::timestamp::ms_from_iso;

/// A span of time as a query gives it, in ms since 1970; `None` where it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRange {
    /// The first moment.
    pub from_ms: Option<u64>,
    /// The moment after the last one.
    pub to_ms: Option<u64>,
}

impl TimeRange {
    /// Parses `from` and `to` (decision D56). A span of equal moments is valid, and empty.
    ///
    /// # Errors
    /// 400 names a timestamp that is malformed, and `from` if it is after `to`.
    pub fn from_query(query: &QueryParams) -> Result<Self, Problem> {
        let [from_ms, to_ms] = [time(query, "from")?, time(query, "to")?];
        require_order(["from", "to"], [from_ms, to_ms])?;
        Ok(Self { from_ms, to_ms })
    }
}

/// Refuses a span whose beginning is after its end. `names` are the parameters of beginning and end.
///
/// # Errors
/// 400 names both parameters.
pub fn require_order(names: [&str; 2], [first, end]: [Option<u64>; 2]) -> Result<(), Problem> {
    if first.zip(end).is_none_or(|(first, end)| first <= end) {
        return Ok(());
    }
    let [from, to] = names;
    Err(Problem::validation(format!("{from} must not be after {to}.")))
}

/// Parses a timestamp of a query, in milliseconds.
fn time(query: &QueryParams, name: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    ms_from_iso(text).map(Some).ok_or_else(|| {
        let hint = match text.contains(' ') {
            // A `+` that was not encoded.
            true => " A `+` in an address is written `%2B`.",
            false => "",
        };
        let message = format!("{name} must be an ISO 8601 timestamp such as 2027-01-31T00:00:00Z.{hint}");
        Problem::validation(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(pairs: &[(&str, &str)]) -> Result<TimeRange, String> {
        let query = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        TimeRange::from_query(&query.collect()).map_err(|problem| format!("{problem:?}"))
    }

    #[test]
    fn a_span_can_be_open_and_empty_but_not_reversed() {
        let (early, late) = ("2026-11-24T00:00:00.000Z", "2026-11-24T00:00:00.001Z");
        assert_eq!(range(&[]), Ok(TimeRange::default()));
        let at_ms = ms_from_iso(early);
        let open = range(&[("from", early)]).unwrap();
        assert_eq!((open.from_ms, open.to_ms), (at_ms, None));
        let open = range(&[("to", early)]).unwrap();
        assert_eq!((open.from_ms, open.to_ms), (None, at_ms));
        assert!(range(&[("from", early), ("to", late)]).is_ok());
        assert!(range(&[("from", late), ("to", late)]).is_ok(), "at the bound");
        let reversed = range(&[("from", late), ("to", early)]).unwrap_err();
        assert!(reversed.contains("from must not be after to."), "{reversed}");
    }

    #[test]
    fn a_malformed_timestamp_is_named() {
        for (name, bad, hint) in [
            ("from", "yesterday", ""),
            ("to", "2026", ""),
            ("from", "2026-11-24T00:00:00 01:00", "`%2B`"),
        ] {
            let problem = range(&[(name, bad)]).unwrap_err();
            assert!(problem.contains(name) && problem.contains(hint), "{problem}");
        }
    }
}
