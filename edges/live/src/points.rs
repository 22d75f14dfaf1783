//! Metrics as values, for formats other than the text of Prometheus: the same families, the same samples.

use crate::metrics::unit_of_name;

/// A metric with its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// As in `/metrics`.
    pub name: &'static str,
    /// `counter`, `gauge`, `histogram` or `summary`.
    pub kind: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Its samples; at least one.
    pub points: Vec<Point>,
}

impl Metric {
    /// Its unit by the Unified Code for Units of Measure: `s`, `By`, or `1`.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match unit_of_name(self.name) {
            "seconds" => "s",
            "bytes" => "By",
            _ => "1",
        }
    }
}

/// A sample and its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Names and values.
    pub labels: Vec<(&'static str, String)>,
    /// What was measured.
    pub value: PointValue,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub enum PointValue {
    /// A whole number.
    Whole(i64),
    /// Any number.
    Real(f64),
    /// How often values fell between bounds.
    Histogram {
        /// Upper bounds, inclusive, in the unit of the metric.
        bounds: Vec<f64>,
        /// Values up to each bound, those below the bound before included; behind them all values.
        below: Vec<u64>,
        /// The sum of all values.
        sum: f64,
    },
    /// Some quantiles, and what all values came to.
    Summary {
        /// Quantiles, 0 to 1, and their values.
        quantiles: Vec<(f64, f64)>,
        /// The sum of all values; 0 where it is not known.
        sum: f64,
        /// How many they were; 0 where it is not known.
        count: u64,
    },
}

/// Adds a sample of the text format to the point that it belongs to: buckets, sum and count come one after the other.
pub(crate) fn add_sample<'a>(
    points: &mut Vec<Point>,
    suffix: &str,
    labels: impl Iterator<Item = (&'static str, &'a str)>,
    le: Option<&str>,
    value: &str,
) {
    let mut quantile = None;
    let mut own = Vec::new();
    for (label, text) in labels {
        match label {
            "quantile" => quantile = text.parse().ok(),
            label => own.push((label, text.to_owned())),
        }
    }
    let real: f64 = value.parse().unwrap_or_default();
    let whole: u64 = value.parse().unwrap_or_default();
    let is_same = points.last().is_some_and(|last| last.labels == own);
    let empty = match (suffix, quantile) {
        ("_bucket", _) => PointValue::Histogram {
            bounds: Vec::new(),
            below: Vec::new(),
            sum: 0.0,
        },
        ("_sum" | "_count", _) | (_, Some(_)) => PointValue::Summary {
            quantiles: Vec::new(),
            sum: 0.0,
            count: 0,
        },
        _ => {
            let value = value
                .parse()
                .map_or(PointValue::Real(real), PointValue::Whole);
            points.push(Point { labels: own, value });
            return;
        }
    };
    if !is_same {
        points.push(Point {
            labels: own,
            value: empty,
        });
    }
    match points.last_mut().map(|last| &mut last.value) {
        Some(PointValue::Histogram { bounds, below, sum }) => match (suffix, le) {
            ("_bucket", Some(le)) => {
                bounds.extend(le.parse::<f64>().ok().filter(|bound| bound.is_finite()));
                below.push(whole);
            }
            ("_sum", _) => *sum = real,
            _ => {}
        },
        Some(PointValue::Summary {
            quantiles,
            sum,
            count,
        }) => match (suffix, quantile) {
            ("_sum", _) => *sum = real,
            ("_count", _) => *count = whole,
            (_, Some(quantile)) => quantiles.push((quantile, real)),
            _ => {}
        },
        _ => {}
    }
}
