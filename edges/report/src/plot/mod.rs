//! Plots as SVG: lines, areas, steps, points and bars over linear or logarithmic axes.
//!
//! In a page a plot is drawn in a box of 480 by 264 units that the page scales; [`Sheet`] makes files of
//! one or several plots. Colours come from a style sheet by class (`s0`, `s1`, ...), so that light and
//! dark mode need one drawing. Every series shows its values on hover (`<title>`), and [`Plot::table`]
//! gives the same numbers as a table.

mod axis;
mod sheet;
mod times;

use std::fmt::Write;

pub use axis::{Axis, Scale, Unit};
pub use sheet::{Row, Sheet};

use crate::page::{COLOURS, escape};
use axis::Mapped;

/// Points of a series that answer the pointer, and rows of its table.
const MOST_LABELS: usize = 48;
/// Room for the axes around a drawing.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// A line from point to point.
    Line,
    /// The same, twice as thick: what the other lines are compared with.
    ThickLine,
    /// A line with the area between it and zero.
    Area,
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
    /// The points, in rising order of x. One whose y is not a number is a gap: no line is drawn over it.
    /// Behind a gap x may begin again.
    pub points: Vec<(f64, f64)>,
}

/// A plot of one or more series over common axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it shows, for those who cannot see it; the heading in a [`Sheet`].
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

/// The size of the box of a drawing.
#[derive(Debug, Clone, Copy)]
struct Extent {
    width: f64,
    height: f64,
}

impl Extent {
    /// In a page.
    const PAGE: Self = Self {
        width: 480.0,
        height: 264.0,
    };

    const fn right(self) -> f64 {
        self.width - RIGHT
    }

    const fn bottom(self) -> f64 {
        self.height - BOTTOM
    }
}

impl Plot {
    fn has_points(&self) -> bool {
        let mut points = self.series.iter().flat_map(|series| &series.points);
        points.any(|(_, y)| !y.is_nan())
    }

    /// The drawing in a page; a sentence where there is nothing to draw.
    #[must_use]
    pub fn svg(&self) -> String {
        if !self.has_points() {
            return "<p class=\"none\">No data.</p>\n".to_owned();
        }
        let Extent { width, height } = Extent::PAGE;
        let mut out = format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            escape(&self.title),
            self.drawing(Extent::PAGE)
        );
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

    /// The plot as a file of its own.
    #[must_use]
    pub fn standalone_svg(&self) -> String {
        let sheet = Sheet {
            title: self.title.clone(),
            subtitle: String::new(),
            rows: vec![Row {
                height: 400.0,
                plots: vec![self.clone()],
            }],
        };
        sheet.svg()
    }

    /// Axes, guides and series.
    fn drawing(&self, extent: Extent) -> String {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let x = Mapped::new(&self.x, all().map(|p| p.0), LEFT, extent.right());
        let y = Mapped::new(&self.y, all().map(|p| p.1), extent.bottom(), TOP);
        let mut out = String::new();
        frame(&mut out, extent, &x, &y);
        for (at, (value, name)) in self.guides.iter().enumerate() {
            if let Some(px) = x.place(*value) {
                // Neighbouring names go to different heights.
                let (bottom, text_y) = (extent.bottom(), TOP + 11.0 + 13.0 * to_float(at % 3));
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
            draw(&mut out, extent, number % COLOURS, series, &x, &y);
        }
        out
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
                        self.x.text(*x),
                        self.y.text(*y)
                    ),
                );
            }
            out.push_str("</tbody></table>\n");
        }
        out.push_str("</details>\n");
        out
    }
}

/// Axes with their marks and labels.
fn frame(out: &mut String, extent: Extent, x: &Mapped<'_>, y: &Mapped<'_>) {
    let (bottom, right) = (extent.bottom(), extent.right());
    for (tick, text) in y.marks() {
        let Some(at) = y.place(tick) else { continue };
        push(
            out,
            format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>\n",
                LEFT - 6.0,
                at + 4.0,
            ),
        );
    }
    for (tick, text) in x.marks() {
        let Some(at) = x.place(tick) else { continue };
        push(
            out,
            format_args!(
                "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>\n",
                bottom + 16.0,
            ),
        );
    }
    let (middle_x, middle_y) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
    // The line between two directions, or the lower edge.
    let line = if y.axis.is_mirrored { y.zero() } else { bottom };
    push(
        out,
        format_args!(
            "<line class=\"axis\" x1=\"{LEFT}\" y1=\"{line:.1}\" x2=\"{right}\" y2=\"{line:.1}\"/>\
             <text class=\"label\" x=\"{middle_x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"label\" transform=\"translate(13 {middle_y}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            extent.height - 10.0,
            escape(&x.axis.label),
            escape(&y.axis.label)
        ),
    );
}

fn draw(
    out: &mut String,
    extent: Extent,
    class: usize,
    series: &Series,
    x: &Mapped<'_>,
    y: &Mapped<'_>,
) {
    let placed: Vec<(f64, f64, (f64, f64))> = series
        .points
        .iter()
        .filter_map(|point| Some((x.place(point.0)?, y.place(point.1)?, *point)))
        .collect();
    match series.marks {
        Marks::Line | Marks::ThickLine | Marks::Area | Marks::Step => {
            let pieces = pieces(series, x, y);
            if series.marks == Marks::Area {
                area(out, class, &pieces, y.zero());
            }
            let is_thick = series.marks == Marks::ThickLine;
            let thick = if is_thick { " thick" } else { "" };
            let path: String = pieces.iter().map(|piece| path(piece)).collect();
            push(
                out,
                format_args!("<path class=\"line{thick} s{class}\" d=\"{path}\"/>\n"),
            );
        }
        Marks::Bars => {
            let places = || placed.iter().map(|(px, _, _)| *px);
            let between = places().zip(places().skip(1)).map(|(one, next)| next - one);
            let room = (extent.right() - LEFT) / to_float(placed.len().max(1));
            let width = (between.fold(room, f64::min) - 1.0).clamp(1.0, 24.0);
            for (px, py, _) in &placed {
                push(
                    out,
                    format_args!(
                        "<rect class=\"bar s{class}\" x=\"{:.1}\" y=\"{py:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
                        px - width / 2.0,
                        extent.bottom() - py
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
                x.axis.text(*vx),
                y.axis.text(*vy)
            ),
        );
    }
    out.push('\n');
}

/// The places of a line, a piece between two gaps each.
fn pieces(series: &Series, x: &Mapped<'_>, y: &Mapped<'_>) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut is_gap = true;
    for point in &series.points {
        if point.1.is_nan() {
            is_gap = true;
            continue;
        }
        let (Some(px), Some(py)) = (x.place(point.0), y.place(point.1)) else {
            continue;
        };
        match pieces.last_mut().filter(|_| !is_gap) {
            None => pieces.push(vec![(px, py)]),
            Some(piece) => {
                let (lx, ly) = piece.last().copied().unwrap_or((px, py));
                // Less than a pixel further: nobody could see it.
                if (px - lx).abs() < 0.7 && (py - ly).abs() < 0.7 {
                    continue;
                }
                if series.marks == Marks::Step {
                    piece.push((px, ly));
                }
                piece.push((px, py));
            }
        }
        is_gap = false;
    }
    pieces
}

/// Areas between pieces of a line and the height of zero.
fn area(out: &mut String, class: usize, pieces: &[Vec<(f64, f64)>], zero: f64) {
    for piece in pieces {
        let (Some((from, _)), Some((to, _))) = (piece.first(), piece.last()) else {
            continue;
        };
        let mut edge = vec![(*from, zero)];
        edge.extend(piece);
        edge.push((*to, zero));
        push(
            out,
            format_args!("<path class=\"area s{class}\" d=\"{}Z\"/>", path(&edge)),
        );
    }
}

/// Horizontal and vertical parts are what many lines are made of, and shorter to say.
fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    let mut last: Option<(f64, f64)> = None;
    let is_near = |one: f64, other: f64| (one - other).abs() < 0.05;
    for (x, y) in points.iter().copied() {
        match last {
            // A point between two gaps is seen too, by the round ends of its line.
            None => push(&mut out, format_args!("M{x:.1} {y:.1}h0")),
            Some((_, old)) if is_near(old, y) => push(&mut out, format_args!("H{x:.1}")),
            Some((old, _)) if is_near(old, x) => push(&mut out, format_args!("V{y:.1}")),
            Some(_) => push(&mut out, format_args!("L{x:.1} {y:.1}")),
        }
        last = Some((x, y));
    }
    out
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
    fn an_area_ends_at_each_gap_and_a_step_holds_until_the_next_point() {
        let points = vec![
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, f64::NAN),
            (3.0, -1.0),
            (4.0, -2.0),
        ];
        let mut drawn = plot(Scale::Linear, points.clone());
        drawn.y.is_mirrored = true;
        drawn.series[0].marks = Marks::Area;
        let svg = drawn.svg();
        assert_eq!(svg.matches("class=\"area s0\"").count(), 2, "{svg}");
        assert!(!drawn.table().contains('-'), "{}", drawn.table());
        let mut drawn = plot(Scale::Linear, points);
        drawn.series[0].marks = Marks::Step;
        let svg = drawn.svg();
        let (_, path) = svg.split_once(" d=\"").unwrap();
        let path = path.split('"').next().unwrap();
        assert_eq!(
            (path.matches('H').count(), path.matches('V').count()),
            (2, 2),
            "{path}"
        );
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
        for (scale, is_mirrored) in [
            (Scale::Linear, false),
            (Scale::Log, false),
            (Scale::Log, true),
        ] {
            for points in [
                wild.clone(),
                vec![],
                vec![(1.0, 1.0)],
                vec![(0.01, 5.0), (3.0, 2.0)],
            ] {
                let mut plot = plot(scale, points);
                plot.y.is_mirrored = is_mirrored;
                let text = plot.svg() + &plot.table() + &plot.standalone_svg();
                assert!(!text.contains("<i>") && !text.contains("a < b"));
                assert!(!text.contains("NaN\"") && !text.contains("inf\""), "{text}");
            }
        }
        assert!(plot(Scale::Log, vec![]).svg().contains("No data"));
    }
}
