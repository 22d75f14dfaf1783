//! A row: the sum of the intervals of its time, and its form in the file.

use serde::{Deserialize, Serialize};

use crate::api::{Dropped, TableState, Tick};
use crate::figure::Entries;
use crate::figures::Counts as _;
use crate::history::Spread;
use crate::interval::{Open, Sums};
use crate::kind::Kind;
use crate::sketch::wire::Small;
use crate::text::seconds;

/// A row in the file, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row<C> {
    /// End of its last interval, nanoseconds since the epoch.
    to_ns: u64,
    /// Lengths of its intervals together.
    length_ns: u64,
    packets: u64,
    bytes: u64,
    dropped: Dropped,
    dropped_total: Dropped,
    table: TableState,
    counts: C,
    /// In the order of the distributions of the kind; none where they would not fit.
    spreads: Vec<Option<Values>>,
}

/// A small histogram.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Values {
    small: Small,
    sum: u128,
    min: u64,
}

impl Values {
    fn of(spread: &Spread) -> Option<Self> {
        Some(Self {
            small: Small::of(&spread.values)?,
            sum: spread.sum,
            min: spread.min,
        })
    }

    fn spread(self) -> Option<Spread> {
        Some(Spread {
            values: Small::values(Some(&self.small))?,
            sum: self.sum,
            min: self.min,
        })
    }
}

/// A row that still grows.
#[derive(Debug)]
pub(super) struct OpenRow<K: Kind> {
    pub(super) number: Option<u64>,
    /// Until when an earlier run had measured it, nanoseconds since the epoch.
    pub(super) measured_to: u64,
    to_ns: u64,
    length_ns: u64,
    dropped_total: Dropped,
    sums: Sums<K>,
    /// What an earlier run had of its distributions.
    earlier: Vec<Option<Spread>>,
}

impl<K: Kind> Default for OpenRow<K> {
    fn default() -> Self {
        Self {
            number: None,
            measured_to: 0,
            to_ns: 0,
            length_ns: 0,
            dropped_total: Dropped::default(),
            sums: Sums::default(),
            earlier: Vec::new(),
        }
    }
}

impl<K: Kind> OpenRow<K> {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number: Some(number),
            ..Self::default()
        }
    }

    /// The row that an earlier run began; an empty one where it cannot be read.
    pub(super) fn read(number: u64, bytes: &[u8]) -> Self {
        let Some((row, counts)) = read::<K>(bytes) else {
            return Self::new(number);
        };
        Self {
            number: Some(number),
            measured_to: row.to_ns,
            to_ns: row.to_ns,
            length_ns: row.length_ns,
            dropped_total: row.dropped_total,
            sums: Sums {
                packets: row.packets,
                bytes: row.bytes,
                dropped: row.dropped,
                table: row.table,
                counts,
            },
            earlier: spreads(row.spreads),
        }
    }

    pub(super) fn add(&mut self, closed: &Open<K>, length_ns: u64, total: &Dropped) {
        self.to_ns = self.to_ns.max(closed.end);
        self.length_ns = self.length_ns.saturating_add(length_ns);
        self.dropped_total = *total;
        self.sums.merge(&closed.sums);
    }

    /// Its form in the file, at most `most` bytes; without distributions where it has more with them, `None` where
    /// it has more without.
    pub(super) fn bytes(&self, most: usize) -> Option<Vec<u8>> {
        let now = self.sums.counts.distributions().into_iter().enumerate();
        let spreads = now.map(|(at, values)| {
            let mut spread = Spread::of(values);
            if let Some(Some(earlier)) = self.earlier.get(at) {
                spread.merge(earlier);
            }
            Values::of(&spread)
        });
        let mut row = Row {
            to_ns: self.to_ns,
            length_ns: self.length_ns,
            packets: self.sums.packets,
            bytes: self.sums.bytes,
            dropped: self.sums.dropped,
            dropped_total: self.dropped_total,
            table: self.sums.table,
            counts: &self.sums.counts,
            spreads: spreads.collect(),
        };
        let fits = |bytes: &Vec<u8>| bytes.len() <= most;
        let whole = serde_json::to_vec(&row).ok().filter(fits);
        whole.or_else(|| {
            row.spreads.clear();
            serde_json::to_vec(&row).ok().filter(fits)
        })
    }
}

fn spreads(all: Vec<Option<Values>>) -> Vec<Option<Spread>> {
    all.into_iter()
        .map(|values| values.and_then(Values::spread))
        .collect()
}

/// A row and its counts; what is in a file need not be what a program wrote.
fn read<K: Kind>(bytes: &[u8]) -> Option<(Row<()>, K::Counts)> {
    let row: Row<Entries> = serde_json::from_slice(bytes).ok()?;
    let counts = K::Counts::take(row.counts).ok()?;
    let row = Row {
        to_ns: row.to_ns,
        length_ns: row.length_ns,
        packets: row.packets,
        bytes: row.bytes,
        dropped: row.dropped,
        dropped_total: row.dropped_total,
        table: row.table,
        counts: (),
        spreads: row.spreads,
    };
    Some((row, counts))
}

/// End of the last interval of a row.
pub(super) fn ends(bytes: &[u8]) -> Option<u64> {
    let row: Row<serde::de::IgnoredAny> = serde_json::from_slice(bytes).ok()?;
    Some(row.to_ns)
}

/// What readers get of a row.
pub(super) fn tick<K: Kind>(number: u64, bytes: &[u8]) -> Option<Tick<K::Figures>> {
    let (row, counts) = read::<K>(bytes)?;
    let mut figures = counts.figures();
    let percentiles = K::Counts::percentiles(&mut figures);
    for ((_, percentiles), spread) in percentiles.into_iter().zip(spreads(row.spreads)) {
        *percentiles = spread.and_then(|spread| spread.percentiles());
    }
    Some(Tick {
        id: number,
        t_ms: row.to_ns / 1_000_000,
        interval_s: seconds(row.length_ns),
        packets: row.packets,
        bytes: row.bytes,
        figures,
        dropped: row.dropped,
        dropped_total: row.dropped_total,
        table: row.table,
        alerts: Vec::new(),
    })
}
