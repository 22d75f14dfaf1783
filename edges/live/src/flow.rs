//! Flows as the content of intervals.
//!
//! A record counts when it comes. Where a flow has partial records, these have its packets, bytes,
//! segments and round-trip times, and its final record only says how it ended: nothing counts twice.
//!
//! Cost: some additions, up to six histograms, four table look-ups a record.

use std::collections::{BTreeMap, HashSet};

use linkweir_record::FlowKind;
use linkweir_record::flow::{Anomaly, Extent, Flow, FlowRow, FlowState, Protocol};
use linkweir_sketch::{Coarse, LogLinear, Payload, TopEntry, TopK};
use serde_json::Value;

use crate::alert::{FlowNumbers, Rule, RuleError, Scope};
use crate::api::{
    Application, FlowBy, FlowFigures, FlowOf, FlowSort, FlowTopRow, Percentiles, Tick, Totals,
    Word as _,
};
use crate::buckets::Buckets;
use crate::flow_facts::{Facts, half, handshake, ip_bytes, rtt};
use crate::flow_metrics::{self, HALVES, RTT_BOUNDS};
use crate::kind::{Clock, Column, Kind};
use crate::metrics::Exposition;
use crate::part::{ADDRESS_BYTES, address_text, octets, socket_key};
use crate::scopes::{is_application, is_same};
use crate::text::clean;

/// Applications with counters of their own; there are not as many.
const MAX_APPLICATIONS: usize = 256;
/// Longest name that is told from others (RFC 1035: 253, and some).
const NAME_BYTES: usize = 128;
/// Longest name of an application.
const APPLICATION_BYTES: usize = 32;
/// Flows whose partial records are remembered until they end: 16 MiB at most.
const MAX_PARTIAL: usize = 1 << 20;

/// Counts of an interval, or of a run.
#[derive(Debug, Default)]
pub struct FlowCounts {
    pub(super) all: FlowNumbers,
    /// Few, so that a walk is faster than a look-up.
    pub(super) applications: Vec<(&'static str, Application)>,
}

impl FlowCounts {
    pub(super) fn application(&mut self, name: &'static str) -> Option<&mut Application> {
        let at = self
            .applications
            .iter()
            .position(|(known, _)| *known == name);
        let at = match at {
            Some(at) => at,
            None if self.applications.len() < MAX_APPLICATIONS => {
                self.applications.push((name, Application::default()));
                self.applications.len() - 1
            }
            None => return None,
        };
        self.applications.get_mut(at).map(|(_, counts)| counts)
    }
}

/// What is kept with a key.
#[derive(Debug, Clone, Default)]
pub struct FlowKeyed {
    pub(super) flows: u64,
    pub(super) reset: u64,
    pub(super) unanswered: u64,
    pub(super) data_segments: u64,
    pub(super) retransmissions: u64,
    pub(super) rtt: Coarse,
}

impl Payload for FlowKeyed {
    fn merge(&mut self, other: &Self) {
        self.flows = self.flows.saturating_add(other.flows);
        self.reset = self.reset.saturating_add(other.reset);
        self.unanswered = self.unanswered.saturating_add(other.unanswered);
        self.data_segments = self.data_segments.saturating_add(other.data_segments);
        self.retransmissions = self.retransmissions.saturating_add(other.retransmissions);
        self.rtt.merge(&other.rtt);
    }

    fn reset(&mut self) {
        (self.flows, self.reset, self.unanswered) = (0, 0, 0);
        (self.data_segments, self.retransmissions) = (0, 0);
        self.rtt.reset();
    }
}

/// What `/metrics` has of the whole run only.
#[derive(Debug, Clone, Default)]
pub struct FlowSeries {
    /// Flows that the table had at the end of the interval before.
    entries: u64,
    /// Flows that the table has lost and whose records have not come yet.
    owed: u64,
    /// Round-trip times by half: both, server, client.
    pub(super) rtt: [Buckets<{ RTT_BOUNDS.len() }>; HALVES.len()],
    /// Times of handshakes.
    pub(super) handshake: Buckets<{ RTT_BOUNDS.len() }>,
    /// Flows of which partial records have come and that have not ended.
    partial: HashSet<u64>,
}

/// What of the record at hand counts, and its texts.
#[derive(Debug, Default)]
pub struct FlowScratch {
    /// Name of the server, lower case.
    name: Vec<u8>,
    facts: Facts,
}

const fn application(row: &FlowRow) -> &'static str {
    if row.application.is_empty() {
        "unknown"
    } else {
        row.application
    }
}

impl FlowSeries {
    /// What of a record counts.
    fn facts(&mut self, row: &FlowRow) -> Facts {
        let has_counters = match row.extent {
            Extent::Partial => {
                if self.partial.len() < MAX_PARTIAL {
                    self.partial.insert(row.flow_id);
                }
                true
            }
            // More are under way than are remembered: one that is not known may have had partial
            // records, and a sum that is too small is better than one that is too large.
            Extent::Final if self.partial.is_empty() => true,
            Extent::Final => {
                let is_full = self.partial.len() >= MAX_PARTIAL;
                !self.partial.remove(&row.flow_id) && !is_full
            }
        };
        Facts {
            has_counters,
            has_ended: row.extent == Extent::Final,
            rtt: rtt(row).filter(|_| has_counters && row.protocol == Protocol::Tcp),
        }
    }

    fn count(&mut self, row: &FlowRow, facts: &Facts) {
        if facts.has_counters && row.protocol == Protocol::Tcp {
            let values = [facts.rtt, half(&row.client), half(&row.server)];
            for (buckets, value) in self.rtt.iter_mut().zip(values) {
                if let Some(value) = value {
                    buckets.record(&RTT_BOUNDS, value);
                }
            }
        }
        if facts.has_ended
            && let Some(time) = handshake(row)
        {
            self.handshake.record(&RTT_BOUNDS, time);
        }
    }
}

impl Kind for FlowKind {
    const SUBJECT: &'static str = "flows";
    type Figures = FlowFigures;
    type Numbers = FlowNumbers;
    type Counts = FlowCounts;
    type Keyed = FlowKeyed;
    type Series = FlowSeries;
    type Scratch = FlowScratch;
    type By = FlowBy;
    type Sort = FlowSort;
    type Of = FlowOf;
    type Row = FlowTopRow;
    type Status = ();
    type Event = ();

    fn rule(text: &str) -> Result<Rule, RuleError> {
        Rule::of_flows(text)
    }

    /// Records come in the order in which flows ended; one that was idle for long comes with those
    /// that end now. No record is late: it counts when it comes.
    fn time(view: &Flow<'_>, clock: Clock) -> u64 {
        let mut time = view.row.last_ns.max(clock.records_to);
        if clock.ticks_to > 0 {
            time = time.min(clock.ticks_to);
        }
        time.max(clock.open_from)
    }

    fn count(
        view: &Flow<'_>,
        counts: &mut FlowCounts,
        series: &mut FlowSeries,
        scratch: &mut FlowScratch,
    ) {
        let row = view.row;
        let facts = series.facts(row);
        scratch.facts = facts;
        facts.count(row, &mut counts.all);
        series.count(row, &facts);
        if let Some(sums) = counts.application(application(row)) {
            sums.flows += u64::from(facts.has_ended);
            if facts.has_counters {
                sums.bytes = sums.bytes.saturating_add(ip_bytes(row));
            }
        }
        let text = &view.text;
        let name = [text.sni, text.http_host, text.fqdn, text.certificate_name]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        scratch.name.clear();
        scratch.name.extend_from_slice(name);
        scratch.name.make_ascii_lowercase();
    }

    fn is_in(view: &Flow<'_>, scope: &Scope, scratch: &FlowScratch) -> bool {
        let row = view.row;
        match scope {
            Scope::Run => true,
            Scope::Name(name) => scratch.name == name.as_bytes(),
            Scope::Application(name) => is_application(application(row).as_bytes(), name),
            Scope::Client(address) => is_same(row.client.ip, *address),
            Scope::Server(address, port) => {
                port.is_none_or(|port| port == row.server.port) && is_same(row.server.ip, *address)
            }
            Scope::Host(_) | Scope::Url(_) => false,
        }
    }

    fn count_in(view: &Flow<'_>, scratch: &FlowScratch, numbers: &mut FlowNumbers) {
        scratch.facts.count(view.row, numbers);
    }

    fn has_keys(_view: &Flow<'_>) -> bool {
        true
    }

    fn count_keys(view: &Flow<'_>, tables: &mut [TopK<FlowKeyed>], scratch: &FlowScratch) {
        let (row, facts) = (view.row, &scratch.facts);
        let [names, servers, clients, applications] = tables else {
            return;
        };
        // A key with nothing is no key of a table: an end that brings no bytes counts as one.
        let bytes = if facts.has_counters { ip_bytes(row) } else { 0 }.max(1);
        let server = socket_key(row.server.ip, row.server.port);
        // A flow without a name is under no name: its server has it.
        let named = if scratch.name.is_empty() {
            None
        } else {
            names.record_n(&scratch.name, bytes)
        };
        for keyed in [
            named,
            servers.record_n(&server, bytes),
            clients.record_n(&octets(row.client.ip), bytes),
            applications.record_n(application(row).as_bytes(), bytes),
        ]
        .into_iter()
        .flatten()
        {
            if facts.has_ended {
                keyed.flows += 1;
                keyed.reset += u64::from(row.state == FlowState::Reset);
                keyed.unanswered += u64::from(row.state == FlowState::Unanswered);
            }
            if facts.has_counters && row.protocol == Protocol::Tcp {
                for side in [&row.client, &row.server] {
                    keyed.data_segments = keyed.data_segments.saturating_add(side.pkts_data);
                    keyed.retransmissions = keyed.retransmissions.saturating_add(side.pkts_retx);
                }
            }
            if let Some(rtt) = facts.rtt {
                keyed.rtt.record(rtt);
            }
        }
    }

    fn close(counts: &mut FlowCounts, series: &mut FlowSeries, entries: u64) {
        let all = &mut counts.all;
        let ended = all.ended_tcp.saturating_add(all.ended_udp);
        let has = ended.saturating_add(entries);
        let had = series.entries.saturating_add(series.owed);
        all.new_flows = has.saturating_sub(had);
        // A record may come an interval after its flow has left the table.
        series.owed = had.saturating_sub(has);
        series.entries = entries;
    }

    fn merge(mine: &mut FlowCounts, theirs: &FlowCounts) {
        mine.all.merge(&theirs.all);
        for (name, counts) in &theirs.applications {
            if let Some(sums) = mine.application(name) {
                sums.flows = sums.flows.saturating_add(counts.flows);
                sums.bytes = sums.bytes.saturating_add(counts.bytes);
            }
        }
    }

    fn all(counts: &FlowCounts) -> &FlowNumbers {
        &counts.all
    }

    fn distribution(counts: &FlowCounts, of: FlowOf) -> &LogLinear {
        counts.all.distribution(of)
    }

    fn figures(counts: &FlowCounts) -> FlowFigures {
        let all = &counts.all;
        let mut figures = FlowFigures {
            new_flows: all.new_flows,
            ended: all.ended_tcp.saturating_add(all.ended_udp),
            ended_tcp: all.ended_tcp,
            ended_udp: all.ended_udp,
            midstream: all.midstream,
            ends: all.ends,
            flow_packets: all.packets,
            flow_bytes: all.bytes,
            data_segments: all.data_segments,
            retransmissions: all.retransmissions,
            payload_bytes: all.payload_bytes,
            retransmitted_bytes: all.retransmitted_bytes,
            out_of_order: all.out_of_order,
            zero_windows: all.zero_windows,
            anomalies: Anomaly::ALL
                .iter()
                .zip(&all.anomalies)
                .filter(|(_, count)| **count > 0)
                .map(|(class, count)| (class.as_str(), *count))
                .collect(),
            applications: counts.applications.iter().copied().collect(),
            ..FlowFigures::default()
        };
        for of in FlowOf::ALL {
            *figures.percentiles_mut(*of) = crate::interval::percentiles(all.distribution(*of));
        }
        figures
    }

    fn add(mine: &mut FlowFigures, theirs: FlowFigures) {
        fn sum<V>(
            mine: &mut BTreeMap<&'static str, V>,
            theirs: BTreeMap<&'static str, V>,
            add: impl Fn(&mut V, V),
        ) where
            V: Default,
        {
            for (name, value) in theirs {
                add(mine.entry(name).or_default(), value);
            }
        }
        mine.new_flows = mine.new_flows.saturating_add(theirs.new_flows);
        mine.ended = mine.ended.saturating_add(theirs.ended);
        mine.ended_tcp = mine.ended_tcp.saturating_add(theirs.ended_tcp);
        mine.ended_udp = mine.ended_udp.saturating_add(theirs.ended_udp);
        mine.midstream = mine.midstream.saturating_add(theirs.midstream);
        mine.ends.add(&theirs.ends);
        mine.flow_packets = mine.flow_packets.saturating_add(theirs.flow_packets);
        mine.flow_bytes = mine.flow_bytes.saturating_add(theirs.flow_bytes);
        mine.data_segments = mine.data_segments.saturating_add(theirs.data_segments);
        mine.retransmissions = mine.retransmissions.saturating_add(theirs.retransmissions);
        mine.payload_bytes = mine.payload_bytes.saturating_add(theirs.payload_bytes);
        mine.retransmitted_bytes = mine
            .retransmitted_bytes
            .saturating_add(theirs.retransmitted_bytes);
        mine.out_of_order = mine.out_of_order.saturating_add(theirs.out_of_order);
        mine.zero_windows = mine.zero_windows.saturating_add(theirs.zero_windows);
        sum(&mut mine.anomalies, theirs.anomalies, |sum, count| {
            *sum = sum.saturating_add(count);
        });
        sum(&mut mine.applications, theirs.applications, |sum, one| {
            sum.flows = sum.flows.saturating_add(one.flows);
            sum.bytes = sum.bytes.saturating_add(one.bytes);
        });
    }

    fn put(figures: &mut FlowFigures, of: FlowOf, percentiles: Option<Percentiles>) {
        *figures.percentiles_mut(of) = percentiles;
    }

    fn key_bytes(by: FlowBy) -> usize {
        match by {
            FlowBy::Name => NAME_BYTES,
            FlowBy::Server | FlowBy::Client => ADDRESS_BYTES,
            FlowBy::Application => APPLICATION_BYTES,
        }
    }

    fn rank(entry: &TopEntry<'_, FlowKeyed>, sort: FlowSort) -> u64 {
        let keyed = entry.payload;
        match sort {
            FlowSort::Bytes => entry.count,
            FlowSort::Flows => keyed.flows,
            FlowSort::RttP95 => keyed.rtt.quantile(950).unwrap_or(0),
            // Parts in a million: a rank is a whole number.
            FlowSort::Retransmissions => keyed
                .retransmissions
                .saturating_mul(1_000_000)
                .checked_div(keyed.data_segments)
                .unwrap_or(0),
            FlowSort::Failed => keyed.reset.saturating_add(keyed.unanswered),
        }
    }

    fn row(by: FlowBy, entry: &TopEntry<'_, FlowKeyed>) -> FlowTopRow {
        let keyed = entry.payload;
        let mut key = match by {
            FlowBy::Name | FlowBy::Application => clean(entry.key),
            FlowBy::Server | FlowBy::Client => address_text(entry.key),
        };
        if entry.is_truncated {
            key.push_str("...");
        }
        FlowTopRow {
            key,
            bytes: entry.count,
            flows: keyed.flows,
            reset: keyed.reset,
            unanswered: keyed.unanswered,
            data_segments: keyed.data_segments,
            retransmissions: keyed.retransmissions,
            rtt_p50: keyed.rtt.quantile(500),
            rtt_p95: keyed.rtt.quantile(950),
        }
    }

    fn columns(tick: &Tick<FlowFigures>) -> (Vec<Column>, Vec<(String, Value)>) {
        /// Names of the columns of each distribution.
        const SPREADS: [(FlowOf, [&str; 4]); 6] = [
            (
                FlowOf::Rtt,
                ["rtt_count", "rtt_p50_ns", "rtt_p95_ns", "rtt_p99_ns"],
            ),
            (
                FlowOf::ServerRtt,
                [
                    "server_rtt_count",
                    "server_rtt_p50_ns",
                    "server_rtt_p95_ns",
                    "server_rtt_p99_ns",
                ],
            ),
            (
                FlowOf::ClientRtt,
                [
                    "client_rtt_count",
                    "client_rtt_p50_ns",
                    "client_rtt_p95_ns",
                    "client_rtt_p99_ns",
                ],
            ),
            (
                FlowOf::Handshake,
                [
                    "handshake_count",
                    "handshake_p50_ns",
                    "handshake_p95_ns",
                    "handshake_p99_ns",
                ],
            ),
            (
                FlowOf::Throughput,
                [
                    "throughput_count",
                    "throughput_p50_bps",
                    "throughput_p95_bps",
                    "throughput_p99_bps",
                ],
            ),
            (
                FlowOf::Duration,
                [
                    "duration_count",
                    "duration_p50_ns",
                    "duration_p95_ns",
                    "duration_p99_ns",
                ],
            ),
        ];
        let figures = &tick.figures;
        let mut columns: Vec<Column> = vec![
            ("new_flows", figures.new_flows.into()),
            ("ended", figures.ended.into()),
            ("ended_tcp", figures.ended_tcp.into()),
            ("ended_udp", figures.ended_udp.into()),
            ("midstream", figures.midstream.into()),
        ];
        let states = figures.ends.by_state();
        columns.extend(states.map(|(state, count)| (state, count.into())));
        columns.extend([
            ("flow_packets", figures.flow_packets.into()),
            ("flow_bytes", figures.flow_bytes.into()),
            ("data_segments", figures.data_segments.into()),
            ("retransmissions", figures.retransmissions.into()),
            ("payload_bytes", figures.payload_bytes.into()),
            ("retransmitted_bytes", figures.retransmitted_bytes.into()),
            ("out_of_order", figures.out_of_order.into()),
            ("zero_windows", figures.zero_windows.into()),
        ]);
        let classes = Anomaly::ALL.map(Anomaly::as_str);
        columns.extend(classes.map(|class| {
            let count = figures.anomalies.get(class).copied().unwrap_or_default();
            (class, count.into())
        }));
        for (of, [count, p50, p95, p99]) in SPREADS {
            let values = figures.percentiles(of);
            columns.extend([
                (count, values.map_or(0, |v| v.count).into()),
                (p50, values.map(|v| v.p50).into()),
                (p95, values.map(|v| v.p95).into()),
                (p99, values.map(|v| v.p99).into()),
            ]);
        }
        let applications = figures.applications.iter().flat_map(|(name, counts)| {
            [
                (format!("flows_{name}"), counts.flows.into()),
                (format!("bytes_{name}"), counts.bytes.into()),
            ]
        });
        (columns, applications.collect())
    }

    fn table_name(by: FlowBy) -> &'static str {
        match by {
            FlowBy::Name => "names",
            FlowBy::Server => "servers",
            FlowBy::Client => "clients",
            FlowBy::Application => "applications",
        }
    }

    fn row_columns() -> &'static [&'static str] {
        &[
            "key",
            "bytes",
            "flows",
            "reset",
            "unanswered",
            "data_segments",
            "retransmissions",
            "rtt_p50",
            "rtt_p95",
        ]
    }

    fn expose(out: &mut Exposition, totals: &Totals<FlowFigures>, series: &FlowSeries) {
        flow_metrics::expose(out, totals, series);
    }
}
