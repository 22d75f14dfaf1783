//! What `model check` draws: Figs. 4 to 6 of the paper, and the variance-time curve.
//!
//! Source: Hryn, Jerzak, Chydzinski 2004: histogram of the trace (Fig. 4), histogram of the fitted
//! model (Fig. 5), autocovariance of the model as a thin curve against that of the trace as a thick
//! one (Fig. 6).

use linkweir_record::human::short;
use linkweir_report::page::{Page, escape};
use linkweir_report::plot::{Axis, Marks, Plot, Row, Scale, Series, Sheet, Unit};

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
    /// Variance of the mean of 1, 2, 3 ... bins: counted, and by the model; empty where there are too few.
    pub(super) counted_variance: Vec<(usize, f64)>,
    pub(super) modelled_variance: Vec<(usize, f64)>,
}

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

    /// How the variance falls when bins are joined; a third line falls as that of independent counts does.
    fn variance_time(&self) -> Plot {
        let points = |curve: &[(usize, f64)]| {
            let points = curve.iter();
            let points = points.map(|(level, variance)| (*level as f64 * self.bin_s, *variance));
            points.collect::<Vec<(f64, f64)>>()
        };
        let first = self
            .counted_variance
            .first()
            .map_or(0.0, |(_, variance)| *variance);
        let independent = self.counted_variance.iter();
        let independent = independent.map(|(level, _)| (*level, first / *level as f64));
        let series = [
            ("counts", Marks::ThickLine, points(&self.counted_variance)),
            ("model", Marks::Line, points(&self.modelled_variance)),
            (
                "independent",
                Marks::Line,
                points(&independent.collect::<Vec<_>>()),
            ),
        ];
        Plot {
            title: "Variance-time".to_owned(),
            x: Axis::new("length of joined bins", Scale::Log, Unit::Seconds),
            y: Axis::new("variance of their mean count", Scale::Log, Unit::Plain),
            series: series
                .map(|(name, marks, points)| Series {
                    name: name.to_owned(),
                    marks,
                    points,
                })
                .into(),
            guides: Vec::new(),
        }
    }

    /// The histograms of counts and model, both autocovariances, the variance-time curves.
    fn plots(&self) -> [Plot; 4] {
        let (counted, modelled) = self.histograms();
        let curve = |name: &str, marks: Marks, values: &[f64]| Series {
            name: name.to_owned(),
            marks,
            points: (1..)
                .map(|lag: u32| f64::from(lag) * self.bin_s)
                .zip(values.iter().copied())
                .collect(),
        };
        let axis = format!("lag (bins of {} s)", short(self.bin_s));
        let autocovariance = Plot {
            title: "Autocovariance".to_owned(),
            x: Axis::new(axis, Scale::Linear, Unit::Seconds),
            y: Axis::new("arrivals per bin, squared", Scale::Linear, Unit::Plain),
            series: vec![
                curve("counts", Marks::ThickLine, &self.counted_acov),
                curve("model", Marks::Line, &self.modelled_acov),
            ],
            guides: Vec::new(),
        };
        // Both over the same axes.
        let last = (counted.shares.len().max(modelled.shares.len()) * counted.width) as f64;
        let shares = counted.shares.iter().chain(&modelled.shares);
        let highest = shares.copied().fold(0.0, f64::max);
        [
            histogram("counts", &counted, (last, highest)),
            histogram("model", &modelled, (last, highest)),
            autocovariance,
            self.variance_time(),
        ]
    }

    /// The picture.
    pub(super) fn svg(&self) -> String {
        let [counts, model, autocovariance, variance] = self.plots();
        let rows = [vec![counts, model], vec![autocovariance, variance]];
        let sheet = Sheet {
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            rows: rows
                .map(|plots| Row {
                    height: 280.0,
                    plots,
                })
                .into(),
        };
        sheet.svg()
    }

    /// The page: figures as cards (value and name), the plots, their numbers.
    pub(super) fn page(&self, cards: &[(String, &str)]) -> String {
        let mut page = Page::new(&self.title);
        let about = format!("<p class=\"about\">{}</p>\n", escape(&self.subtitle));
        let cards: Vec<(String, &str, bool)> = cards
            .iter()
            .map(|(value, name)| (value.clone(), *name, false))
            .collect();
        page.raw(&about)
            .cards(&cards)
            .raw("<div class=\"grid2\">\n");
        for plot in self.plots() {
            page.section(&plot.title, false, &(plot.svg() + &plot.table()));
        }
        page.raw("</div>\n");
        page.finish(&format!("linkweir {}", env!("CARGO_PKG_VERSION")))
    }
}

/// A histogram whose axes end at `last` and `highest`.
fn histogram(of: &str, bars: &Bars, (last, highest): (f64, f64)) -> Plot {
    let axis = |label: &str, unit, end| Axis {
        limits: Some((0.0, end)),
        ..Axis::new(label, Scale::Linear, unit)
    };
    Plot {
        title: format!("Histogram of the {of}"),
        x: axis("arrivals per bin", Unit::Plain, last),
        y: axis("share of bins", Unit::Share, highest * 1.05),
        series: vec![Series {
            name: of.to_owned(),
            marks: Marks::Bars,
            points: bars.places().collect(),
        }],
        guides: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure {
            title: "a < b".to_owned(),
            subtitle: "IC 1 %".to_owned(),
            bin_s: 10.0,
            counted: vec![0.2, 0.5, 0.3],
            modelled: vec![0.1, 0.5, 0.3, 0.09, 0.01, 1e-9],
            counted_acov: vec![5.0, 2.0, -1.0],
            modelled_acov: vec![4.0, 2.0, 1.0],
            counted_variance: vec![(1, 4.0), (2, 3.0), (10, 1.0)],
            modelled_variance: vec![(1, 4.0), (2, 2.5), (10, 0.0)],
        }
    }

    #[test]
    fn four_panels() {
        let text = figure().svg();
        for part in [
            "Histogram of the counts",
            "Histogram of the model",
            "Autocovariance",
            "Variance-time",
            "independent",
            "a &lt; b",
            "lag (bins of 10 s)",
        ] {
            assert!(text.contains(part), "{part}");
        }
        // 3 bars and 5: the sixth is too rare. And the white ground.
        assert_eq!(text.matches("<rect").count(), 1 + 3 + 5);
        assert_eq!(text.matches("class=\"line thick s0\"").count(), 2);
    }

    #[test]
    fn odd_figures_are_drawn_too() {
        let nothing = Figure {
            counted: vec![1.0],
            modelled: Vec::new(),
            counted_acov: vec![0.0],
            modelled_acov: Vec::new(),
            counted_variance: Vec::new(),
            modelled_variance: Vec::new(),
            ..figure()
        };
        let long = Figure {
            counted: vec![1e-5; 100_000],
            modelled: vec![1e-5; 200_000],
            counted_acov: vec![1e300; 5],
            ..figure()
        };
        for figure in [nothing, long] {
            let text = figure.svg();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(text.matches("<rect").count() < 400);
            assert!(figure.page(&[]).contains("</html>"));
        }
    }
}
