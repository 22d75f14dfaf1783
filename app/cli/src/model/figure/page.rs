//! The same as a page.

use linkweir_sink::report::page::{Page, escape};
use linkweir_sink::report::plot::{Axis, Marks, Plot, Scale, Series, Unit};

use super::{Bars, Figure};

fn histogram(title: &str, bars: &Bars) -> Plot {
    Plot {
        title: title.to_owned(),
        x: Axis::new("arrivals per bin", Scale::Linear, Unit::Plain),
        y: Axis::new("share of bins", Scale::Linear, Unit::Share),
        series: vec![Series {
            name: title.to_owned(),
            marks: Marks::Bars,
            points: bars.places().collect(),
        }],
        guides: Vec::new(),
    }
}

/// The page: figures as cards (value and name), the plots, their numbers.
pub(in crate::model) fn page(figure: &Figure, cards: &[(String, &str)]) -> String {
    let (counted, modelled) = figure.histograms();
    let curve = |name: &str, values: &[f64]| Series {
        name: name.to_owned(),
        marks: Marks::Line,
        points: (1..)
            .map(|lag: u32| f64::from(lag) * figure.bin_s)
            .zip(values.iter().copied())
            .collect(),
    };
    let autocovariance = Plot {
        title: "Autocovariance".to_owned(),
        x: Axis::new("lag (s)", Scale::Linear, Unit::Seconds),
        y: Axis::new("arrivals per bin, squared", Scale::Linear, Unit::Plain),
        series: vec![
            curve("counts", &figure.counted_acov),
            curve("model", &figure.modelled_acov),
        ],
        guides: Vec::new(),
    };
    let mut page = Page::new(&figure.title);
    let about = format!("<p class=\"about\">{}</p>\n", escape(&figure.subtitle));
    let cards: Vec<(String, &str, bool)> = cards
        .iter()
        .map(|(value, name)| (value.clone(), *name, false))
        .collect();
    page.raw(&about)
        .cards(&cards)
        .raw("<div class=\"grid2\">\n");
    for (heading, is_wide, plot) in [
        (
            "Histogram of the counts",
            false,
            histogram("counts", &counted),
        ),
        (
            "Histogram of the model",
            false,
            histogram("model", &modelled),
        ),
        ("Autocovariance", true, autocovariance),
    ] {
        page.section(heading, is_wide, &(plot.svg() + &plot.table()));
    }
    page.raw("</div>\n");
    page.finish(&format!("linkweir {}", env!("CARGO_PKG_VERSION")))
}
