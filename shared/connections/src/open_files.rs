//! The limit of open files of this process, and what is left to one address where it is low.

/// Of all connections that a low limit leaves, one address has one part.
pub const ADDRESS_PARTS: usize = 4;

/// Connections that one address may have, where `wanted` of `wanted_in_all` are configured and the system leaves `in_all`:
/// as configured, unless `in_all` is lowered; then no more than a quarter of it, and at least one. Else one address could
/// take all that is left.
#[must_use]
pub fn of_one_address(wanted: usize, wanted_in_all: usize, in_all: usize) -> usize {
    if in_all >= wanted_in_all {
        return wanted;
    }
    wanted.min((in_all / ADDRESS_PARTS).max(1))
}

/// Raises it to what the system allows this process, and returns it.
pub fn raise() -> usize {
    let limit = rlimit::increase_nofile_limit(u64::MAX).or_else(|error| {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        rlimit::Resource::NOFILE.get_soft()
    });
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_more_than_a_quarter_of_what_a_low_limit_leaves() {
        for (wanted, wanted_in_all, in_all, given) in [
            (2000, 20_000, 20_000, 2000),
            (20_000, 20_000, 20_000, 20_000),
            (2000, 20_000, 19_999, 2000),
            (2000, 20_000, 8000, 2000),
            (2000, 20_000, 7999, 1999),
            (2000, 20_000, 384, 96),
            (10, 20_000, 384, 10),
            (2000, 20_000, 4, 1),
            (2000, 20_000, 3, 1),
            (2000, 20_000, 1, 1),
        ] {
            let found = of_one_address(wanted, wanted_in_all, in_all);
            assert_eq!(
                found, given,
                "{wanted} of {wanted_in_all}, of which there are {in_all}"
            );
        }
    }
}
