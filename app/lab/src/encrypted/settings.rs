//! What a scenario of this kind says.

use crate::line::Harm;
use crate::settings::duration;
use serde::Deserialize;
use std::time::Duration;

/// What is measured, where, and how much of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// What the clients speak.
    pub http: Protocol,
    /// Who answers them.
    pub server: Software,
    /// What they ask for.
    #[serde(default)]
    pub asks: Asks,
    /// How long each client is busy on each line.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// How long a frame is on its way on both lines, in each direction.
    #[serde(deserialize_with = "duration")]
    pub latency: Duration,
    /// Part of the packets that the lossy line loses, in each direction.
    pub loss: f64,
    /// Part of the others that it delivers late.
    pub reorder: f64,
    /// By how much more.
    #[serde(deserialize_with = "duration")]
    pub delay: Duration,
}

/// What the clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1 over TLS.
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2 over TLS.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3 over QUIC.
    #[serde(rename = "3")]
    Http3,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asks {
    /// Responses of many lengths after many times.
    #[default]
    Transactions,
    /// Streams of events (Server-Sent Events), HTTP/1.1 to nginx.
    Streams,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Software {
    /// nginx (no HTTP/3 before 1.25).
    Nginx,
    /// Caddy.
    Caddy,
}

impl Settings {
    /// What no run can do, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (name, part) in [("loss", self.loss), ("reorder", self.reorder)] {
            if !(0.0..0.5).contains(&part) {
                return Err(format!("{name} is a part, from 0 to below 0.5: {part}"));
            }
        }
        let times = [
            ("duration", self.duration, Duration::from_secs(3600)),
            ("latency", self.latency, Duration::from_secs(1)),
            ("delay", self.delay, Duration::from_secs(1)),
        ];
        for (name, time, most) in times {
            if time > most {
                return Err(format!("{name} is at most {most:?}"));
            }
        }
        if self.duration.is_zero() {
            return Err("duration is more than nothing".to_owned());
        }
        match (self.http, self.server, self.asks) {
            (Protocol::Http3, Software::Nginx, _) => {
                Err("http = \"3\" needs server = \"caddy\"".to_owned())
            }
            (Protocol::Http1, Software::Nginx, _) | (_, _, Asks::Transactions) => Ok(()),
            _ => Err("asks = \"streams\" needs http = \"1.1\" and server = \"nginx\"".to_owned()),
        }
    }

    /// The line that only takes time.
    pub(super) const fn clean(&self) -> Harm {
        Harm {
            latency: self.latency,
            loss: 0.0,
            reorder: 0.0,
            delay: Duration::ZERO,
        }
    }

    /// The line that loses and reorders.
    pub(super) const fn harm(&self) -> Harm {
        Harm {
            latency: self.latency,
            loss: self.loss,
            reorder: self.reorder,
            delay: self.delay,
        }
    }
}
