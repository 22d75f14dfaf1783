//! What a scenario of this kind says.

use std::time::Duration;

use serde::Deserialize;

use crate::settings::duration;

/// Constant and correlated arrivals, far from the server's limit and near it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Sessions start during this time, in each of the runs.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// Part of the server's limit that is far from it.
    pub far: f64,
    /// Part of the server's limit that is near it, below 1.
    pub near: f64,
    /// How often the runs near the limit are repeated, at most, while other programs take the server's
    /// core away.
    pub rounds: u32,
    /// Commands that the server works off for an answer: about a microsecond each.
    pub work: u32,
    /// Duration of a bin of the model: how fast it is played.
    #[serde(deserialize_with = "duration")]
    pub model_bin: Duration,
}
