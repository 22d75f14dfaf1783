//! Plots as inline SVG: lines, steps, points and bars over linear or logarithmic axes.
//!
//! A plot is drawn in a box of 480 by 264 units that the page scales. Colours come from the page's
//! style sheet by class (`s0`, `s1`, ...), so that light and dark mode need one drawing. Every series
//! shows its values on hover (`<title>`), and [`Plot::table`] gives the same numbers as a table.

use std::fmt::Write;

use crate::human::{scaled, short};
use crate::report::page::escape;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 264.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
/// Colours, after which they begin again.
const COLOURS: usize = 8;
/// Points of a series that answer the pointer, and rows of its table.
const MOST_LABELS: usize = 48;

/// How the values of an axis are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero where no value is negative.
    Linear,
    /// By powers of ten; values of zero and below are not drawn.
    Log,
}

/// How a number of an axis is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A count, with decimal prefixes.
    Count,
    /// Seconds, from nanoseconds to seconds.
    Seconds,
    /// A share of one, as per cent.
    Share,
    /// A plain number.
    Plain,
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Count => scaled(value, "").replace(' ', "\u{202f}"),
            Self::Plain => short(value),
            Self::Share => {
                let percent = value * 100.0;
                let digits = if percent >= 0.1 || percent == 0.0 {
                    short(percent)
                } else {
                    let text = format!("{percent:.6}");
                    text.trim_end_matches('0').trim_end_matches('.').to_owned()
                };
                format!("{digits}\u{202f}%")
            }
            Self::Seconds => {
                let (factor, unit) = match value.abs() {
                    0.0 => (1.0, "s"),
                    0.0..0.999_999e-6 => (1e9, "ns"),
                    0.999_999e-6..0.999_999e-3 => (1e6, "µs"),
                    0.999_999e-3..0.999_999 => (1e3, "ms"),
                    _ => (1.0, "s"),
                };
                format!("{}\u{202f}{unit}", short(value * factor))
            }
        }
    }
}

/// One axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// How its values are spread.
    pub scale: Scale,
    /// How they are written.
    pub unit: Unit,
}

impl Axis {
    /// An axis.
    #[must_use]
    pub fn new(label: impl Into<String>, scale: Scale, unit: Unit) -> Self {
        Self {
            label: label.into(),
            scale,
            unit,
        }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// A line from point to point.
    Line,
    /// A value holds until the next point.
    Step,
    /// A dot for each point.
    Points,
    /// A bar from the axis to each point.
    Bars,
}

/// Numbers that belong together.
#[derive(Debug, Clone)]
pub struct Series {
    /// What it is, for the legend and the table.
    pub name: String,
    /// How it is drawn.
    pub marks: Marks,
    /// The points, in rising order of x. One whose y is no number is a gap: no line is drawn over it.
    pub points: Vec<(f64, f64)>,
}

/// A plot of one or more series over common axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it shows, for those who cannot see it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first one undermost.
    pub series: Vec<Series>,
    /// Named places on the horizontal axis, such as percentiles.
    pub guides: Vec<(f64, String)>,
}

/// An axis with its limits, mapped to the drawing.
struct Mapped<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl<'a> Mapped<'a> {
    fn new(axis: &'a Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let is_log = axis.scale == Scale::Log;
        let usable = values.filter(|v| v.is_finite() && (!is_log || *v > 0.0));
        let limits = usable.fold(None, |limits: Option<(f64, f64)>, v| {
            Some(limits.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        let (mut low, mut high) = limits.unwrap_or((1.0, 1.0));
        if is_log {
            low = 10_f64.powf((low.log10() + 1e-9).floor());
            high = 10_f64.powf((high.log10() - 1e-9).ceil());
            if high <= low {
                high = low * 10.0;
            }
        } else {
            low = low.min(0.0);
            if high <= low {
                high = low + 1.0;
            }
        }
        Self {
            axis,
            low,
            high,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> Option<f64> {
        let share = match self.axis.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => {
                (value / self.low).log10() / (self.high / self.low).log10()
            }
            Scale::Log => return None,
        };
        let at = self.from + share.clamp(0.0, 1.0) * (self.to - self.from);
        at.is_finite().then_some(at)
    }

    /// Ticks: at decades, or at steps of 1, 2 or 5 times a power of ten.
    fn ticks(&self) -> Vec<f64> {
        match self.axis.scale {
            Scale::Log => {
                let decades = (self.high / self.low).log10().round();
                let every = (decades / 7.0).ceil().max(1.0);
                let mut ticks = Vec::new();
                let mut power = 0.0;
                while power <= decades && ticks.len() < 64 {
                    let tick = self.low * 10_f64.powf(power);
                    ticks.push(tick);
                    if decades <= 2.0 && power < decades {
                        ticks.extend([tick * 2.0, tick * 5.0]);
                    }
                    power += every;
                }
                ticks
            }
            Scale::Linear => {
                let rough = (self.high - self.low) / 6.0;
                let power = 10_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|n| n * power)
                    .find(|step| *step >= rough * 0.999)
                    .unwrap_or(rough);
                let mut ticks = Vec::new();
                let mut tick = (self.low / step).ceil() * step;
                while tick <= self.high * 1.000_001 && ticks.len() < 64 {
                    ticks.push(tick);
                    tick += step;
                }
                ticks
            }
        }
    }
}

impl Plot {
    fn has_points(&self) -> bool {
        let mut points = self.series.iter().flat_map(|series| &series.points);
        points.any(|(_, y)| !y.is_nan())
    }

    /// The drawing; a sentence where there is nothing to draw.
    #[must_use]
    pub fn svg(&self) -> String {
        if !self.has_points() {
            return "<p class=\"none\">No data.</p>\n".to_owned();
        }
        let all = || self.series.iter().flat_map(|series| &series.points);
        let x = Mapped::new(&self.x, all().map(|p| p.0), LEFT, WIDTH - RIGHT);
        let y = Mapped::new(&self.y, all().map(|p| p.1), HEIGHT - BOTTOM, TOP);
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        self.frame(&mut out, &x, &y);
        for (at, (value, name)) in self.guides.iter().enumerate() {
            if let Some(px) = x.place(*value) {
                // Neighbouring names go to different heights.
                let (bottom, text_y) = (HEIGHT - BOTTOM, TOP + 11.0 + 13.0 * to_float(at % 3));
                push(
                    &mut out,
                    format_args!(
                        "<line class=\"guide\" x1=\"{px:.1}\" y1=\"{TOP}\" x2=\"{px:.1}\" y2=\"{bottom}\"/>\
                     <text class=\"guide\" x=\"{:.1}\" y=\"{text_y}\">{}</text>\n",
                        px + 3.0,
                        escape(name)
                    ),
                );
            }
        }
        for (number, series) in self.series.iter().enumerate() {
            self.draw(&mut out, number, series, &x, &y);
        }
        out.push_str("</svg>\n");
        if self.series.len() > 1 {
            out.push_str("<p class=\"legend\">");
            for (number, series) in self.series.iter().enumerate() {
                push(
                    &mut out,
                    format_args!(
                        "<span><i class=\"s{}\"></i>{}</span> ",
                        number % COLOURS,
                        escape(&series.name)
                    ),
                );
            }
            out.push_str("</p>\n");
        }
        out
    }

    /// The drawing as a file of its own: with its style, a white ground and the names of the series.
    #[must_use]
    pub fn standalone_svg(&self) -> String {
        const STYLE: &str = "text{fill:#5b6678;font:11.5px sans-serif}text.label{fill:#1b2330}\
            .grid{stroke:#eceff3}.axis,line.guide{stroke:#5b6678}\
            .line{fill:none;stroke-width:1.6}.hover{fill:transparent}\
            .line.s0{stroke:#2563a8}.line.s1{stroke:#c2571a}.line.s2{stroke:#2f855a}.line.s3{stroke:#7a4fa3}\
            .line.s4{stroke:#b0307a}.line.s5{stroke:#0f8b9d}.line.s6{stroke:#8a6d1a}.line.s7{stroke:#6b7280}\
            .dot.s0,.bar.s0{fill:#2563a8}.dot.s1,.bar.s1{fill:#c2571a}.dot.s2,.bar.s2{fill:#2f855a}.dot.s3,.bar.s3{fill:#7a4fa3}\
            .dot.s4,.bar.s4{fill:#b0307a}.dot.s5,.bar.s5{fill:#0f8b9d}.dot.s6,.bar.s6{fill:#8a6d1a}.dot.s7,.bar.s7{fill:#6b7280}";
        let drawing = self.svg();
        // What stands behind the drawing in a page is the legend, which is drawn here instead.
        let body = drawing
            .split_once(">\n")
            .and_then(|(_, rest)| rest.split_once("</svg>"))
            .map_or("", |(body, _)| body);
        let (full, room) = (
            HEIGHT + 24.0,
            (WIDTH - LEFT) / to_float(self.series.len().max(1)),
        );
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {full}\" role=\"img\" \
             aria-label=\"{}\">\n<style>{STYLE}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{full}\" fill=\"#fff\"/>\n{body}",
            escape(&self.title)
        );
        for (number, series) in self.series.iter().enumerate() {
            let x = LEFT / 2.0 + room * to_float(number);
            push(
                &mut out,
                format_args!(
                    "<circle class=\"dot s{}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3.5\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                    number % COLOURS,
                    HEIGHT + 8.0,
                    x + 8.0,
                    HEIGHT + 12.0,
                    escape(&series.name)
                ),
            );
        }
        out.push_str("</svg>\n");
        out
    }

    fn frame(&self, out: &mut String, x: &Mapped<'_>, y: &Mapped<'_>) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in y.ticks() {
            let Some(at) = y.place(tick) else { continue };
            push(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                    LEFT - 6.0,
                    at + 4.0,
                    y.axis.unit.text(tick)
                ),
            );
        }
        for tick in x.ticks() {
            let Some(at) = x.place(tick) else { continue };
            push(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                    bottom + 16.0,
                    x.axis.unit.text(tick)
                ),
            );
        }
        let (middle_x, middle_y) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        push(
            out,
            format_args!(
                "<line class=\"axis\" x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\
             <text class=\"label\" x=\"{middle_x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"label\" transform=\"translate(13 {middle_y}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                HEIGHT - 10.0,
                escape(&self.x.label),
                escape(&self.y.label)
            ),
        );
    }

    fn draw(
        &self,
        out: &mut String,
        number: usize,
        series: &Series,
        x: &Mapped<'_>,
        y: &Mapped<'_>,
    ) {
        let class = number % COLOURS;
        let placed: Vec<(f64, f64, (f64, f64))> = series
            .points
            .iter()
            .filter_map(|point| Some((x.place(point.0)?, y.place(point.1)?, *point)))
            .collect();
        match series.marks {
            Marks::Line | Marks::Step => {
                let mut path = String::new();
                let mut last: Option<(f64, f64)> = None;
                for point in &series.points {
                    if point.1.is_nan() {
                        last = None;
                        continue;
                    }
                    let (Some(px), Some(py)) = (x.place(point.0), y.place(point.1)) else {
                        continue;
                    };
                    match last {
                        // A point between two gaps is seen too, by the round ends of its line.
                        None => push(&mut path, format_args!("M{px:.1} {py:.1}h0")),
                        // Less than a pixel further: nobody could see it.
                        Some((lx, ly)) if (px - lx).abs() < 0.7 && (py - ly).abs() < 0.7 => {
                            continue;
                        }
                        Some(_) if series.marks == Marks::Step => {
                            push(&mut path, format_args!("H{px:.1}V{py:.1}"));
                        }
                        Some(_) => push(&mut path, format_args!("L{px:.1} {py:.1}")),
                    }
                    last = Some((px, py));
                }
                push(
                    out,
                    format_args!("<path class=\"line s{class}\" d=\"{path}\"/>\n"),
                );
            }
            Marks::Bars => {
                let width =
                    ((WIDTH - LEFT - RIGHT) / to_float(placed.len().max(1)) - 1.0).clamp(1.0, 24.0);
                for (px, py, _) in &placed {
                    push(
                        out,
                        format_args!(
                            "<rect class=\"bar s{class}\" x=\"{:.1}\" y=\"{py:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
                            px - width / 2.0,
                            HEIGHT - BOTTOM - py
                        ),
                    );
                }
                out.push('\n');
            }
            Marks::Points => {}
        }
        let is_dot = series.marks == Marks::Points;
        let step = if is_dot {
            1
        } else {
            placed.len().div_ceil(MOST_LABELS).max(1)
        };
        let (name, radius) = if is_dot { ("dot", 2.6) } else { ("hover", 7.0) };
        for (px, py, (vx, vy)) in placed.iter().step_by(step) {
            push(
                out,
                format_args!(
                    "<circle class=\"{name} s{class}\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"{radius}\"><title>{}: {}, {}</title></circle>",
                    escape(&series.name),
                    x.axis.unit.text(*vx),
                    y.axis.unit.text(*vy)
                ),
            );
        }
        out.push('\n');
    }

    /// The numbers of the plot, folded away: at most 48 rows a series.
    #[must_use]
    pub fn table(&self) -> String {
        if !self.has_points() {
            return String::new();
        }
        let mut out = String::from("<details><summary>Data</summary>\n");
        for series in &self.series {
            push(
                &mut out,
                format_args!(
                    "<table><caption>{}</caption><thead><tr><th>{}</th><th>{}</th></tr></thead><tbody>\n",
                    escape(&series.name),
                    escape(&self.x.label),
                    escape(&self.y.label)
                ),
            );
            let known = || series.points.iter().filter(|(_, y)| !y.is_nan());
            let step = known().count().div_ceil(MOST_LABELS).max(1);
            for (x, y) in known().step_by(step) {
                push(
                    &mut out,
                    format_args!(
                        "<tr><td>{}</td><td>{}</td></tr>\n",
                        self.x.unit.text(*x),
                        self.y.unit.text(*y)
                    ),
                );
            }
            out.push_str("</tbody></table>\n");
        }
        out.push_str("</details>\n");
        out
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _unfailing = out.write_fmt(text);
}

#[expect(clippy::cast_precision_loss, reason = "a number of points")]
const fn to_float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(scale: Scale, points: Vec<(f64, f64)>) -> Plot {
        Plot {
            title: "a < b".to_owned(),
            x: Axis::new("x (s)", scale, Unit::Seconds),
            y: Axis::new("y", scale, Unit::Count),
            series: vec![Series {
                name: "<i>".to_owned(),
                marks: Marks::Line,
                points,
            }],
            guides: vec![(0.01, "p50".to_owned())],
        }
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::new("", Scale::Linear, Unit::Plain);
        let ticks = |high: f64| Mapped::new(&axis, [0.0, high].into_iter(), 0.0, 1.0).ticks();
        assert_eq!(ticks(6.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(ticks(100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(0.0).len(), 6);
        let axis = Axis::new("", Scale::Log, Unit::Plain);
        let ticks =
            |low: f64, high: f64| Mapped::new(&axis, [low, high].into_iter(), 0.0, 1.0).ticks();
        assert_eq!(ticks(0.002, 30.0).len(), 6);
        assert_eq!(ticks(3.0, 70.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert!(ticks(1e-300, 1e300).len() <= 64);
    }

    #[test]
    fn units() {
        assert_eq!(Unit::Seconds.text(1e-5), "10\u{202f}µs");
        assert_eq!(Unit::Seconds.text(1e-3), "1\u{202f}ms");
        assert_eq!(Unit::Seconds.text(10.0), "10\u{202f}s");
        assert_eq!(Unit::Share.text(1e-5), "0.001\u{202f}%");
        assert_eq!(Unit::Share.text(1.0), "100\u{202f}%");
    }

    #[test]
    fn no_line_is_drawn_over_a_gap() {
        let points = |gap: f64| vec![(0.0, 1.0), (1.0, 2.0), (2.0, gap), (3.0, 1.0), (4.0, 2.0)];
        let moves = |gap: f64| {
            let drawn = plot(Scale::Linear, points(gap)).svg();
            let (_, path) = drawn.split_once(" d=\"").unwrap();
            path.split('"').next().unwrap().matches('M').count()
        };
        assert_eq!((moves(1.5), moves(f64::NAN)), (1, 2));
        let table = plot(Scale::Linear, points(f64::NAN)).table();
        assert_eq!(table.matches("<tr><td>").count(), 4, "{table}");
        let none = plot(Scale::Linear, vec![(0.0, f64::NAN)]);
        assert!(!none.svg().contains("<path"), "nothing to draw");
        assert_eq!(none.table(), "");
    }

    #[test]
    fn drawings_hold_no_foreign_markup_and_no_nan() {
        let wild = vec![
            (0.0, 0.0),
            (1e-9, 1e300),
            (f64::NAN, 1.0),
            (f64::INFINITY, 2.0),
            (5.0, -3.0),
        ];
        for scale in [Scale::Linear, Scale::Log] {
            for points in [
                wild.clone(),
                vec![],
                vec![(1.0, 1.0)],
                vec![(0.01, 5.0), (3.0, 2.0)],
            ] {
                let plot = plot(scale, points);
                let text = plot.svg() + &plot.table();
                assert!(!text.contains("<i>") && !text.contains("a < b"));
                assert!(!text.contains("NaN\"") && !text.contains("inf\""), "{text}");
            }
        }
        assert!(plot(Scale::Log, vec![]).svg().contains("No data"));
    }

    #[test]
    fn a_drawing_can_stand_alone() {
        let svg = plot(Scale::Linear, vec![(0.0, 1.0), (2.0, 3.0)]).standalone_svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("class=\"line s0\"") && svg.contains("&lt;i&gt;"));
        assert_eq!(svg.matches("<svg").count(), 1);
    }
}
