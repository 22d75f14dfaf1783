//! What a scenario of this kind says.

use std::time::Duration;

use serde::Deserialize;

use crate::line::Harm;
use crate::scenario::duration;

/// Load through the gateway.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Sessions start during this time.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// Mean sessions per second.
    pub rate: f64,
    /// `web`, or the path of a model.
    pub model: String,
    /// Duration of a bin of the model.
    #[serde(deserialize_with = "duration")]
    pub model_bin: Duration,
    /// Prefix of the clients that the gateway tells apart and lets through.
    pub clients: String,
    /// Prefix of those that it inspects.
    pub guests: String,
    /// Transfers with a keyword.
    pub planted_keywords: u32,
    /// Transfers with the EICAR string.
    pub planted_viruses: u32,
    /// A line between the clients and the gateway that does things to frames.
    pub line: Option<Line>,
}

/// What a line does.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Line {
    /// Part of the frames that are lost, each way.
    pub loss: f64,
    /// Part of the frames that come late, each way.
    pub reorder: f64,
    /// By how much.
    #[serde(deserialize_with = "duration")]
    pub delay: Duration,
}

impl From<Line> for Harm {
    fn from(line: Line) -> Self {
        Self {
            loss: line.loss,
            reorder: line.reorder,
            delay: line.delay,
        }
    }
}
