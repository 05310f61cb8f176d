//! A plot of horizontal bars, each stacked from one part or several.

use super::scale::{Kind, Scale, shown};
use super::svg::{Anchor, Svg, WIDTH};

/// Left end of the bars; their names are left of it.
const LEFT: f64 = 250.0;
/// Right end of the longest bar; its value is right of it.
const RIGHT: f64 = WIDTH - 96.0;
/// Position of the first bar.
const TOP: f64 = 64.0;
/// Distance from one bar to the next.
const PITCH: f64 = 28.0;
/// Height of a bar.
const THICKNESS: f64 = 18.0;

#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    /// The axis, with its unit.
    pub(crate) axis: &'static str,
    /// Names of the parts of a bar.
    pub(crate) parts: Vec<&'static str>,
    /// Name and parts of each bar.
    pub(crate) bars: Vec<(String, Vec<f64>)>,
}

impl Bars {
    /// Returns the plot as SVG.
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
