//! The mix of calls: which are to be denied, and which callers leave. Spread evenly, and exact in the sum.

use super::kind::RequestKind;

/// Parts per million of a share, so that the number of calls of a kind is exact.
pub const WHOLE: u64 = 1_000_000;

/// Returns whether approved call `number` (starting at 0) is one of the `share` whose callers leave: spread evenly, and
/// exact in the sum.
pub fn is_left(number: u64, share: u64) -> bool {
    denied_before(number.saturating_add(1), share) > denied_before(number, share)
}

/// Returns how many of the first `calls` calls should be denied: spread evenly, and exact in the sum.
pub fn denied_before(calls: u64, share: u64) -> u64 {
    let denied = u128::from(calls) * u128::from(share) / u128::from(WHOLE);
    u64::try_from(denied).unwrap_or(u64::MAX)
}

/// Returns the kind of call `number` (starting at 0), with kinds of denials in rotation, and its number among the calls
/// of that kind (starting at 0), so that the keys of a kind are also used in rotation.
pub fn kind_of(number: u64, share: u64, denials: &[RequestKind]) -> (RequestKind, u64) {
    let (before, after) = (
        denied_before(number, share),
        denied_before(number.saturating_add(1), share),
    );
    let kinds = denials.len() as u64;
    if after == before || kinds == 0 {
        return (
            RequestKind::Approved,
            if kinds == 0 { number } else { number - before },
        );
    }
    let turn = usize::try_from(before % kinds).unwrap_or(0);
    (denials[turn], before / kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_spread_and_exact() {
        let kinds = [RequestKind::Frozen, RequestKind::Revoked];
        for (kind, count) in [
            (RequestKind::Approved, 900),
            (RequestKind::Frozen, 50),
            (RequestKind::Revoked, 50),
        ] {
            let calls = (0..1000).map(|number| kind_of(number, WHOLE / 10, &kinds));
            let turns: Vec<u64> = calls.filter(|call| call.0 == kind).map(|call| call.1).collect();
            assert_eq!(turns, Vec::from_iter(0..count), "{kind:?}");
        }
        assert_eq!(kind_of(5, WHOLE, &[]), (RequestKind::Approved, 5));
        assert!((0..10).all(|number| kind_of(number, 0, &kinds) == (RequestKind::Approved, number)));
    }
}
