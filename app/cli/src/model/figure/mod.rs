//! What `model check` draws: Figs. 4 to 6 of the paper.
//!
//! Source: Hryn, Jerzak, Chydzinski 2004: histogram of the trace (Fig. 4), histogram of the fitted
//! model (Fig. 5), autocovariance of the model as a thin curve against that of the trace as a thick
//! one (Fig. 6).

mod frame;
mod page;

pub(super) use page::page;

use crate::picture::scene::{Anchor, Paint, Scene, Shape, TextSize};
use frame::Frame;

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// Name of the model and of the counts.
    pub(super) title: String,
    /// The figures in a line.
    pub(super) subtitle: String,
    /// Length of a bin, seconds.
    pub(super) bin_s: f64,
    /// Share of bins that hold 0, 1, 2 ... arrivals: counted, and by the model.
    pub(super) counted: Vec<f64>,
    pub(super) modelled: Vec<f64>,
    /// Autocovariance from lag 1 on: counted, and by the model.
    pub(super) counted_acov: Vec<f64>,
    pub(super) modelled_acov: Vec<f64>,
}

const WIDTH: f32 = 900.0;
const LEFT: f32 = 76.0;
const RIGHT: f32 = 880.0;
const DARK: Paint = Paint::new(0x1b2330);
const GREY: Paint = Paint::new(0x566072);
const TRACE: Paint = Paint::new(0x2563b8);
const MODEL: Paint = Paint::new(0xc85a1a);
/// Bars that a histogram has at most.
const MOST_BARS: usize = 120;

/// A histogram with at most [`MOST_BARS`] bars: where each begins, and the share of bins in it.
#[derive(Debug, Clone, PartialEq)]
struct Bars {
    width: usize,
    shares: Vec<f64>,
}

impl Bars {
    fn of(shares: &[f64], width: usize) -> Self {
        Self {
            width,
            shares: shares.chunks(width).map(|bars| bars.iter().sum()).collect(),
        }
    }

    /// Where each bar begins, and its share.
    fn places(&self) -> impl Iterator<Item = (f64, f64)> {
        let starts = (0..self.shares.len()).map(|at| (at * self.width) as f64);
        starts.zip(self.shares.iter().copied())
    }
}

impl Figure {
    /// Both histograms, over the same bars.
    fn histograms(&self) -> (Bars, Bars) {
        // Beyond the last count, as long as the model has more than a ten thousandth.
        let tail = self.modelled.iter().rposition(|share| *share > 1e-4);
        let longest = self
            .counted
            .len()
            .max(tail.map_or(0, |last| last + 1))
            .max(1);
        let width = longest.div_ceil(MOST_BARS);
        let modelled = self.modelled.get(..longest).unwrap_or(&self.modelled);
        (Bars::of(&self.counted, width), Bars::of(modelled, width))
    }

    /// The picture.
    pub(super) fn scene(&self) -> Scene {
        let mut scene = Scene {
            width: WIDTH,
            height: 640.0,
            title: format!("{}, {}", self.title, self.subtitle),
            shapes: Vec::new(),
        };
        scene.text(
            (LEFT, 26.0),
            (TextSize::Large, Anchor::Start, DARK),
            &*self.title,
        );
        scene.text(
            (LEFT, 44.0),
            (TextSize::Small, Anchor::Start, GREY),
            &*self.subtitle,
        );
        let (counted, modelled) = self.histograms();
        let most = |bars: &Bars| bars.shares.iter().copied().fold(0.0, f64::max);
        let highest = most(&counted).max(most(&modelled)) * 100.0;
        let bars = counted.shares.len().max(modelled.shares.len());
        let last = (bars * counted.width) as f64;
        let middle = f32::midpoint(LEFT, RIGHT);
        for (left, right, bars, paint, title) in [
            (
                LEFT,
                middle - 20.0,
                &counted,
                TRACE,
                "Histogram of the counts",
            ),
            (
                middle + 60.0,
                RIGHT,
                &modelled,
                MODEL,
                "Histogram of the model",
            ),
        ] {
            let frame = Frame {
                left,
                right,
                top: 86.0,
                bottom: 290.0,
                x: (0.0, last),
                y: (0.0, highest * 1.05),
            };
            frame.draw(&mut scene, title, "arrivals per bin", "bins, %");
            for (start, share) in bars.places() {
                let (from, to) = (frame.x(start), frame.x(start + bars.width as f64));
                let y = frame.y(share * 100.0);
                let width = (to - from - 0.5).max(0.5);
                let bar = [from, y, width, frame.bottom - y];
                scene.shapes.push(Shape::Rectangle(bar, paint));
            }
        }
        self.draw_autocovariance(&mut scene);
        scene
    }

    fn draw_autocovariance(&self, scene: &mut Scene) {
        let both = || self.counted_acov.iter().chain(&self.modelled_acov).copied();
        let highest = both().fold(0.0, f64::max);
        let lowest = both().fold(0.0, f64::min);
        let room = (highest - lowest) * 0.05;
        let lags = self.counted_acov.len().max(self.modelled_acov.len());
        let frame = Frame {
            left: LEFT,
            right: RIGHT,
            top: 362.0,
            bottom: 590.0,
            x: (0.0, lags as f64),
            y: (
                if lowest < 0.0 { lowest - room } else { 0.0 },
                highest + room,
            ),
        };
        let axis = format!("lag, bins of {} s", linkweir_sink::human::short(self.bin_s));
        frame.draw(scene, "Autocovariance", &axis, "arrivals per bin, squared");
        for (curve, paint, width, name, x) in [
            (
                &self.counted_acov,
                TRACE,
                3.0,
                "counts (thick)",
                RIGHT - 250.0,
            ),
            (
                &self.modelled_acov,
                MODEL,
                1.2,
                "model (thin)",
                RIGHT - 110.0,
            ),
        ] {
            let lags = (1..).map(f64::from as fn(u32) -> f64);
            let points = lags.zip(curve).map(|(lag, c)| (frame.x(lag), frame.y(*c)));
            scene
                .shapes
                .push(Shape::Line(points.collect(), paint, width));
            scene.line((x, 350.0), (x + 18.0, 350.0), paint, width);
            let ink = (TextSize::Small, Anchor::Start, DARK);
            scene.text((x + 24.0, 354.0), ink, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::svg::document;

    fn figure() -> Figure {
        Figure {
            title: "a < b".to_owned(),
            subtitle: "IC 1 %".to_owned(),
            bin_s: 10.0,
            counted: vec![0.2, 0.5, 0.3],
            modelled: vec![0.1, 0.5, 0.3, 0.09, 0.01, 1e-9],
            counted_acov: vec![5.0, 2.0, -1.0],
            modelled_acov: vec![4.0, 2.0, 1.0],
        }
    }

    fn svg(figure: &Figure) -> String {
        document(&figure.scene())
    }

    #[test]
    fn three_panels() {
        let text = svg(&figure());
        for part in [
            "Histogram of the counts",
            "Histogram of the model",
            "Autocovariance",
            "a &lt; b",
            "lag, bins of 10 s",
        ] {
            assert!(text.contains(part), "{part}");
        }
        // 3 bars and 5: the sixth is too rare. And the white ground.
        assert_eq!(text.matches("<rect").count(), 1 + 3 + 5);
        assert_eq!(text.matches("stroke-width=\"3\"").count(), 2);
    }

    #[test]
    fn odd_figures_are_drawn_too() {
        let nothing = Figure {
            counted: vec![1.0],
            modelled: Vec::new(),
            counted_acov: vec![0.0],
            modelled_acov: Vec::new(),
            ..figure()
        };
        let long = Figure {
            counted: vec![1e-5; 100_000],
            modelled: vec![1e-5; 200_000],
            counted_acov: vec![1e300; 5],
            ..figure()
        };
        for figure in [nothing, long] {
            let text = svg(&figure);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(text.matches("<rect").count() < 400);
            assert!(page(&figure, &[]).contains("</html>"));
        }
    }
}
