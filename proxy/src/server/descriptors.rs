//! File descriptors: as many as the system allows, divided between callers, the provider and everything else.

use connections::open_files::of_one_address;

/// What everything but callers and the provider needs: the store's connections, listeners, the journal, the operator's
/// connections, and connections that are closed because they are too many.
const SET_ASIDE: usize = 256;
/// What is left to callers however low the limit is.
const CALLERS_MIN: usize = 1;

/// Connections with callers, as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured {
    /// `proxy.max_connections`
    pub callers: usize,
    /// `proxy.max_connections_per_address`
    pub of_address: usize,
}

/// How many connections there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// With callers.
    pub callers: usize,
    /// Of them, with callers of one address.
    pub of_address: usize,
    /// With the provider.
    pub provider: usize,
}

impl Descriptors {
    /// Divides `limit` descriptors, of which callers shall have `wanted`. Each of their calls can need one for the provider
    /// as well, so callers have no more than half of what is not set aside.
    #[must_use]
    pub fn divide(limit: usize, wanted: Configured) -> Self {
        let free = limit.saturating_sub(SET_ASIDE);
        let callers = wanted.callers.min(free / 2).max(CALLERS_MIN);
        Self {
            callers,
            of_address: of_one_address(wanted.of_address, wanted.callers, callers),
            provider: free.saturating_sub(callers).max(1),
        }
    }

    /// Says so when callers have fewer than `wanted`.
    pub fn warn_if_below(self, wanted: Configured) {
        let Self {
            callers, of_address, ..
        } = self;
        if callers < wanted.callers {
            tracing::warn!(
                wanted = wanted.callers,
                callers,
                "proxy.max_connections is lowered: the system allows this process too few open files"
            );
        }
        if of_address < wanted.of_address {
            tracing::warn!(
                wanted = wanted.of_address,
                of_address,
                "proxy.max_connections_per_address is lowered to a quarter of all that there can be"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_never_take_what_their_calls_need() {
        let divided = |limit, callers| {
            let of_address = 2000;
            let found = Descriptors::divide(limit, Configured { callers, of_address });
            (found.callers, found.provider)
        };
        assert_eq!(divided(65_536, 20_000), (20_000, 45_280));
        assert_eq!(divided(1024, 20_000), (384, 384));
        assert_eq!(divided(1024, 100), (100, 668));
        assert_eq!(divided(256, 20_000), (1, 1));
        assert_eq!(divided(usize::MAX, 20_000).0, 20_000);
    }

    #[test]
    fn one_address_never_takes_all_that_few_open_files_leave() {
        let of_address = |limit, callers, of_address| {
            Descriptors::divide(limit, Configured { callers, of_address }).of_address
        };
        assert_eq!(of_address(65_536, 20_000, 2000), 2000);
        assert_eq!(of_address(65_536, 100, 100), 100, "nothing is lowered");
        assert_eq!(of_address(1024, 20_000, 2000), 96);
        assert_eq!(of_address(1024, 20_000, 95), 95);
        assert_eq!(of_address(256, 20_000, 2000), 1);
    }
}
