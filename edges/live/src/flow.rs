//! Flows as the content of intervals.
//!
//! A record counts when it comes. Where a flow has partial records, these have its packets, bytes,
//! segments and round-trip times, and its final record only says how it ended: nothing counts twice.
//!
//! Cost: some additions, up to six histograms, four table look-ups a record.

use std::collections::HashSet;
use std::net::IpAddr;

use linkweir_record::FlowKind;
use linkweir_record::flow::{Extent, Flow, FlowRow, FlowState, Protocol};
use linkweir_sketch::{TopEntry, TopK};

use crate::alert::Scope;
use crate::api::{FlowBy, FlowCounts, FlowFigures, FlowKeyed, FlowOf, FlowSort, FlowTopRow};
use crate::exposition::Buckets;
use crate::exposition::Family;
use crate::flow_facts::{Facts, half, handshake, ip_bytes, rtt};
use crate::flow_metrics::{self, HALVES, RTT_BOUNDS};
use crate::kind::{Behind, Clock, KeyTable, Kind, Records, behind_server, system};
use crate::part::{count_places, octets, socket_key};
use crate::recent::is_text;
use crate::scopes::{is_application, is_same};

/// Maximum length of a server name in a table, bytes.
const NAME_BYTES: usize = 128;
/// Longest name of an application.
const APPLICATION_BYTES: usize = 32;
/// Flows whose partial records are remembered until they end: 16 MiB at most.
const MAX_PARTIAL: usize = 1 << 20;

/// What `/metrics` has of the whole run only.
#[derive(Debug, Clone, Default)]
pub struct FlowSeries {
    /// Round-trip times by half: both, server, client.
    pub(super) rtt: [Buckets<{ RTT_BOUNDS.len() }>; HALVES.len()],
    /// Times of handshakes.
    pub(super) handshake: Buckets<{ RTT_BOUNDS.len() }>,
}

/// What of the record at hand counts, its texts, and what has to be known of those before it.
#[derive(Debug, Default)]
pub struct FlowScratch {
    /// Name of the server, lower case.
    name: Vec<u8>,
    facts: Facts,
    /// Flows that the table had at the end of the interval before.
    entries: u64,
    /// Flows that the table has lost and whose records have not come yet.
    owed: u64,
    /// Flows of which partial records have come and that have not ended.
    partial: HashSet<u64>,
}

const fn application(row: &FlowRow) -> &'static str {
    if row.application.is_empty() {
        "unknown"
    } else {
        row.application
    }
}

impl FlowScratch {
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
}

impl FlowSeries {
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

/// Counts a flow with a key.
fn count_keyed(keyed: &mut FlowKeyed, row: &FlowRow, facts: &Facts) {
    if facts.has_ended {
        keyed.flows += 1;
        keyed.reset += u64::from(row.state == FlowState::Reset);
        keyed.unanswered += u64::from(row.state == FlowState::Unanswered);
    }
    if facts.has_counters && row.protocol == Protocol::Tcp {
        for side in [&row.client, &row.server] {
            keyed.data_segments = keyed.data_segments.saturating_add(side.pkts_data);
            keyed.retransmissions = keyed.retransmissions.saturating_add(side.retransmissions());
        }
    }
    if let Some(rtt) = facts.rtt {
        keyed.rtt.record(rtt);
    }
}

impl Kind for FlowKind {
    const SUBJECT: &'static str = "flows";
    const HAS_RECORDS: bool = true;
    const TABLES: &'static [KeyTable] = &[
        KeyTable::of_names("names", NAME_BYTES),
        KeyTable::of_addresses("servers"),
        KeyTable::of_addresses("clients"),
        KeyTable::of_names("applications", APPLICATION_BYTES),
        KeyTable::of_countries("client_countries"),
        KeyTable::of_countries("server_countries"),
        KeyTable::of_systems("client_asns"),
        KeyTable::of_systems("server_asns"),
    ];
    const METRICS: &'static [Family<Records<Self>>] = flow_metrics::FAMILIES;
    type Figures = FlowFigures;
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

    /// Records come in the order in which flows ended; one that was idle for long comes with those
    /// that end now. No record is late: it counts when it comes.
    fn time(view: &Flow<'_>, clock: Clock) -> u64 {
        if clock.is_cut && clock.ticks_to > 0 {
            return clock.ticks_to.max(clock.open_from);
        }
        let mut time = view.row.last_ns.max(clock.records_to);
        if clock.ticks_to > 0 {
            time = time.min(clock.ticks_to);
        }
        time.max(clock.open_from)
    }

    fn prepare(view: &Flow<'_>, series: &mut FlowSeries, scratch: &mut FlowScratch) {
        scratch.facts = scratch.facts(view.row);
        series.count(view.row, &scratch.facts);
        let text = &view.text;
        let name = [text.sni, text.http_host, text.fqdn, text.certificate_name]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        scratch.name.clear();
        scratch.name.extend_from_slice(name);
        scratch.name.make_ascii_lowercase();
    }

    fn count(view: &Flow<'_>, scratch: &FlowScratch, counts: &mut FlowCounts) {
        let (row, facts) = (view.row, &scratch.facts);
        facts.count(row, counts);
        if let Some(sums) = counts.applications.of(application(row)) {
            sums.flows += u64::from(facts.has_ended);
            if facts.has_counters {
                sums.bytes = sums.bytes.saturating_add(ip_bytes(row));
            }
        }
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
            Scope::Host(_) | Scope::Url(_) | Scope::Where { .. } => false,
        }
    }

    fn behind(by: FlowBy, key: &str) -> Option<Behind> {
        let condition = match by {
            FlowBy::Name => {
                let columns = ["sni", "http_hostname", "fqdn", "s_tls_SCN"];
                let any: Vec<_> = columns.iter().map(|column| is_text(column, key)).collect();
                return Some(Behind {
                    condition: any.join(" or "),
                    scope: Scope::Name(key.to_owned()),
                });
            }
            FlowBy::Server => behind_server(key, "s_ip", "s_port")?,
            FlowBy::Client => format!("c_ip = {}", key.parse::<IpAddr>().ok()?),
            FlowBy::Application => is_text("application", key),
            FlowBy::ClientCountry => is_text("client_country", key),
            FlowBy::ServerCountry => is_text("server_country", key),
            FlowBy::ClientAsn => format!("client_asn = {}", system(key)?),
            FlowBy::ServerAsn => format!("server_asn = {}", system(key)?),
        };
        Some(Behind {
            condition,
            scope: Scope::Run,
        })
    }

    fn has_keys(_view: &Flow<'_>) -> bool {
        true
    }

    fn count_keys(view: &Flow<'_>, tables: &mut [TopK<FlowKeyed>], scratch: &FlowScratch) {
        let (row, facts) = (view.row, &scratch.facts);
        let [names, servers, clients, applications, places @ ..] = tables else {
            return;
        };
        // A key needs a count: an end without bytes counts as one.
        let bytes = if facts.has_counters { ip_bytes(row) } else { 0 }.max(1);
        let server = socket_key(row.server.ip, row.server.port);
        // A flow without a name is under no name: its server has it.
        let named = if scratch.name.is_empty() {
            None
        } else {
            names.record_n(&scratch.name, bytes)
        };
        let mut client = clients.record_n(&octets(row.client.ip), bytes);
        if let Some(client) = &mut client {
            client.about.note(Some(row.client.place), view.text.ja4);
        }
        for keyed in [
            named,
            servers.record_n(&server, bytes),
            client,
            applications.record_n(application(row).as_bytes(), bytes),
        ]
        .into_iter()
        .flatten()
        {
            count_keyed(keyed, row, facts);
        }
        let known = [row.client.place, row.server.place];
        count_places(Some(&known), places, bytes, |keyed| {
            count_keyed(keyed, row, facts);
        });
    }

    fn close(counts: &mut FlowCounts, scratch: &mut FlowScratch, entries: u64) {
        let ended = counts.ended_tcp.saturating_add(counts.ended_udp);
        let has = ended.saturating_add(entries);
        let had = scratch.entries.saturating_add(scratch.owed);
        counts.new_flows = has.saturating_sub(had);
        // A record may come an interval after its flow has left the table.
        scratch.owed = had.saturating_sub(has);
        scratch.entries = entries;
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
}
