//! What a scenario of this kind says.

use std::time::Duration;

use serde::Deserialize;

use crate::settings::duration;

/// Traffic recorded, a model fitted to the record, and that model played and recorded again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Sessions start during this time, in each of the two generations.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// Mean sessions per second of the known model.
    pub rate: f64,
    /// Duration of a bin in which sessions are counted.
    #[serde(deserialize_with = "duration")]
    pub bin: Duration,
    /// How many times as often as in the model that comes with the program its sources change.
    pub changes: f64,
    /// A request begins a new session when nothing came from its client for longer than this.
    #[serde(deserialize_with = "duration")]
    pub timeout: Duration,
}

impl Settings {
    /// Bins of a generation.
    pub(super) fn bins(&self) -> usize {
        let bin = self.bin.max(Duration::from_nanos(1));
        let bins = self.duration.as_nanos() / bin.as_nanos();
        usize::try_from(bins).unwrap_or(usize::MAX).max(1)
    }
}
