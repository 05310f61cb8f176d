//! A plot of horizontal bars, each of one part or several behind each other.

use super::scale::{Kind, Scale, shown};
use super::svg::{Anchor, Svg, WIDTH};

/// Where the bars begin; left of it are their names.
const LEFT: f64 = 250.0;
/// Where they end; right of it is room for the value of the longest.
const RIGHT: f64 = WIDTH - 96.0;
/// Where the first one is.
const TOP: f64 = 64.0;
/// From one bar to the next.
const PITCH: f64 = 28.0;
/// Of a bar.
const THICKNESS: f64 = 18.0;

#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    /// The axis, with its unit.
    pub(crate) axis: &'static str,
    /// What the parts of a bar are.
    pub(crate) parts: Vec<&'static str>,
    /// Names and parts.
    pub(crate) bars: Vec<(String, Vec<f64>)>,
}

impl Bars {
    /// The plot.
    pub(crate) fn draw(&self) -> String {
        let bottom = (self.bars.len() as f64).mul_add(PITCH, TOP);
        let sums = self.bars.iter().map(|(_, parts)| parts.iter().sum());
        let scale = Scale::from_values(Kind::Linear, sums, LEFT, RIGHT);
        let mut svg = Svg::new(&self.title, bottom + 48.0);
        self.legend(&mut svg);
        for tick in scale.ticks() {
            let at = scale.at(tick);
            svg.line((at, TOP - 6.0), (at, bottom), "grid");
            svg.text(at, bottom + 18.0, &shown(tick), "soft", Anchor::Middle);
        }
        svg.text(
            f64::midpoint(LEFT, RIGHT),
            bottom + 38.0,
            self.axis,
            "soft",
            Anchor::Middle,
        );
        for (number, (name, parts)) in self.bars.iter().enumerate() {
            let top = (number as f64).mul_add(PITCH, TOP);
            svg.text(LEFT - 10.0, top + 13.5, name, "", Anchor::End);
            let mut sum = 0.0;
            for (part, value) in parts.iter().enumerate() {
                let from = scale.at(sum);
                sum += value;
                svg.bar((from, top), (scale.at(sum) - from).max(0.0), THICKNESS, part);
            }
            let text = parts.iter().filter(|value| **value > 0.0);
            let text: Vec<String> = text.map(|value| format!("{value:.1}")).collect();
            svg.text(
                scale.at(sum) + 6.0,
                top + 13.5,
                &text.join(" + "),
                "soft",
                Anchor::Start,
            );
        }
        svg.finish()
    }

    fn legend(&self, svg: &mut Svg) {
        if self.parts.len() < 2 {
            return;
        }
        for (number, part) in self.parts.iter().enumerate() {
            let at = (number as f64).mul_add(150.0, LEFT);
            svg.bar((at, 36.0), 12.0, 12.0, number);
            svg.text(at + 18.0, 46.5, part, "soft", Anchor::Start);
        }
    }
}
