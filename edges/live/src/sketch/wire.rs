//! The messages as JSON has them, and their small parts.

use linkweir_sketch::{Coarse, LogLinear};
use serde::{Deserialize, Serialize};

use crate::exposition::Buckets;
use crate::values::{Dropped, TableState};

/// Largest count of a message: more than any probe sees in an interval, and small enough that sums of
/// forged messages stay in range for long.
const MAX_COUNT: u64 = 1 << 48;

/// Why a message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// More than [`MAX_BYTES`](super::MAX_BYTES).
    #[error("too large")]
    TooLarge,
    /// No JSON, or not the fields of a sketch.
    #[error("malformed")]
    Malformed,
    /// A version of the format that this program does not know.
    #[error("another version")]
    Version,
    /// A sketch of another kind of record.
    #[error("another kind")]
    Subject,
    /// Numbers that contradict one another.
    #[error("contradictory")]
    Contradictory,
    /// From more probes than can be tracked.
    #[error("too many probes")]
    TooManyProbes,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::TooLarge,
        Self::Malformed,
        Self::Version,
        Self::Subject,
        Self::Contradictory,
        Self::TooManyProbes,
    ];

    /// The word in the API and in `/metrics`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::Version => "version",
            Self::Subject => "other_kind",
            Self::Contradictory => "contradictory",
            Self::TooManyProbes => "too_many_probes",
        }
    }
}

/// A message: who says it, of which time, and what to add. `C` are the counts of an interval, `P` is what
/// is kept with a key, `S` a series of `/metrics`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message<C, P, S> {
    pub(super) linkweir_sketch: u32,
    pub(super) subject: String,
    pub(super) probe: String,
    pub(super) run: u64,
    pub(super) seq: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub(super) interval: Option<Interval<C>>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) distributions: Vec<Distribution>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) series: Vec<S>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(super) tables: Vec<Table<P>>,
    /// The run has ended: this is its last message.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) has_ended: bool,
}

/// What every message has, to find out whether the rest can be read.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    pub(super) linkweir_sketch: u32,
    pub(super) subject: String,
}

/// Sums of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Interval<C> {
    /// Rises by one with every interval of the run, from 1.
    pub(super) number: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) dropped: Dropped,
    pub(super) table: TableState,
    /// Capture times of the first and of the latest packet of the run.
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: Option<u64>,
    /// Parts of the input that could not be read, in the interval.
    pub(super) faults: u64,
    /// Records that were counted in a later interval than their own.
    pub(super) late_records: u64,
    pub(super) counts: C,
}

/// A histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Distribution {
    /// Of what.
    pub(super) of: String,
    /// For each used bucket how far its largest value is from that of the one before, and its count.
    pub(super) buckets: Vec<(u64, u64)>,
    pub(super) sum: u128,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Distribution {
    /// `None` of an empty histogram.
    pub(crate) fn of(of: &str, values: &LogLinear) -> Option<Self> {
        let mut before = 0;
        let steps = values.buckets().map(|(upper, count)| {
            let step = upper - before;
            before = upper;
            (step, count)
        });
        Some(Self {
            of: of.to_owned(),
            buckets: steps.collect(),
            sum: values.sum(),
            min: values.min()?,
            max: values.max()?,
        })
    }

    /// `None` if it is not a valid histogram.
    pub(crate) fn values(&self) -> Option<LogLinear> {
        let mut upper = 0_u64;
        let mut buckets = Vec::with_capacity(self.buckets.len());
        for (step, count) in &self.buckets {
            upper = upper.checked_add(*step)?;
            bounded(*count)?;
            buckets.push((upper, *count));
        }
        LogLinear::from_parts(buckets, self.sum, Some((self.min, self.max)))
    }
}

/// The histogram of a key: numbers of buckets and their counts, and the extremes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Small {
    buckets: Vec<(u8, u32)>,
    min: u64,
    max: u64,
}

impl Small {
    /// `None` of an empty histogram.
    pub(crate) fn of(values: &Coarse) -> Option<Self> {
        Some(Self {
            buckets: values.buckets().collect(),
            min: values.min()?,
            max: values.max()?,
        })
    }

    /// `None` if it is not a valid histogram.
    pub(crate) fn values(small: Option<&Self>) -> Option<Coarse> {
        let Some(small) = small else {
            return Some(Coarse::default());
        };
        let is_rising = small.buckets.is_sorted_by(|a, b| a.0 < b.0);
        let values =
            Coarse::from_parts(small.buckets.iter().copied(), Some((small.min, small.max)));
        values.filter(|_| is_rising)
    }
}

/// What a histogram of `/metrics` has grown by: numbers of buckets and their counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grown {
    buckets: Vec<(u8, u64)>,
    count: u64,
    sum: u128,
}

impl Grown {
    pub(crate) fn of<const N: usize>(grown: &Buckets<N>) -> Self {
        Self {
            buckets: (0..=u8::MAX)
                .zip(grown.buckets)
                .filter(|(_, count)| *count > 0)
                .collect(),
            count: grown.count,
            sum: grown.sum,
        }
    }

    /// `None` if it is not a valid histogram with that many buckets.
    pub(crate) fn buckets<const N: usize>(&self) -> Option<Buckets<N>> {
        let mut grown = Buckets::default();
        let mut below = 0_u64;
        for (at, count) in &self.buckets {
            *grown.buckets.get_mut(usize::from(*at))? = bounded(*count)?;
            below = below.checked_add(*count)?;
        }
        let most = u128::from(MAX_COUNT) * u128::from(u64::MAX);
        if below > bounded(self.count)? || self.sum > most {
            return None;
        }
        (grown.count, grown.sum) = (self.count, self.sum);
        Some(grown)
    }
}

/// The largest keys of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table<P> {
    /// What the keys are.
    pub(super) by: String,
    /// Occurrences of all keys.
    pub(super) total: u64,
    /// A key that is not here occurred at most so often.
    pub(super) floor: u64,
    pub(super) keys: Vec<Key<P>>,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Key<P> {
    /// Its bytes, in hexadecimal digits: what the network says need not be text.
    pub(super) key: String,
    /// Whether a longer key was cut off.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) is_truncated: bool,
    pub(super) count: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) error: u64,
    pub(super) with: P,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(crate) const fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A count that a probe can have come to.
pub(crate) fn bounded(count: u64) -> Option<u64> {
    (count <= MAX_COUNT).then_some(count)
}

/// Whether all are counts that a probe can have come to.
pub(crate) fn are_bounded(counts: &[u64]) -> bool {
    counts.iter().all(|count| *count <= MAX_COUNT)
}

/// The bytes of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let bytes = pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}
