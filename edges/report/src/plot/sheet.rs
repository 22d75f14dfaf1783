//! Pictures that stand alone: plots in a file, with their style, a white ground and a heading.

use super::{Extent, LEFT, Plot, RIGHT, push, to_float};
use crate::page::{COLOURS, escape, plot_rules};

const WIDTH: f64 = 900.0;
/// Room above a plot for its title and legend.
const HEADING: f64 = 22.0;
/// About the width of a letter of a legend.
const LETTER: f64 = 6.3;
/// Colours on white paper.
const PAPER: [&str; COLOURS] = [
    "#2563a8", "#c2571a", "#2f855a", "#7a4fa3", "#b0307a", "#0f8b9d", "#8a6d1a", "#6b7280",
];

/// Plots side by side, equally wide.
#[derive(Debug, Clone)]
pub struct Row {
    /// How high they are, in units of a picture that is 900 wide.
    pub height: f64,
    /// From left to right.
    pub plots: Vec<Plot>,
}

/// A picture of plots.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// What it shows.
    pub title: String,
    /// More of it in a line, or nothing.
    pub subtitle: String,
    /// The plots, from the top on.
    pub rows: Vec<Row>,
}

impl Sheet {
    /// The file.
    #[must_use]
    pub fn svg(&self) -> String {
        let heights = self.rows.iter().map(|row| HEADING + row.height);
        let top = if self.subtitle.is_empty() { 36.0 } else { 54.0 };
        let height = top + heights.sum::<f64>();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}, {subtitle}\">\n\
             <style>text{{fill:#5b6678;font:11.5px sans-serif}}text.label{{fill:#1b2330}}\
             text.title{{fill:#1b2330;font-size:17px;font-weight:bold}}\
             text.heading{{fill:#1b2330;font-size:12.5px;font-weight:bold}}text.none{{font-size:13px}}\
             .grid{{stroke:#e6e9ee}}.axis,line.guide{{stroke:#5b6678}}.hover{{fill:transparent}}{}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"26\">{title}</text>\n\
             <text x=\"{LEFT}\" y=\"44\">{subtitle}</text>\n",
            plot_rules(|number| PAPER.get(number).copied().unwrap_or_default().to_owned()),
            title = escape(&self.title),
            subtitle = escape(&self.subtitle),
        );
        let mut y = top;
        for row in &self.rows {
            let extent = Extent {
                width: WIDTH / to_float(row.plots.len().max(1)),
                height: row.height,
            };
            for (number, plot) in row.plots.iter().enumerate() {
                let x = extent.width * to_float(number);
                push(
                    &mut out,
                    format_args!("<g transform=\"translate({x:.1} {y})\">\n"),
                );
                self.heading(&mut out, plot, extent);
                push(
                    &mut out,
                    format_args!(
                        "<g transform=\"translate(0 {HEADING})\">\n{}</g>\n</g>\n",
                        plot.drawing(extent)
                    ),
                );
                if !plot.has_points() {
                    push(
                        &mut out,
                        format_args!(
                            "<text class=\"none\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">nothing was measured in this time</text>\n",
                            x + extent.width / 2.0,
                            y + HEADING + extent.height / 2.0
                        ),
                    );
                }
            }
            y += HEADING + row.height;
        }
        out.push_str("</svg>\n");
        out
    }

    /// The title of a plot, where it is not that of the picture, and to its right the names of its series.
    fn heading(&self, out: &mut String, plot: &Plot, extent: Extent) {
        if plot.title != self.title {
            push(
                out,
                format_args!(
                    "<text class=\"heading\" x=\"{LEFT}\" y=\"18\">{}</text>\n",
                    escape(&plot.title)
                ),
            );
        }
        if plot.series.len() < 2 {
            return;
        }
        let mut x = extent.width - RIGHT;
        for (number, series) in plot.series.iter().enumerate().rev() {
            x -= LETTER * to_float(series.name.chars().count());
            push(
                out,
                format_args!(
                    "<circle class=\"dot s{}\" cx=\"{:.1}\" cy=\"14\" r=\"3.5\"/>\
                     <text x=\"{x:.1}\" y=\"18\">{}</text>\n",
                    number % COLOURS,
                    x - 8.0,
                    escape(&series.name)
                ),
            );
            x -= 26.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Marks, Scale, Series, Unit};
    use super::*;

    fn plot(title: &str, points: Vec<(f64, f64)>) -> Plot {
        Plot {
            title: title.to_owned(),
            x: Axis::new("x", Scale::Linear, Unit::Plain),
            y: Axis::new("y", Scale::Linear, Unit::Plain),
            series: vec![Series {
                name: "<i>".to_owned(),
                marks: Marks::Line,
                points,
            }],
            guides: Vec::new(),
        }
    }

    #[test]
    fn a_drawing_can_stand_alone() {
        let svg = plot("one", vec![(0.0, 1.0), (2.0, 3.0)]).standalone_svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("class=\"line s0\"") && svg.contains("&lt;i&gt;"));
        assert!(!svg.contains("class=\"heading\"") && !svg.contains("nothing was measured"));
        assert_eq!(svg.matches("<svg").count(), 1);
    }

    #[test]
    fn a_sheet_has_all_plots_with_their_headings_and_legends() {
        let mut two = plot("two", vec![(0.0, 1.0)]);
        two.series.push(Series {
            name: "other".to_owned(),
            ..two.series[0].clone()
        });
        let sheet = Sheet {
            title: "a & b".to_owned(),
            subtitle: "of a test".to_owned(),
            rows: vec![
                Row {
                    height: 200.0,
                    plots: vec![plot("one", Vec::new()), two],
                },
                Row {
                    height: 100.0,
                    plots: vec![plot("three", vec![(0.0, 1.0)])],
                },
            ],
        };
        let svg = sheet.svg();
        assert!(svg.contains("a &amp; b") && svg.contains("of a test"));
        assert_eq!(svg.matches("class=\"heading\"").count(), 3);
        assert_eq!(svg.matches("class=\"dot s").count(), 2, "{svg}");
        assert_eq!(svg.matches("nothing was measured").count(), 1);
        assert!(svg.contains("height=\"398\"") && !svg.contains("NaN"));
    }
}
