//! Draws curves and bars as SVG, with plotters.

use plotters::coord::Shift;
use plotters::coord::ranged1d::SegmentValue;
use plotters::element::PointCollection;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// Width and height of a plot of curves.
const SIZE: (u32, u32) = (760, 420);
/// Height that a bar adds to its plot.
const BAR_HEIGHT: u32 = 28;
/// Height of what is above and below the bars.
const FRAME_HEIGHT: u32 = 120;
/// Width of the names of the bars.
const NAMES_WIDTH: u32 = 250;
const FONT: (&str, u32) = ("sans-serif", 14);
const TITLE_FONT: (&str, u32) = ("sans-serif", 17);
/// Colours that can be distinguished with each common colour blindness (Okabe and Ito).
const COLOURS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(90, 90, 90),
];

/// A plot as SVG, or why it could not be drawn.
pub(crate) type Drawn = Result<String, Box<dyn Error>>;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Curves over a horizontal axis with numbers or names and a logarithmic vertical one.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) title: String,
    /// The horizontal axis, with its unit.
    pub(crate) x: &'static str,
    /// The vertical axis, with its unit.
    pub(crate) y: &'static str,
    /// Names of the positions 0, 1, 2 … of the horizontal axis; without them it has numbers.
    pub(crate) places: Vec<String>,
    /// Reference values on the vertical axis, with their names.
    pub(crate) bounds: Vec<(f64, String)>,
    pub(crate) curves: Vec<Curve>,
}

#[derive(Debug)]
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    /// Index of its colour and mark.
    pub(crate) series: usize,
    /// Points from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Horizontal bars, each stacked from one part or several.
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

impl Lines {
    pub(crate) fn draw(&self) -> Drawn {
        with_area(SIZE, |area| self.draw_on(area))
    }

    fn draw_on(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let places = (0..self.places.len()).map(|at| at as f64);
        let (left, right) = range(points().map(|point| point.0).chain(places));
        let bounds = self.bounds.iter().map(|(value, _)| *value);
        let (low, high) = range(points().map(|point| point.1).chain(bounds));
        let margin = (right - left) / 20.0;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, TITLE_FONT)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(left - margin..right + margin, (low / 1.3..high * 1.3).log_scale())?;
        let name = |at: &f64| match self.places.is_empty() {
            true => format!("{at}"),
            false if at.fract() != 0.0 || *at < 0.0 => String::new(),
            false => self.places.get(*at as usize).cloned().unwrap_or_default(),
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(FONT)
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&name)
            .draw()?;
        for (value, name) in &self.bounds {
            let ends = [(left, *value), (right, *value)];
            chart.draw_series(DashedLineSeries::new(ends, 4, 4, BLACK.mix(0.6).into()))?;
            chart.draw_series([Text::new(name.clone(), ends[0], FONT)])?;
        }
        for curve in &self.curves {
            let (series, colour) = (curve.series, COLOURS[curve.series % COLOURS.len()]);
            chart.draw_series(LineSeries::new(
                curve.points.iter().copied(),
                colour.stroke_width(2),
            ))?;
            chart
                .draw_series(curve.points.iter().map(|point| mark(*point, series)))?
                .label(curve.name)
                .legend(move |(x, y)| mark((x + 8, y), series));
        }
        chart
            .configure_series_labels()
            .label_font(FONT)
            .background_style(WHITE.mix(0.8))
            .position(SeriesLabelPosition::UpperLeft)
            .draw()?;
        Ok(())
    }
}

impl Bars {
    pub(crate) fn draw(&self) -> Drawn {
        let height = BAR_HEIGHT * u32::try_from(self.bars.len())? + FRAME_HEIGHT;
        with_area((SIZE.0, height), |area| self.draw_on(area))
    }

    fn draw_on(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let sums = self.bars.iter().map(|(_, parts)| parts.iter().sum());
        let (_, longest) = range(sums);
        let count = self.bars.len().max(1);
        // The first bar is the highest.
        let bar = |segment: usize| self.bars.len().checked_sub(segment + 1).map(|at| &self.bars[at]);
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, TITLE_FONT)
            .margin(12)
            .margin_right(90)
            .x_label_area_size(44)
            .y_label_area_size(NAMES_WIDTH)
            .build_cartesian_2d(0.0..longest, (0..count).into_segmented())?;
        let name = |segment: &SegmentValue<usize>| match segment {
            SegmentValue::CenterOf(at) => bar(*at).map(|(name, _)| name.clone()).unwrap_or_default(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(FONT)
            .x_desc(self.axis)
            .y_labels(count)
            .y_label_formatter(&name)
            .draw()?;
        for (part, part_name) in self.parts.iter().enumerate() {
            let colour = COLOURS[part % COLOURS.len()].filled();
            let pieces = (0..count).filter_map(|segment| {
                let (_, parts) = bar(segment)?;
                let from: f64 = parts.iter().take(part).sum();
                let (low, high) = (SegmentValue::Exact(segment), SegmentValue::Exact(segment + 1));
                let mut piece = Rectangle::new([(from, low), (from + parts.get(part)?, high)], colour);
                piece.set_margin(4, 4, 0, 0);
                Some(piece)
            });
            let drawn = chart.draw_series(pieces)?;
            if self.parts.len() > 1 {
                drawn
                    .label(*part_name)
                    .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour));
            }
        }
        let beside = TextStyle::from(FONT.into_font()).pos(Pos::new(HPos::Left, VPos::Center));
        chart.draw_series((0..count).filter_map(|segment| {
            let (_, parts) = bar(segment)?;
            let shown = parts.iter().filter(|value| **value > 0.0);
            let shown: Vec<String> = shown.map(|value| format!(" {value:.1}")).collect();
            let end = (parts.iter().sum(), SegmentValue::CenterOf(segment));
            Some(Text::new(shown.join(" +"), end, beside.clone()))
        }))?;
        chart
            .configure_series_labels()
            .label_font(FONT)
            .position(SeriesLabelPosition::LowerRight)
            .draw()?;
        Ok(())
    }
}

/// Returns what `draw` draws on a white area of this size.
fn with_area(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn Error>>) -> Drawn {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        area.present()?;
    }
    Ok(svg)
}

/// Returns the mark of a series: each has another shape, so that it is recognized without its colour.
fn mark<'a, C: Clone + 'static>(at: C, series: usize) -> DynElement<'static, SVGBackend<'a>, C>
where
    for<'b> &'b Circle<C, i32>: PointCollection<'b, C>,
{
    let colour = COLOURS[series % COLOURS.len()];
    match series {
        0 => Circle::new(at, 4, colour.filled()).into_dyn(),
        1 => TriangleMarker::new(at, 5, colour.filled()).into_dyn(),
        2 => Circle::new(at, 5, colour.stroke_width(2)).into_dyn(),
        _ => Cross::new(at, 4, colour.stroke_width(2)).into_dyn(),
    }
}

/// Returns the smallest and the largest of the values, never the same.
fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().reduce(f64::min).unwrap_or(1.0);
    let high = values.reduce(f64::max).unwrap_or(1.0);
    (low, if high > low { high } else { low + 1.0 })
}
