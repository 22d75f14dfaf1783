//! The histograms of `/metrics` in messages: what they have grown by.

use std::fmt::Debug;
use std::net::SocketAddr;

use linkweir_record::{FlowKind, HttpKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::wire::{Cause, Grown};
use crate::exposition::Buckets;
use crate::figure::CODES;
use crate::flow::FlowSeries;
use crate::flow_metrics::{HALVES, RTT_BOUNDS};
use crate::http::HttpRun;
use crate::kind::OfRecords;
use crate::servers::Histogram;

/// The name of the series that is not a part of the path.
const HANDSHAKE: &str = "handshake";

type Times = Buckets<{ RTT_BOUNDS.len() }>;

/// A kind of record whose live statistics can be merged from those of several probes.
pub trait Mergeable: OfRecords {
    /// What one series has grown by.
    type WireSeries: Serialize + DeserializeOwned + Debug + Clone + Send;

    /// What the series have grown by since `before`.
    fn send_series(now: &Self::Series, before: &Self::Series) -> Vec<Self::WireSeries>;

    /// Adds what a series has grown by.
    ///
    /// # Errors
    /// [`Cause::Contradictory`]; nothing was added then.
    fn take_series(series: &mut Self::Series, grown: &Self::WireSeries) -> Result<(), Cause>;
}

/// Response times of a server and status code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSeries {
    /// None for servers without series of their own.
    server: Option<SocketAddr>,
    code: u16,
    response_time: Grown,
}

impl Mergeable for HttpKind {
    type WireSeries = HttpSeries;

    fn send_series(now: &HttpRun, before: &HttpRun) -> Vec<HttpSeries> {
        let grown = now.servers.since(&before.servers).into_iter();
        let sent = grown.map(|(server, code, times)| HttpSeries {
            server,
            code,
            response_time: Grown::of(&times),
        });
        sent.collect()
    }

    fn take_series(series: &mut HttpRun, grown: &HttpSeries) -> Result<(), Cause> {
        let times: Option<Histogram> = grown.response_time.buckets();
        let is_code = grown.code < CODES;
        let times = times.filter(|_| is_code).ok_or(Cause::Contradictory)?;
        series.servers.merge(grown.server, grown.code, &times);
        Ok(())
    }
}

/// Round-trip times of a part of the path, or times of handshakes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowTimes {
    of: String,
    times: Grown,
}

impl Mergeable for FlowKind {
    type WireSeries = FlowTimes;

    fn send_series(now: &FlowSeries, before: &FlowSeries) -> Vec<FlowTimes> {
        let parts = HALVES.iter().zip(now.rtt.iter().zip(&before.rtt));
        let rtt = parts.map(|(of, (now, before))| (*of, now.since(before)));
        let handshake = (HANDSHAKE, now.handshake.since(&before.handshake));
        let grown = rtt.chain([handshake]);
        grown
            .filter(|(_, times)| times.count > 0)
            .map(|(of, times)| FlowTimes {
                of: of.to_owned(),
                times: Grown::of(&times),
            })
            .collect()
    }

    fn take_series(series: &mut FlowSeries, grown: &FlowTimes) -> Result<(), Cause> {
        let times: Times = grown.times.buckets().ok_or(Cause::Contradictory)?;
        if grown.of == HANDSHAKE {
            series.handshake.merge(&times);
            return Ok(());
        }
        let at = HALVES.iter().position(|half| *half == grown.of);
        let mine = at.and_then(|at| series.rtt.get_mut(at));
        mine.ok_or(Cause::Contradictory)?.merge(&times);
        Ok(())
    }
}
