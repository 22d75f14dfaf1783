//! Two sets of records side by side.

use std::collections::BTreeMap;

use linkweir_record::human::{percent, to_f64};
use linkweir_sketch::Coarse;

use super::figure::{PERCENTILES, fine, percentile};
use super::{Figure, Group, StoredReport, Table};

/// Values from which on a percentile is compared, by those of [`PERCENTILES`]: at least five are expected above it.
const ENOUGH: [u64; 3] = [20, 100, 500];
/// How much too large a percentile may be, as one in so many: of all records, and of a group.
const FINE: u64 = 1024;
const COARSE: u64 = 8;

/// A key, and whether it was cut off.
type Name<'a> = (&'a [u8], bool);
/// The weight and the group of a key in both sets.
type Both<'a> = [Option<(u64, &'a Group)>; 2];

/// Whether a percentile is another one in the second set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// By no more than the sketch may err, or no percentile.
    No,
    /// Larger by more than that.
    Up,
    /// Smaller by more than that.
    Down,
    /// There are too few values to say.
    TooFew,
}

/// A figure in both sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// In the first and in the second set.
    pub figures: [Figure; 2],
    /// Whether it moved.
    pub moved: Moved,
}

/// A group in both sets.
#[derive(Debug)]
pub struct ComparedRow {
    /// Its key, for people.
    pub key: String,
    /// The condition (`--where`) that its records meet.
    pub condition: Option<String>,
    /// Its figures.
    pub figures: Vec<Compared>,
}

impl Compared {
    /// For people: both, and by how much the second is more.
    #[must_use]
    pub fn text(&self) -> String {
        let [one, other] = self.figures;
        let mark = match self.moved {
            Moved::No | Moved::TooFew => "",
            Moved::Up => " ▲",
            Moved::Down => " ▼",
        };
        let change = match (one, other) {
            (Figure::Count(a) | Figure::Bytes(a), Figure::Count(b) | Figure::Bytes(b))
                if a > 0 && a != b =>
            {
                let sign = if b > a { '+' } else { '-' };
                format!(" ({sign}{})", percent(a.abs_diff(b), a))
            }
            _ => String::new(),
        };
        format!("{} → {}{change}{mark}", one.text(), other.text())
    }

    /// The second less the first, where both are there.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.figures[1].number()? - self.figures[0].number()?)
    }
}

/// Compares percentiles that may be too large by one in `error`.
fn moved(values: [Option<u64>; 2], error: u64) -> Moved {
    let [Some(a), Some(b)] = values else {
        return Moved::TooFew;
    };
    let limit = |value: u64| to_f64(value) * (1.0 + 1.0 / to_f64(error));
    if to_f64(b) > limit(a) {
        Moved::Up
    } else if to_f64(a) > limit(b) {
        Moved::Down
    } else {
        Moved::No
    }
}

fn plain(name: &str, figures: [Figure; 2]) -> Compared {
    Compared {
        name: name.to_owned(),
        figures,
        moved: Moved::No,
    }
}

/// Figures of all records of two reports of one kind, and of each distribution.
#[must_use]
pub fn compare(reports: [&StoredReport; 2]) -> (Vec<Compared>, Vec<(&'static str, Vec<Compared>)>) {
    let [one, other] = reports;
    let pairs = one.totals().into_iter().zip(other.totals());
    let mut totals: Vec<Compared> = pairs
        .map(|((name, a), (_, b))| plain(&name, [a, b]))
        .collect();
    let apart = one.apart().or_else(|| other.apart()).map(|(of, _)| of);
    if let Some(of) = apart {
        let figures = reports.map(|report| Figure::Count(report.apart.records));
        totals.push(plain(of.noun, figures));
    }
    let mut distributions = Vec::new();
    let titles = one.subject.spans.iter().map(|(title, _)| *title);
    let spans = titles.zip(one.spans.iter().zip(&other.spans));
    let times = apart.map(|of| (of.times, (&one.apart.times, &other.apart.times)));
    for (title, (a, b)) in spans.chain(times) {
        if a.count() == 0 && b.count() == 0 {
            continue;
        }
        let mut rows = vec![plain("count", [a, b].map(|s| Figure::Count(s.count())))];
        for ((name, per_mille, shown), enough) in PERCENTILES.into_iter().zip(ENOUGH) {
            let figures = [a, b].map(|s| Figure::Span(fine(s, per_mille, shown)));
            let moved = moved([a, b].map(|s| fine(s, per_mille, enough)), FINE);
            rows.push(Compared {
                name: name.to_owned(),
                figures,
                moved,
            });
        }
        rows.push(plain("max", [a, b].map(|s| Figure::Span(s.max()))));
        distributions.push((title, rows));
    }
    (totals, distributions)
}

impl StoredReport {
    /// The first rows of a table of two reports, by the sum of their weights.
    #[must_use]
    pub fn compared_rows(
        &self,
        other: &Self,
        tables: [&Table; 2],
        most: usize,
    ) -> Vec<ComparedRow> {
        let none = Group::default();
        let mut keys: BTreeMap<Name<'_>, Both<'_>> = BTreeMap::new();
        for (side, table) in tables.iter().enumerate() {
            for entry in table.groups.entries() {
                let both = keys.entry((entry.key, entry.is_truncated)).or_default();
                if let Some(of) = both.get_mut(side) {
                    *of = Some((entry.count, entry.payload));
                }
            }
        }
        let mut all: Vec<_> = keys.into_iter().collect();
        let weight = |both: &Both<'_>| {
            let weights = both.iter().flatten().map(|(weight, _)| *weight);
            weights.fold(0_u64, u64::saturating_add)
        };
        // In the order of keys among equals.
        all.sort_by_key(|(_, both)| std::cmp::Reverse(weight(both)));
        all.truncate(most);
        let key = &tables[0].key;
        let set = if self.apart().is_some() { self } else { other };
        let row = |((bytes, is_truncated), both): (Name<'_>, Both<'_>)| {
            let groups = both.map(|of| of.map_or(&none, |(_, group)| group));
            ComparedRow {
                key: key.shown(bytes, is_truncated),
                condition: set.narrowed(key.condition(self.fields, bytes, is_truncated)),
                figures: self.compared_groups(other, groups),
            }
        };
        all.into_iter().map(row).collect()
    }

    fn compared_groups(&self, other: &Self, groups: [&Group; 2]) -> Vec<Compared> {
        let [a, b] = groups;
        let pairs = self.of_group(a).into_iter().zip(other.of_group(b));
        let compared = pairs.map(|((name, one), (_, two))| {
            let number = PERCENTILES.iter().position(|(of, ..)| *of == name);
            let percentiles = number.and_then(|at| Some((PERCENTILES.get(at)?, ENOUGH.get(at)?)));
            let moved = match percentiles {
                None => Moved::No,
                Some(((_, per_mille, _), enough)) => {
                    let of = |spans: &Coarse| percentile(spans, *per_mille, *enough);
                    moved([of(&a.spans), of(&b.spans)], COARSE)
                }
            };
            Compared {
                name,
                figures: [one, two],
                moved,
            }
        });
        compared.collect()
    }
}
