//! HTTP transactions: what travels.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linkweir_record::HttpKind;
use linkweir_sketch::LogLinear;
use serde::{Deserialize, Serialize};

use super::wire::{Grown, Small, are_bounded, is_zero};
use super::{Cause, Mergeable};
use crate::api::HttpOf;
use crate::http::{CODES, HttpCounts, HttpKeyed};
use crate::servers::{Histogram, Servers};
use crate::text::clean;

/// Counts of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireCounts {
    requests: u64,
    responses: u64,
    unanswered: u64,
    orphans: u64,
    retransmissions: u64,
    errors_4xx: u64,
    errors_5xx: u64,
    codes: BTreeMap<u16, u64>,
    methods: BTreeMap<String, u64>,
    other_methods: u64,
}

/// What is kept with a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireKeyed {
    #[serde(default, skip_serializing_if = "is_zero")]
    errors_4xx: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    errors_5xx: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    unanswered: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_time: Option<Small>,
}

/// Response times of a server and status code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireSeries {
    /// None for servers without series of their own.
    server: Option<SocketAddr>,
    code: u16,
    response_time: Grown,
}

impl Mergeable for HttpKind {
    type WireCounts = WireCounts;
    type WireKeyed = WireKeyed;
    type WireSeries = WireSeries;
    type Marks = Servers;

    fn send_counts(counts: &HttpCounts) -> WireCounts {
        let all = &counts.all;
        let mut methods = BTreeMap::new();
        for (method, count) in counts.methods.iter() {
            *methods.entry(clean(method)).or_insert(0) += count;
        }
        WireCounts {
            requests: all.requests,
            responses: all.responses,
            unanswered: all.unanswered,
            orphans: all.orphans,
            retransmissions: all.retransmissions,
            errors_4xx: all.errors_4xx,
            errors_5xx: all.errors_5xx,
            codes: counts.codes(),
            methods,
            other_methods: counts.methods.other(),
        }
    }

    fn take_counts(sent: &WireCounts) -> Result<HttpCounts, Cause> {
        let is_sound = are_bounded(&[
            sent.requests,
            sent.responses,
            sent.unanswered,
            sent.orphans,
            sent.retransmissions,
            sent.errors_4xx,
            sent.errors_5xx,
            sent.other_methods,
        ]) && sent.unanswered <= sent.requests
            && sent.orphans <= sent.responses
            && sent.codes.keys().all(|code| usize::from(*code) < CODES)
            && sent
                .codes
                .values()
                .chain(sent.methods.values())
                .all(|count| are_bounded(&[*count]));
        if !is_sound {
            return Err(Cause::Contradictory);
        }
        let mut counts = HttpCounts::default();
        let all = &mut counts.all;
        all.requests = sent.requests;
        all.responses = sent.responses;
        all.unanswered = sent.unanswered;
        all.orphans = sent.orphans;
        all.retransmissions = sent.retransmissions;
        all.errors_4xx = sent.errors_4xx;
        all.errors_5xx = sent.errors_5xx;
        if !sent.codes.is_empty() {
            counts.codes.resize(CODES, 0);
        }
        for (code, count) in &sent.codes {
            if let Some(slot) = counts.codes.get_mut(usize::from(*code)) {
                *slot = *count;
            }
        }
        for (method, count) in &sent.methods {
            counts.methods.record_n(method.as_bytes(), *count);
        }
        counts.methods.record_other(sent.other_methods);
        Ok(counts)
    }

    fn distribution_mut(counts: &mut HttpCounts, of: HttpOf) -> &mut LogLinear {
        match of {
            HttpOf::ResponseTime => &mut counts.all.response_time,
        }
    }

    fn send_keyed(keyed: &HttpKeyed) -> WireKeyed {
        WireKeyed {
            errors_4xx: keyed.errors_4xx,
            errors_5xx: keyed.errors_5xx,
            unanswered: keyed.unanswered,
            bytes: keyed.bytes,
            response_time: Small::of(&keyed.response_time),
        }
    }

    fn take_keyed(sent: &WireKeyed) -> Result<HttpKeyed, Cause> {
        // Bytes are what heads declare: a stranger may have declared anything.
        let counts = [sent.errors_4xx, sent.errors_5xx, sent.unanswered];
        let times = Small::values(sent.response_time.as_ref()).filter(|_| are_bounded(&counts));
        Ok(HttpKeyed {
            errors_4xx: sent.errors_4xx,
            errors_5xx: sent.errors_5xx,
            unanswered: sent.unanswered,
            bytes: sent.bytes,
            response_time: times.ok_or(Cause::Contradictory)?,
        })
    }

    fn mark(series: &Servers) -> Servers {
        series.clone()
    }

    fn send_series(now: &Servers, before: &Servers) -> Vec<WireSeries> {
        let grown = now.since(before).into_iter();
        let sent = grown.map(|(server, code, times)| WireSeries {
            server,
            code,
            response_time: Grown::of(&times),
        });
        sent.collect()
    }

    fn take_series(series: &mut Servers, grown: &WireSeries) -> Result<(), Cause> {
        let times: Option<Histogram> = grown.response_time.buckets();
        let is_code = usize::from(grown.code) < CODES;
        let times = times.filter(|_| is_code).ok_or(Cause::Contradictory)?;
        series.merge(grown.server, grown.code, &times);
        Ok(())
    }
}
