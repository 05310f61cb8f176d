//! The search for the highest rate that is still good.

/// Factor between two neighbouring rates of the grid.
const STEP: f64 = 1.05;
/// The lowest rate of the grid, in requests a second.
const LOWEST: f64 = 100.0;
/// The last place of the grid: 1.7 million requests a second.
const LAST: usize = 200;

/// The rate at a place of the grid, in whole requests a second.
pub(crate) fn rate(place: usize) -> f64 {
    let exponent = i32::try_from(place.min(LAST)).unwrap_or_default();
    (LOWEST * STEP.powi(exponent)).round()
}

/// Returns the place of the highest rate that is at most `wanted`; the first place if all rates are above it.
pub(crate) fn place(wanted: f64) -> usize {
    (0..=LAST).rev().find(|place| rate(*place) <= wanted).unwrap_or(0)
}

/// Returns the highest good place of `low..=high`, or `None` if `low` is bad. All places below a good one must be good.
/// Calls `is_good` about log₂ of their number times.
pub(crate) fn highest<E>(
    low: usize,
    high: usize,
    mut is_good: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let (mut good, mut bad) = (None, high.saturating_add(1));
    let mut next = low;
    while next < bad {
        if is_good(next)? {
            good = Some(next);
        } else if good.is_none() {
            return Ok(None);
        } else {
            bad = next;
        }
        // Between the two, and above the good one.
        let from = good.unwrap_or(low);
        if bad - from <= 1 {
            break;
        }
        next = from + (bad - from) / 2;
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_good_place_is_found_with_few_questions() {
        for low in [0, 3, 20] {
            for limit in 0..70 {
                let mut count = 0;
                let found = highest(low, 60, |place| {
                    count += 1;
                    assert!((low..=60).contains(&place), "{place}");
                    Ok::<_, ()>(place < limit)
                });
                let expected = (limit > low).then(|| limit.min(61) - 1);
                assert_eq!(found, Ok(expected), "from {low}, good below {limit}");
                assert!(count <= 8, "{count} questions");
            }
        }
        assert_eq!(
            highest(5, 4, |_| Err::<bool, _>("asked")),
            Ok(None),
            "nothing to ask"
        );
        assert_eq!(highest(0, 4, |_| Err("broken")), Err("broken"));
    }

    #[test]
    fn rates_and_places_of_the_grid_agree() {
        for at in 0..=LAST {
            assert_eq!(place(rate(at)), at);
        }
        assert_eq!(place(0.0), 0);
        assert_eq!(place(f64::NAN), 0);
        assert_eq!(place(f64::INFINITY), LAST);
        assert_eq!(rate(usize::MAX), rate(LAST));
    }
}
