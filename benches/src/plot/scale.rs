//! Mapping of values to positions on an axis.

/// Kind of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Equal differences are equal distances; the axis begins at 0.
    Linear,
    /// Equal factors are equal distances. Only for values above 0.
    Log,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// Approximate number of steps of a linear axis.
const STEPS: f64 = 5.0;
/// Smallest value of a logarithmic axis.
const SMALLEST: f64 = 1e-6;
/// Most ticks of an axis.
const TICKS_MAX: usize = 64;

/// Returns the smallest step of 1, 2 or 5 times a power of ten that is at least `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|step| step * power >= rough * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

impl Scale {
    /// Returns an axis for these values, between the positions `from` and `to`. Values that are not finite are left
    /// out.
    pub(crate) fn from_values(kind: Kind, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let usable = values.filter(|value| value.is_finite() && (kind == Kind::Linear || *value >= SMALLEST));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = match kind {
            _ if high < low => (if kind == Kind::Linear { 0.0 } else { 1.0 }, 10.0),
            Kind::Linear => {
                let step = round_step((high / STEPS).max(SMALLEST));
                (0.0, (high / step).ceil().max(1.0) * step)
            }
            Kind::Log => {
                let low = 10_f64.powf(low.log10().floor());
                (low, 10_f64.powf(high.log10().ceil()).max(low * 10.0))
            }
        };
        Self {
            kind,
            low,
            high,
            from,
            to,
        }
    }

    /// An axis that begins with the smallest value and ends with the largest.
    pub(crate) fn tight(kind: Kind, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let wide = Self::from_values(kind, values.iter().copied(), from, to);
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(*value), high.max(*value))
            });
        let is_usable = low < high && (kind == Kind::Linear || low >= SMALLEST);
        if is_usable {
            Self { low, high, ..wide }
        } else {
            wide
        }
    }

    /// Returns the position of a value; a value beyond the axis is clamped to its end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let part = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => (value.max(SMALLEST) / self.low).ln() / (self.high / self.low).ln(),
        };
        let part = if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) };
        part.mul_add(self.to - self.from, self.from)
    }

    /// Returns the values of the ticks.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let step = round_step((self.high / STEPS).max(SMALLEST));
                (0..TICKS_MAX)
                    .map(|number| number as f64 * step)
                    .take_while(|tick| *tick <= self.high * (1.0 + 1e-9))
                    .collect()
            }
            Kind::Log => std::iter::successors(Some(self.low), |tick| Some(tick * 10.0))
                .take_while(|tick| *tick <= self.high * (1.0 + 1e-9))
                .take(TICKS_MAX)
                .collect(),
        }
    }
}

/// Formats a value for an axis: `25k`, `0.1`, `4M`.
pub(crate) fn shown(value: f64) -> String {
    let short = |value: f64| {
        let text = format!("{value:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        text.to_owned()
    };
    match value.abs() {
        1e6.. => format!("{}M", short(value / 1e6)),
        1e3.. => format!("{}k", short(value / 1e3)),
        0.01.. => short(value),
        _ if value == 0.0 => "0".to_owned(),
        _ => format!("{value:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_begins_at_nothing_and_ends_above_the_largest() {
        let scale = Scale::from_values(Kind::Linear, [3.0, 37.7].into_iter(), 100.0, 200.0);
        assert_eq!(scale.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(
            (scale.at(0.0), scale.at(20.0), scale.at(99.0)),
            (100.0, 150.0, 200.0)
        );
    }

    #[test]
    fn a_logarithmic_axis_has_whole_powers_of_ten() {
        let scale = Scale::from_values(Kind::Log, [0.2, 0.0, 30.0].into_iter(), 300.0, 0.0);
        let ticks: Vec<f64> = scale
            .ticks()
            .iter()
            .map(|tick| (tick * 10.0).round() / 10.0)
            .collect();
        assert_eq!(ticks, [0.1, 1.0, 10.0, 100.0]);
        assert!((scale.at(1.0) - 200.0).abs() < 1e-6 && scale.at(-5.0) == 300.0);
    }

    #[test]
    fn a_tight_axis_has_the_values_at_its_ends() {
        let scale = Scale::tight(Kind::Log, [4.0, 1.0, 16.0].into_iter(), 0.0, 100.0);
        let places = [1.0, 4.0, 16.0].map(|value| scale.at(value).round());
        assert_eq!(places, [0.0, 50.0, 100.0]);
        let one = Scale::tight(Kind::Linear, [7.0].into_iter(), 0.0, 100.0);
        assert_eq!(one.at(0.0), 0.0, "one value makes no axis of its own");
    }

    #[test]
    fn odd_values_make_an_axis_all_the_same() {
        for kind in [Kind::Linear, Kind::Log] {
            for values in [
                vec![],
                vec![f64::NAN],
                vec![f64::INFINITY],
                vec![0.0],
                vec![-3.0],
                vec![1e300],
            ] {
                let scale = Scale::from_values(kind, values.iter().copied(), 0.0, 100.0);
                assert!(
                    (1..=TICKS_MAX).contains(&scale.ticks().len()),
                    "{kind:?} {values:?}"
                );
                for value in [f64::NAN, 0.0, -1.0, 1.0, 1e300] {
                    assert!(
                        (0.0..=100.0).contains(&scale.at(value)),
                        "{kind:?} {values:?} {value}"
                    );
                }
            }
        }
    }

    #[test]
    fn values_are_written_shortly() {
        let texts = [0.0, 0.1, 2.5, 250.0, 25_000.0, 4e6, 0.0001].map(shown);
        assert_eq!(texts, ["0", "0.1", "2.5", "250", "25k", "4M", "1e-4"]);
    }
}
