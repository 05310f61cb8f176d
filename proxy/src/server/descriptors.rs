//! File descriptors: the system's limit, divided between callers, the provider and everything else.

use connections::open_files::of_one_address;

/// Descriptors reserved for everything else: connections to the store, listeners, the journal, the operator's
/// connections ([`crate::ops::CONNECTIONS_MAX`]), and connections of either listener that are being closed
/// ([`connections::limit::CLOSING_MAX`] of each).
const RESERVED: usize = 256;
/// Minimum of callers' connections, regardless of the system's limit.
const CALLERS_MIN: usize = 1;

/// Configured limits of callers' connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured {
    /// `proxy.max_connections`
    pub callers: usize,
    /// `proxy.max_connections_per_address`
    pub of_address: usize,
}

/// Limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Callers' connections.
    pub callers: usize,
    /// Callers' connections from one address.
    pub of_address: usize,
    /// Connections to the provider.
    pub provider: usize,
}

impl Descriptors {
    /// Divides `limit` descriptors. Each call may also need one for the provider, so callers get at most half of the
    /// unreserved ones.
    pub fn divide(limit: usize, configured: Configured) -> Self {
        let free = limit.saturating_sub(RESERVED);
        let callers = configured.callers.min(free / 2).max(CALLERS_MIN);
        Self {
            callers,
            of_address: of_one_address(configured.of_address, configured.callers, callers),
            provider: free.saturating_sub(callers).max(1),
        }
    }

    /// Logs limits that are lower than configured.
    pub fn warn_if_below(self, configured: Configured) {
        let Self {
            callers, of_address, ..
        } = self;
        if callers < configured.callers {
            tracing::warn!(
                wanted = configured.callers,
                callers,
                "proxy.max_connections is lowered: the system allows this process too few open files"
            );
        }
        if of_address < configured.of_address {
            tracing::warn!(
                wanted = configured.of_address,
                of_address,
                "proxy.max_connections_per_address is lowered to a quarter of the possible connections"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_leave_descriptors_for_their_calls() {
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
    fn one_address_never_gets_all_connections() {
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
