//! The text format of Prometheus (version 0.0.4): lists of metrics, their samples, histograms.

use std::fmt::{Display, Write as _};

use linkweir_record::human::exact_seconds;
use linkweir_sketch::LogLinear;

use crate::points::{Metric, Point, add_sample};

/// `Content-Type` of the text.
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The samples of a family, out of what a `S` says.
pub(crate) type Write<S> = fn(&S, &mut Samples<'_>);

/// A metric: its name, its type, its labels, what it counts, and its samples.
#[derive(Debug)]
pub struct Family<S> {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
    pub(crate) samples: Write<S>,
}

/// Declares a list of metrics: type, name, labels, what it is, and its samples.
macro_rules! families {
    ($visibility:vis $list:ident: $of:ty; $($kind:ident $name:literal [$($label:literal),*] $help:literal => $samples:expr;)+) => {
        $visibility const $list: &[$crate::exposition::Family<$of>] = &[$($crate::exposition::Family {
            name: $name,
            kind: stringify!($kind),
            labels: &[$($label),*],
            help: $help,
            samples: $samples,
        }),+];
    };
}
pub(crate) use families;

/// Takes the samples of a family. One without a sample is left out: a name with no value would look like
/// something that is measured.
#[derive(Debug)]
pub struct Samples<'a> {
    out: Out<'a>,
    name: &'static str,
    labels: &'static [&'static str],
}

/// Where samples go.
#[derive(Debug)]
enum Out<'a> {
    /// To the text format, below the lines that stand above the first sample until it comes.
    Text {
        text: &'a mut String,
        head: String,
    },
    Points(&'a mut Vec<Point>),
}

/// Escapes a label value: backslash, quotation mark and line feed.
fn push_escaped(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

impl Samples<'_> {
    /// The value of a family without labels.
    pub(crate) fn one(&mut self, value: impl Display) {
        self.of(&[], value);
    }

    /// The value for these values of the labels.
    pub(crate) fn of(&mut self, values: &[&str], value: impl Display) {
        self.line("", values, None, value);
    }

    /// The values by the one label.
    pub(crate) fn by<N: AsRef<str>, V: Display>(&mut self, all: impl IntoIterator<Item = (N, V)>) {
        for (name, value) in all {
            self.of(&[name.as_ref()], value);
        }
    }

    /// A histogram; `sum` is in the unit of the texts of the bounds.
    pub(crate) fn buckets<const N: usize>(
        &mut self,
        values: &[&str],
        bounds: &[(u64, &'static str); N],
        buckets: &Buckets<N>,
        sum: impl Display,
    ) {
        let mut below = 0;
        for (count, (_, le)) in buckets.buckets.iter().zip(bounds) {
            below = u64::saturating_add(below, *count);
            self.line("_bucket", values, Some(le), below);
        }
        self.line("_bucket", values, Some("+Inf"), buckets.count);
        self.line("_sum", values, None, sum);
        self.line("_count", values, None, buckets.count);
    }

    /// A histogram of nanoseconds, in seconds.
    pub(crate) fn times<const N: usize>(
        &mut self,
        values: &[&str],
        bounds: &[(u64, &'static str); N],
        buckets: &Buckets<N>,
    ) {
        self.buckets(values, bounds, buckets, exact_seconds(buckets.sum));
    }

    /// A summary of nanoseconds, in seconds: its quantiles by the second label, sum and count by the first.
    pub(crate) fn summary(
        &mut self,
        name: &str,
        quantiles: &[(&str, u64)],
        sum_ns: u64,
        count: u64,
    ) {
        for (quantile, nanos) in quantiles {
            self.of(&[name, quantile], exact_seconds(u128::from(*nanos)));
        }
        let sum = exact_seconds(u128::from(sum_ns));
        self.line("_sum", &[name], None, sum);
        self.line("_count", &[name], None, count);
    }

    fn line(&mut self, suffix: &str, values: &[&str], le: Option<&str>, value: impl Display) {
        let labels = self.labels.iter().copied().zip(values.iter().copied());
        let (text, head) = match &mut self.out {
            Out::Text { text, head } => (text, head),
            Out::Points(points) => {
                return add_sample(points, suffix, labels, le, &value.to_string());
            }
        };
        text.push_str(head);
        head.clear();
        text.push_str(self.name);
        text.push_str(suffix);
        let labels = labels.chain(le.map(|le| ("le", le)));
        let mut open = '{';
        for (label, value) in labels {
            text.push(open);
            open = ',';
            text.push_str(label);
            text.push_str("=\"");
            push_escaped(text, value);
            text.push('"');
        }
        let close = if open == ',' { "}" } else { "" };
        // Writing to a String cannot fail.
        writeln!(text, "{close} {value}").ok();
    }
}

/// Writes the families of a list.
pub(crate) fn expose<S>(text: &mut String, families: &[Family<S>], said: &S) {
    for family in families {
        let Family {
            name, kind, help, ..
        } = family;
        let mut samples = Samples {
            out: Out::Text {
                head: format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
                text,
            },
            name,
            labels: family.labels,
        };
        (family.samples)(said, &mut samples);
    }
}

/// The samples of a list as values, for other formats.
pub(crate) fn collect<S>(all: &mut Vec<Metric>, families: &[Family<S>], said: &S) {
    for family in families {
        let mut points = Vec::new();
        (family.samples)(
            said,
            &mut Samples {
                out: Out::Points(&mut points),
                name: family.name,
                labels: family.labels,
            },
        );
        if !points.is_empty() {
            all.push(Metric {
                name: family.name,
                kind: family.kind,
                help: family.help,
                points,
            });
        }
    }
}

/// A histogram with fixed bounds, cumulative over a run. The caller brings the bounds: pairs of a bound and of its text.
///
/// Cost: a binary search and an addition a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buckets<const N: usize> {
    /// Not cumulated; what is above the last bound is in `count` only.
    pub(crate) buckets: [u64; N],
    pub(crate) count: u64,
    pub(crate) sum: u128,
}

impl<const N: usize> Default for Buckets<N> {
    fn default() -> Self {
        Self {
            buckets: [0; N],
            count: 0,
            sum: 0,
        }
    }
}

impl<const N: usize> Buckets<N> {
    /// Adds those of another run.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// What came since `earlier`, an older state of the same histogram.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut grown = *self;
        for (mine, before) in grown.buckets.iter_mut().zip(&earlier.buckets) {
            *mine = mine.saturating_sub(*before);
        }
        grown.count = grown.count.saturating_sub(earlier.count);
        grown.sum = grown.sum.saturating_sub(earlier.sum);
        grown
    }

    /// Counts all values of a histogram, each within 0.1 % of what it is; their sum is exact.
    pub(crate) fn add(&mut self, bounds: &[(u64, &str); N], values: &LogLinear) {
        for (value, times) in values.buckets() {
            let at = bounds.partition_point(|(bound, _)| *bound < value);
            if let Some(bucket) = self.buckets.get_mut(at) {
                *bucket = bucket.saturating_add(times);
            }
        }
        self.count = self.count.saturating_add(values.count());
        self.sum = self.sum.saturating_add(values.sum());
    }

    /// Counts a value; bounds are inclusive.
    pub(crate) fn record(&mut self, bounds: &[(u64, &str); N], value: u64) {
        let at = bounds.partition_point(|(bound, _)| *bound < value);
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += u128::from(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        families! {
            LIST: ();
            gauge "x" ["a", "b"] "X." => |(), out| out.of(&["q\"b\\c\nd", ""], 1.5);
            counter "y" [] "Y." => |(), out| out.one(2);
        }
        let mut text = String::new();
        expose(&mut text, LIST, &());
        assert_eq!(
            text,
            "# HELP x X.\n# TYPE x gauge\nx{a=\"q\\\"b\\\\c\\nd\",b=\"\"} 1.5\n\
             # HELP y Y.\n# TYPE y counter\ny 2\n"
        );
        assert_eq!(exact_seconds(1_000_000_001), "1.000000001");
    }

    #[test]
    fn a_family_without_samples_is_left_out() {
        families! {
            LIST: ();
            counter "a" ["rule"] "Nothing." => |(), out| out.by([("", 0); 0]);
            counter "b" ["rule"] "Two." => |(), out| out.by([("x", 1), ("y", 2)]);
        }
        let mut text = String::new();
        expose(&mut text, LIST, &());
        let want = "# HELP b Two.\n# TYPE b counter\nb{rule=\"x\"} 1\nb{rule=\"y\"} 2\n";
        assert_eq!(text, want);
    }
}
