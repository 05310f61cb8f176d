//! This process's limit of open files, and the per-address limit if that limit is low.

/// Divisor for the share of one address if the total is lowered.
pub(crate) const ADDRESS_PARTS: usize = 4;

/// Returns the per-address limit. `wanted` and `wanted_in_all` are configured, `in_all` is the total that the system
/// allows. Returns `wanted` unless the total is lowered; then at most a quarter of it, and at least one. Otherwise one
/// address could take all connections.
pub fn of_one_address(wanted: usize, wanted_in_all: usize, in_all: usize) -> usize {
    if in_all >= wanted_in_all {
        return wanted;
    }
    wanted.min((in_all / ADDRESS_PARTS).max(1))
}

/// Raises the limit to the system's maximum for this process and returns it.
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
