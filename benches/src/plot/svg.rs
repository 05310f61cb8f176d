//! An SVG that is legible in light and dark themes, by itself and embedded in a page.

use std::fmt::Write;

/// Width of every plot, in user units.
pub(crate) const WIDTH: f64 = 760.0;

/// Colours of the series for light and dark themes, distinguishable for colour-blind readers. The background is always
/// painted: a page may be dark where the system theme is light.
const STYLE: &str = "\
:root{--paper:#fff;--ink:#1f2328;--soft:#59636e;--grid:#d8dee4;\
--c0:#0072b2;--c1:#c04f00;--c2:#00805d;--c3:#a8508a}\
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--soft:#9da7b1;--grid:#30363d;\
--c0:#56b4e9;--c1:#f0a030;--c2:#2fc79b;--c3:#e3a6cb}}\
text{font:13px system-ui,sans-serif;fill:var(--ink)}.title{font-size:15px;font-weight:600}.soft{fill:var(--soft)}\
.grid{stroke:var(--grid);stroke-width:1}.bound{stroke:var(--soft);stroke-width:1;stroke-dasharray:5 4}\
.line{fill:none;stroke-width:2}\
.c0{fill:var(--c0);stroke:var(--c0)}.c1{fill:var(--c1);stroke:var(--c1)}\
.c2{fill:var(--c2);stroke:var(--c2)}.c3{fill:var(--c3);stroke:var(--c3)}\
.line.c0,.line.c1,.line.c2,.line.c3{fill:none}text.c0,text.c1,text.c2,text.c3{stroke:none;font-weight:600}";

/// Series that have a colour and a mark of their own.
pub(crate) const SERIES_MAX: usize = 4;

/// Horizontal alignment of a text at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A plot being drawn.
#[derive(Debug)]
pub(crate) struct Svg {
    height: f64,
    title: String,
    body: String,
}

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Svg {
    /// An empty plot with its title.
    pub(crate) fn new(title: &str, height: f64) -> Self {
        let mut svg = Self {
            height,
            title: title.to_owned(),
            body: String::new(),
        };
        svg.text(20.0, 26.0, title, "title", Anchor::Start);
        svg
    }

    /// Adds a text whose baseline is at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, text: &str, class: &str, anchor: Anchor) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// Adds a text that reads upwards, its middle at this position.
    pub(crate) fn upwards(&mut self, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" class=\"soft\" \
             text-anchor=\"middle\">{text}</text>"
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// A filled rectangle.
    pub(crate) fn bar(&mut self, at: (f64, f64), width: f64, height: f64, series: usize) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"c{}\"/>",
            at.0,
            at.1,
            series % SERIES_MAX
        );
    }

    /// A line through points, each with the mark of its series.
    pub(crate) fn curve(&mut self, points: &[(f64, f64)], series: usize) {
        let class = series % SERIES_MAX;
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.body,
            "<polyline points=\"{}\" class=\"line c{class}\"/>",
            path.join(" ")
        );
        for (x, y) in points {
            self.mark(*x, *y, series);
        }
    }

    /// The mark of a series: a disc, a square, a triangle, a diamond.
    pub(crate) fn mark(&mut self, x: f64, y: f64, series: usize) {
        let class = series % SERIES_MAX;
        let shape = match class {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" class=\"c0\"/>"),
            1 => format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6.5\" height=\"6.5\" class=\"c1\"/>",
                x - 3.25,
                y - 3.25
            ),
            2 => format!("<path d=\"M{x:.1} {:.1}l4.5 7.5h-9z\" class=\"c2\"/>", y - 4.5),
            _ => format!(
                "<path d=\"M{x:.1} {:.1}l4.5 4.5-4.5 4.5-4.5-4.5z\" class=\"c3\"/>",
                y - 4.5
            ),
        };
        let _ = writeln!(self.body, "{shape}");
    }

    /// Returns the SVG file.
    pub(crate) fn finish(self) -> String {
        let Self { height, title, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" style=\"fill:var(--paper)\"/>\n{body}</svg>\n",
            escaped(&title)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_cannot_leave_its_element() {
        let mut svg = Svg::new("a < b & \"c\"", 100.0);
        svg.text(1.0, 2.0, "</text><script>", "soft", Anchor::Middle);
        let text = svg.finish();
        assert!(text.contains("a &lt; b &amp; &quot;c&quot;"), "{text}");
        assert!(!text.contains("<script>"), "{text}");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    }
}
