//! What a scenario of this kind says.

use std::time::Duration;

use linkweir_record::{IpNet, Prefix, PrefixError};
use serde::Deserialize;

use crate::line::Harm;
use crate::settings::duration;

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

/// Most sessions per second that anybody may ask for, and the longest run: beyond lies a typing error.
const MOST_PER_SECOND: f64 = 1e6;
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// With fewer than 256 addresses of clients, ports are used again too soon.
const LONGEST_PREFIX: u8 = 24;
/// What the laboratory itself has.
const TAKEN: [&str; 2] = ["10.88.0.0/16", CARRIERS];
/// Who fetches what is planted.
pub(super) const CARRIERS: &str = "10.31.0.0/24";

impl Settings {
    /// What no run can do, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        rate(self.rate)?;
        time("duration", self.duration)?;
        time("model-bin", self.model_bin)?;
        let prefixes = [("clients", &self.clients), ("guests", &self.guests)];
        let mut taken: Vec<(&str, IpNet)> = Vec::new();
        for own in TAKEN {
            taken.push((own, prefix(own)?));
        }
        for (name, text) in prefixes {
            let net = prefix(text).map_err(|why| format!("{name}: {why}"))?;
            if net.prefix_len() > LONGEST_PREFIX {
                return Err(format!(
                    "{name}: {text} has fewer than 256 addresses, so ports would be used again too soon"
                ));
            }
            let meets = |other: &IpNet| other.contains(&net) || net.contains(other);
            if let Some((other, _)) = taken.iter().find(|(_, other)| meets(other)) {
                return Err(format!("{name}: {text} has addresses of {other} in it"));
            }
            taken.push((text, net));
        }
        let Some(line) = &self.line else {
            return Ok(());
        };
        for (name, part) in [("loss", line.loss), ("reorder", line.reorder)] {
            if !(0.0..=1.0).contains(&part) {
                return Err(format!("line: {name} is a part, from 0 to 1: {part}"));
            }
        }
        match line.delay > LONGEST {
            true => Err("line: delay is more than a day".to_owned()),
            false => Ok(()),
        }
    }
}

/// That sessions can begin at this rate.
fn rate(rate: f64) -> Result<(), String> {
    match rate > 0.0 && rate <= MOST_PER_SECOND {
        true => Ok(()),
        false => Err(format!(
            "rate: more than 0 and at most {MOST_PER_SECOND} sessions per second: {rate:e}"
        )),
    }
}

fn time(name: &str, time: Duration) -> Result<(), String> {
    match !time.is_zero() && time <= LONGEST {
        true => Ok(()),
        false => Err(format!("{name}: more than nothing and at most a day")),
    }
}

/// A prefix of IPv4 addresses.
fn prefix(text: &str) -> Result<IpNet, String> {
    let prefix: Prefix = text
        .parse()
        .map_err(|error: PrefixError| error.to_string())?;
    match prefix.0 {
        net @ IpNet::V4(_) => Ok(net),
        IpNet::V6(_) => Err(format!(
            "`{text}` is not a prefix of IPv4 addresses, for example 10.16.0.0/14"
        )),
    }
}

impl From<Line> for Harm {
    fn from(line: Line) -> Self {
        Self {
            latency: Duration::ZERO,
            loss: line.loss,
            reorder: line.reorder,
            delay: line.delay,
        }
    }
}
