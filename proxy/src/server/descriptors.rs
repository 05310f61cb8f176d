//! File descriptors: as many as the system allows, divided between callers, the provider and everything else.

/// What everything but callers and the provider needs: the store's connections, listeners, the journal, the operator's
/// connections, and connections that are closed because they are too many.
const SET_ASIDE: usize = 256;
/// What is left to callers however low the limit is.
const CALLERS_MIN: usize = 1;

/// How many connections there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// With callers.
    pub callers: usize,
    /// With the provider.
    pub provider: usize,
}

impl Descriptors {
    /// Divides `limit` descriptors, of which callers shall have `wanted`. Each of their calls can need one for the provider
    /// as well, so callers have no more than half of what is not set aside.
    #[must_use]
    pub fn divide(limit: usize, wanted: usize) -> Self {
        let free = limit.saturating_sub(SET_ASIDE);
        let callers = wanted.min(free / 2).max(CALLERS_MIN);
        Self {
            callers,
            provider: free.saturating_sub(callers).max(1),
        }
    }

    /// Says so when callers have fewer than `wanted`.
    pub fn warn_if_below(self, wanted: usize) {
        let callers = self.callers;
        if callers < wanted {
            tracing::warn!(
                wanted,
                callers,
                "proxy.max_connections is lowered: the system allows this process too few open files"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_never_take_what_their_calls_need() {
        let divided = |limit, wanted| {
            let Descriptors { callers, provider } = Descriptors::divide(limit, wanted);
            (callers, provider)
        };
        assert_eq!(divided(65_536, 20_000), (20_000, 45_280));
        assert_eq!(divided(1024, 20_000), (384, 384));
        assert_eq!(divided(1024, 100), (100, 668));
        assert_eq!(divided(256, 20_000), (1, 1));
        assert_eq!(divided(usize::MAX, 20_000).0, 20_000);
    }
}
