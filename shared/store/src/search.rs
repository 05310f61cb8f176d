//! Searches ascending values in the store with a few probes per round trip: a million take five.

/// Probes per step.
const PROBES: u64 = 15;

/// Search for the first late one among ascending values: all after it are late too.
#[derive(Debug)]
pub(super) struct Search {
    low: u64,
    high: u64,
}

impl Search {
    /// Creates a search of the positions from `low` to before `high`.
    pub(super) const fn between(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// Returns the next positions to probe; `None` when the search is over.
    pub(super) fn positions(&self) -> Option<Vec<u64>> {
        (self.low < self.high).then(|| probes(self.low, self.high))
    }

    /// Records which of `positions` are late.
    pub(super) fn record(&mut self, positions: &[u64], late: impl IntoIterator<Item = bool>) {
        match late.into_iter().position(|late| late) {
            None => self.low = positions.last().map_or(self.high, |position| position + 1),
            Some(probe) => {
                self.high = positions[probe];
                self.low = probe
                    .checked_sub(1)
                    .map_or(self.low, |before| positions[before] + 1);
            }
        }
    }

    /// Returns the first late position, or the one after the last.
    pub(super) const fn found(&self) -> u64 {
        self.low
    }
}

/// Returns up to [`PROBES`] ascending positions from `low` to before `high`, which divide it into parts of about equal
/// size.
fn probes(low: u64, high: u64) -> Vec<u64> {
    let length = high - low;
    let count = PROBES.min(length);
    (1..=count).map(|at| low + length * at / (count + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_ascend_within_their_range() {
        for (low, high) in [(0, 1), (0, 2), (5, 20), (7, 23), (0, 1_000_000), (9, 9 + PROBES)] {
            let positions = probes(low, high);
            assert!(!positions.is_empty());
            assert!(
                positions.windows(2).all(|pair| pair[0] < pair[1]),
                "{positions:?}"
            );
            assert!(
                positions.iter().all(|position| (low..high).contains(position)),
                "{low}..{high}: {positions:?}"
            );
        }
    }

    #[test]
    fn every_first_place_is_found() {
        for high in [0, 1, 2, 15, 16, 17, 300] {
            for first in 0..=high {
                let mut search = Search::between(0, high);
                while let Some(positions) = search.positions() {
                    search.record(&positions, positions.iter().map(|position| *position >= first));
                }
                assert_eq!(search.found(), first);
            }
        }
    }
}
