//! Spans of lists whose times do not ascend, against a scan.

use super::*;

/// Times in a list, as servers of different clocks wrote them.
struct Listed(Vec<u64>);

impl Times for Listed {
    async fn at(&self, positions: &[u64]) -> Result<Vec<u64>, StoreError> {
        let at = |position: &u64| {
            usize::try_from(*position)
                .ok()
                .and_then(|position| self.0.get(position))
        };
        Ok(positions
            .iter()
            .map(|position| at(position).copied().unwrap_or(u64::MAX))
            .collect())
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn scan(times: &[u64], from_ms: Option<u64>, to_ms: Option<u64>) -> Vec<u64> {
    let rows = (0..).zip(times);
    let fits =
        rows.filter(|(_, at)| from_ms.is_none_or(|from| **at >= from) && to_ms.is_none_or(|to| **at < to));
    fits.map(|(position, _)| position).collect()
}

/// As [`TimeSpan::find`] finds them, all read by rank.
async fn found(times: &Listed, from_ms: Option<u64>, to_ms: Option<u64>, spread_ms: u64) -> Vec<u64> {
    let length = times.0.len() as u64;
    let span = TimeSpan::find(times, 0..length, (from_ms, to_ms), spread_ms)
        .await
        .unwrap();
    let rows = span.positions(0, span.len());
    for position in (0..length + 1).step_by(if length > CHUNK { 7 } else { 1 }) {
        let before = rows.iter().filter(|row| **row < position).count() as u64;
        assert_eq!(span.count_before(position), before, "{span:?} {position}");
        assert_eq!(
            span.contains(position),
            rows.contains(&position),
            "{span:?} {position}"
        );
    }
    if let Some((first, end)) = span.borders() {
        assert!(rows.iter().all(|row| (first..end).contains(row)), "{span:?}");
    }
    rows
}

#[tokio::test]
async fn every_row_is_found_by_its_own_time_while_no_clock_is_off_by_more_than_allowed() {
    const OFF_MS: u64 = 40;
    let mut random = Random(7);
    for round in 0..100 {
        let length = match round % 4 {
            0 => CHUNK + random.below(300),
            1 => 1 + random.below(300),
            _ => 1 + random.below(12),
        };
        let mut now_ms = 10_000;
        let mut times = Vec::new();
        for _ in 0..length {
            now_ms += random.below(12);
            times.push(now_ms - OFF_MS + random.below(2 * OFF_MS + 1));
        }
        let times = Listed(times);
        for _ in 0..12 {
            let mut end = || match random.below(5) {
                0 => None,
                _ => Some(9_900 + random.below(now_ms + 200 - 9_900)),
            };
            let (from_ms, to_ms) = (end(), end());
            let rows = found(&times, from_ms, to_ms, 2 * OFF_MS).await;
            assert_eq!(
                rows,
                scan(&times.0, from_ms, to_ms),
                "{from_ms:?} {to_ms:?} {:?}",
                times.0
            );
        }
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_hides_nothing() {
    // Thirty rows, the clock goes back by 280 s, thirty more.
    let times: Vec<u64> = (0..30)
        .map(|n| 1_000_000 + n)
        .chain((0..30).map(|n| 720_000 + n))
        .collect();
    let times = Listed(times);
    let spread_ms = 600_000;
    assert_eq!(
        found(&times, None, Some(900_000), spread_ms).await,
        (30..60).collect::<Vec<_>>()
    );
    assert_eq!(
        found(&times, Some(900_000), None, spread_ms).await,
        (0..30).collect::<Vec<_>>()
    );
    // And so in a list that is not read as a whole.
    let rows = [(100_000, CHUNK), (1_000_000, 200), (720_000, 200)];
    let times = rows.iter().flat_map(|(first, count)| *first..*first + *count);
    let times = Listed(times.collect());
    for at in [720_100, 1_000_100] {
        let rows = found(&times, Some(at), None, spread_ms).await;
        assert_eq!(rows, scan(&times.0, Some(at), None));
        let rows = found(&times, None, Some(at), spread_ms).await;
        assert_eq!(rows, scan(&times.0, None, Some(at)));
    }
}

#[tokio::test]
async fn a_border_has_its_bound_and_sorted_rows_are_found_beyond_it() {
    let times = Listed((0..4 * BORDER_MAX).collect());
    let length = times.0.len() as u64;
    let at = Some(2 * BORDER_MAX);
    let near = border(&times, &(0..length), 2 * BORDER_MAX, u64::MAX)
        .await
        .unwrap();
    assert_eq!(near.end - near.start, BORDER_MAX);
    let span = TimeSpan::find(&times, 0..length, (at, at.map(|at| at + 1)), u64::MAX)
        .await
        .unwrap();
    assert_eq!(span.positions(0, span.len()), [2 * BORDER_MAX]);
}
