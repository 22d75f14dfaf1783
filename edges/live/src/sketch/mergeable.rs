//! What a kind of record needs for its statistics to travel.

use std::fmt::Debug;

use linkweir_sketch::LogLinear;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Cause;
use crate::kind::Kind;

/// A kind of record whose live statistics can be merged from those of several probes.
///
/// The `Wire` types are what messages have; what comes from them was made by whoever can write to the
/// topic, and is checked here.
pub trait Mergeable: Kind {
    /// Counts of an interval, without its distributions.
    type WireCounts: Serialize + DeserializeOwned + Debug + Clone + Send;
    /// What is kept with a key.
    type WireKeyed: Serialize + DeserializeOwned + Debug + Clone + Send;
    /// What one series of `/metrics` has grown by.
    type WireSeries: Serialize + DeserializeOwned + Debug + Clone + Send;
    /// A copy of the series of `/metrics`, to find out what they have grown by.
    type Marks: Debug + Clone + Default + Send;

    /// Counts as they are sent.
    fn send_counts(counts: &Self::Counts) -> Self::WireCounts;

    /// Counts as they came; their distributions come apart.
    ///
    /// # Errors
    /// [`Cause::Contradictory`].
    fn take_counts(counts: &Self::WireCounts) -> Result<Self::Counts, Cause>;

    /// Where a distribution of an interval is.
    fn distribution_mut(counts: &mut Self::Counts, of: Self::Of) -> &mut LogLinear;

    /// What is kept with a key, as it is sent.
    fn send_keyed(keyed: &Self::Keyed) -> Self::WireKeyed;

    /// What is kept with a key, as it came.
    ///
    /// # Errors
    /// [`Cause::Contradictory`].
    fn take_keyed(keyed: &Self::WireKeyed) -> Result<Self::Keyed, Cause>;

    /// The series as they stand.
    fn mark(series: &Self::Series) -> Self::Marks;

    /// What the series have grown by since `before`.
    fn send_series(now: &Self::Marks, before: &Self::Marks) -> Vec<Self::WireSeries>;

    /// Adds what a series has grown by.
    ///
    /// # Errors
    /// [`Cause::Contradictory`]; nothing was added then.
    fn take_series(series: &mut Self::Series, grown: &Self::WireSeries) -> Result<(), Cause>;
}
