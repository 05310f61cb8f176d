//! A plot of curves, each named at its right end.

use super::scale::{Kind, Scale, shown};
use super::svg::{Anchor, SERIES_MAX, Svg, WIDTH};

const HEIGHT: f64 = 420.0;
/// Left end of the axes.
const LEFT: f64 = 76.0;
/// Right end of the axes; the names of the curves are right of it.
const RIGHT: f64 = WIDTH - 120.0;
/// Top of the axes.
const TOP: f64 = 52.0;
/// Bottom of the axes.
const BOTTOM: f64 = HEIGHT - 56.0;
/// Smallest distance between the names of two curves.
const NAME_HEIGHT: f64 = 18.0;

/// Curves over two axes.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) title: String,
    /// The horizontal axis, with its unit.
    pub(crate) x: (&'static str, Kind),
    /// The vertical axis, with its unit.
    pub(crate) y: (&'static str, Kind),
    /// Names of places on the horizontal axis; without them it has numbers.
    pub(crate) places: Vec<(f64, String)>,
    /// Reference values on the vertical axis, with their names.
    pub(crate) bounds: Vec<(f64, String)>,
    pub(crate) curves: Vec<Curve>,
}

#[derive(Debug)]
pub(crate) struct Curve {
    /// Label at the right end of the curve.
    pub(crate) name: &'static str,
    /// Index of its colour and mark; from [`SERIES_MAX`] on they repeat.
    pub(crate) series: usize,
    /// Points from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Lines {
    /// Returns the plot as SVG.
    pub(crate) fn draw(&self) -> String {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let xs = points()
            .map(|point| point.0)
            .chain(self.places.iter().map(|place| place.0));
        let ys = points()
            .map(|point| point.1)
            .chain(self.bounds.iter().map(|bound| bound.0));
        let x = match self.places.is_empty() {
            true => Scale::from_values(self.x.1, xs, LEFT, RIGHT),
            false => Scale::tight(self.x.1, xs, LEFT, RIGHT),
        };
        let y = Scale::from_values(self.y.1, ys, BOTTOM, TOP);
        let mut svg = Svg::new(&self.title, HEIGHT);
        self.axes(&mut svg, &x, &y);
        for curve in &self.curves {
            let placed: Vec<_> = curve
                .points
                .iter()
                .map(|point| (x.at(point.0), y.at(point.1)))
                .collect();
            svg.curve(&placed, curve.series);
        }
        self.names(&mut svg, &y);
        svg.finish()
    }

    fn axes(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        for tick in y.ticks() {
            let at = y.at(tick);
            svg.line((LEFT, at), (RIGHT, at), "grid");
            svg.text(LEFT - 8.0, at + 4.5, &shown(tick), "soft", Anchor::End);
        }
        let numbers = || x.ticks().into_iter().map(|tick| (tick, shown(tick))).collect();
        let places: Vec<(f64, String)> = match self.places.is_empty() {
            true => numbers(),
            false => self.places.clone(),
        };
        for (value, name) in places {
            let at = x.at(value);
            svg.line((at, BOTTOM), (at, BOTTOM + 5.0), "grid");
            svg.text(at, BOTTOM + 20.0, &name, "soft", Anchor::Middle);
        }
        for (value, name) in &self.bounds {
            let at = y.at(*value);
            svg.line((LEFT, at), (RIGHT, at), "bound");
            svg.text(LEFT + 6.0, at - 4.0, name, "soft", Anchor::Start);
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        svg.text(middle, HEIGHT - 14.0, self.x.0, "soft", Anchor::Middle);
        svg.upwards(22.0, f64::midpoint(TOP, BOTTOM), self.y.0);
    }

    /// Writes each name at the end of its curve, without overlap.
    fn names(&self, svg: &mut Svg, y: &Scale) {
        let ends = self.curves.iter();
        let mut ends: Vec<(f64, usize, &str)> = ends
            .filter_map(|curve| Some((y.at(curve.points.last()?.1), curve.series, curve.name)))
            .collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut lowest = f64::NEG_INFINITY;
        for (at, series, name) in ends {
            let at = at.max(lowest + NAME_HEIGHT);
            lowest = at;
            svg.mark(RIGHT + 14.0, at, series);
            let class = format!("c{}", series % SERIES_MAX);
            svg.text(RIGHT + 24.0, at + 4.5, name, &class, Anchor::Start);
        }
    }
}
