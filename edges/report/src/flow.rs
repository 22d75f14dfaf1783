//! What the report of flows remembers of the records: sketches of bounded size.
//!
//! Only final records count: they have all that partial ones said before.
//!
//! Cost: about 3 MB for any number of records; two table look-ups, seven histograms and up to
//! [`SLICES`] additions a record.

use linkweir_engine::{Sink, SinkError};
use linkweir_record::flow::{
    Anomaly, Extent, Flow, FlowBatch, FlowRow, FlowSide, FlowState, Protocol,
};
use linkweir_record::{FlowKind, RecordBatch};
use linkweir_sketch::{Coarse, LogLinear, Payload, RateSeries, TopK};

/// Names and servers that are counted one by one: those with more than 1/1024 of all bytes are
/// certainly among them.
const KEYS: usize = 1024;
/// Longer names are cut off.
const KEY_BYTES: usize = 200;
/// Applications with counters of their own; there are not as many.
const MAX_APPLICATIONS: usize = 256;
/// Finest bin of the series over time, and their greatest number: 6 minutes at 100 ms, 4 days at
/// 102 s.
const BIN_NS: u64 = 100_000_000;
const BINS: usize = 4096;
/// Pieces in which the bytes of a flow are spread over its length.
const SLICES: u64 = 64;

/// What is kept with a name or a server.
#[derive(Debug, Clone, Default)]
pub(super) struct Keyed {
    pub(super) flows: u64,
    pub(super) failed: u64,
    pub(super) data_segments: u64,
    pub(super) retransmissions: u64,
    pub(super) rtt: Coarse,
}

impl Payload for Keyed {
    fn merge(&mut self, other: &Self) {
        self.flows += other.flows;
        self.failed += other.failed;
        self.data_segments = self.data_segments.saturating_add(other.data_segments);
        self.retransmissions = self.retransmissions.saturating_add(other.retransmissions);
        self.rtt.merge(&other.rtt);
    }

    fn reset(&mut self) {
        (self.flows, self.failed) = (0, 0);
        (self.data_segments, self.retransmissions) = (0, 0);
        self.rtt.reset();
    }
}

/// What flows of an application came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Application {
    pub(super) name: &'static str,
    pub(super) flows: u64,
    pub(super) bytes: u64,
}

/// States of flows, in the order of the page.
pub(super) const STATES: [FlowState; 7] = [
    FlowState::Closed,
    FlowState::Idle,
    FlowState::Reset,
    FlowState::Unanswered,
    FlowState::Reused,
    FlowState::Evicted,
    FlowState::Open,
];

/// Collects what the report of `flows` shows. Mergeable: workers collect apart.
#[derive(Debug)]
pub struct FlowReport {
    pub(super) tcp: u64,
    pub(super) udp: u64,
    pub(super) midstream: u64,
    /// In the order of [`STATES`].
    pub(super) states: [u64; STATES.len()],
    pub(super) bytes: u64,
    pub(super) data_segments: u64,
    pub(super) retransmissions: u64,
    pub(super) anomalies: [u64; Anomaly::COUNT],
    /// Capture point to server and back.
    pub(super) server_rtt: LogLinear,
    /// Capture point to client and back.
    pub(super) client_rtt: LogLinear,
    pub(super) rtt: LogLinear,
    pub(super) handshake: LogLinear,
    pub(super) duration: LogLinear,
    pub(super) size: LogLinear,
    pub(super) bits_up_at: RateSeries,
    pub(super) bits_down_at: RateSeries,
    pub(super) begun_at: RateSeries,
    pub(super) ended_at: RateSeries,
    pub(super) failed_at: RateSeries,
    pub(super) applications: Vec<Application>,
    pub(super) names: TopK<Keyed>,
    pub(super) servers: TopK<Keyed>,
    key: Vec<u8>,
}

impl Default for FlowReport {
    fn default() -> Self {
        Self::new()
    }
}

fn half(side: &FlowSide) -> Option<u64> {
    (side.rtt.count > 0).then_some(side.rtt.avg_ns)
}

/// Spreads `bytes` evenly from first to last packet, as bits.
fn spread(series: &mut RateSeries, row: &FlowRow, bytes: u64) {
    let bits = bytes.saturating_mul(8);
    if bits == 0 {
        return;
    }
    let length = row.duration_ns();
    let pieces = (length / series.width_ns().max(1)).clamp(1, SLICES.min(bits));
    let (mut given, step) = (0, length / pieces);
    for piece in 1..=pieces {
        let until = u128::from(bits) * u128::from(piece) / u128::from(pieces);
        let until = u64::try_from(until).unwrap_or(bits);
        let middle = step.saturating_mul(piece - 1).saturating_add(step / 2);
        series.record_n(row.first_ns.saturating_add(middle), until - given);
        given = until;
    }
}

impl FlowReport {
    /// A report of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let series = || RateSeries::new(BIN_NS, BINS);
        Self {
            tcp: 0,
            udp: 0,
            midstream: 0,
            states: [0; STATES.len()],
            bytes: 0,
            data_segments: 0,
            retransmissions: 0,
            anomalies: [0; Anomaly::COUNT],
            server_rtt: LogLinear::new(),
            client_rtt: LogLinear::new(),
            rtt: LogLinear::new(),
            handshake: LogLinear::new(),
            duration: LogLinear::new(),
            size: LogLinear::new(),
            bits_up_at: series(),
            bits_down_at: series(),
            begun_at: series(),
            ended_at: series(),
            failed_at: series(),
            applications: Vec::new(),
            names: TopK::new(KEYS, KEY_BYTES),
            servers: TopK::new(KEYS, KEY_BYTES),
            key: Vec::new(),
        }
    }

    /// Takes one record.
    pub fn record(&mut self, view: &Flow<'_>) {
        let row = view.row;
        if row.extent == Extent::Partial {
            return;
        }
        let bytes = row.client.ip_bytes.saturating_add(row.server.ip_bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        let is_failed = matches!(row.state, FlowState::Reset | FlowState::Unanswered);
        for (state, count) in STATES.iter().zip(&mut self.states) {
            *count += u64::from(*state == row.state);
        }
        self.duration.record(row.duration_ns());
        self.size.record(bytes);
        spread(&mut self.bits_up_at, row, row.client.ip_bytes);
        spread(&mut self.bits_down_at, row, row.server.ip_bytes);
        self.begun_at.record(row.first_ns);
        self.ended_at.record(row.last_ns);
        if is_failed {
            self.failed_at.record(row.last_ns);
        }
        let mut segments = (0, 0);
        let mut rtt = None;
        match row.protocol {
            Protocol::Udp => self.udp += 1,
            Protocol::Tcp => {
                self.tcp += 1;
                self.midstream += u64::from(!row.has_syn);
                for side in [&row.client, &row.server] {
                    segments.0 += side.pkts_data;
                    segments.1 += side.retransmissions();
                    for (sum, count) in self.anomalies.iter_mut().zip(&side.anomalies) {
                        *sum = sum.saturating_add(*count);
                    }
                }
                rtt = self.times(row);
            }
        }
        self.data_segments = self.data_segments.saturating_add(segments.0);
        self.retransmissions = self.retransmissions.saturating_add(segments.1);
        self.application(row.application, bytes);
        let server = std::net::SocketAddr::new(row.server.ip.to_canonical(), row.server.port);
        let text = &view.text;
        let name = [text.sni, text.http_host, text.fqdn, text.certificate_name]
            .into_iter()
            .find(|name| !name.is_empty());
        let count = |keyed: Option<&mut Keyed>| {
            let Some(keyed) = keyed else { return };
            keyed.flows += 1;
            keyed.failed += u64::from(is_failed);
            keyed.data_segments = keyed.data_segments.saturating_add(segments.0);
            keyed.retransmissions = keyed.retransmissions.saturating_add(segments.1);
            if let Some(rtt) = rtt {
                keyed.rtt.record(rtt);
            }
        };
        self.key.clear();
        // Writing to memory cannot fail.
        std::io::Write::write_fmt(&mut self.key, format_args!("{server}")).ok();
        count(self.servers.record_n(&self.key, bytes.max(1)));
        if let Some(name) = name {
            self.key.clear();
            self.key.extend_from_slice(name);
            self.key.make_ascii_lowercase();
            count(self.names.record_n(&self.key, bytes.max(1)));
        }
    }

    /// Counts the times of a TCP flow; gives that from client to server and back.
    fn times(&mut self, row: &FlowRow) -> Option<u64> {
        if let (Some(syn_ack), Some(ack)) = (row.syn_ack_ns, row.ack_dat_ns) {
            self.handshake.record(syn_ack.saturating_add(ack));
        }
        // What the client sent was acknowledged by the server.
        let (server, client) = (half(&row.client), half(&row.server));
        if let Some(server) = server {
            self.server_rtt.record(server);
        }
        if let Some(client) = client {
            self.client_rtt.record(client);
        }
        let rtt = server?.saturating_add(client?);
        self.rtt.record(rtt);
        Some(rtt)
    }

    fn application(&mut self, name: &'static str, bytes: u64) {
        let name = if name.is_empty() { "unknown" } else { name };
        let one = Application {
            name,
            flows: 1,
            bytes,
        };
        self.add_application(one);
    }

    fn add_application(&mut self, one: Application) {
        let known = self.applications.iter_mut().find(|a| a.name == one.name);
        if let Some(sum) = known {
            sum.flows += one.flows;
            sum.bytes = sum.bytes.saturating_add(one.bytes);
        } else if self.applications.len() < MAX_APPLICATIONS {
            self.applications.push(one);
        }
    }

    /// Adds what another worker has collected.
    pub fn merge(&mut self, other: &Self) {
        self.tcp += other.tcp;
        self.udp += other.udp;
        self.midstream += other.midstream;
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            *mine += theirs;
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.data_segments = self.data_segments.saturating_add(other.data_segments);
        self.retransmissions = self.retransmissions.saturating_add(other.retransmissions);
        for (mine, theirs) in self.anomalies.iter_mut().zip(&other.anomalies) {
            *mine = mine.saturating_add(*theirs);
        }
        self.server_rtt.merge(&other.server_rtt);
        self.client_rtt.merge(&other.client_rtt);
        self.rtt.merge(&other.rtt);
        self.handshake.merge(&other.handshake);
        self.duration.merge(&other.duration);
        self.size.merge(&other.size);
        self.bits_up_at.merge(&other.bits_up_at);
        self.bits_down_at.merge(&other.bits_down_at);
        self.begun_at.merge(&other.begun_at);
        self.ended_at.merge(&other.ended_at);
        self.failed_at.merge(&other.failed_at);
        for one in &other.applications {
            self.add_application(*one);
        }
        self.names.merge(&other.names);
        self.servers.merge(&other.servers);
    }
}

impl Sink<FlowKind> for FlowReport {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), SinkError> {
        for view in batch.views() {
            self.record(&view);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReportMeta;
    use linkweir_record::flow::{FlowText, RttRow};

    const S: u64 = 1_000_000_000;

    fn flow(n: u64) -> FlowRow {
        let mut row = FlowRow {
            flow_id: n,
            first_ns: 1000 * S + n * S / 10,
            last_ns: 1000 * S + n * S / 10 + S / 2,
            state: FlowState::Closed,
            has_syn: true,
            application: "tls",
            syn_ack_ns: Some(10_000_000),
            ack_dat_ns: Some(1_000_000),
            ..FlowRow::default()
        };
        row.server.ip = [192, 0, 2, 1].into();
        row.server.port = 443;
        (row.client.ip_bytes, row.server.ip_bytes) = (1000, 9000);
        (row.client.pkts_data, row.server.pkts_data) = (2, 8);
        row.server.pkts_retx = 1;
        row.server.anomalies[Anomaly::Rto as usize] = 1;
        row.client.rtt = RttRow {
            count: 3,
            avg_ns: 20_000_000,
            ..RttRow::default()
        };
        row.server.rtt = RttRow {
            count: 3,
            avg_ns: 1_000_000,
            ..RttRow::default()
        };
        row
    }

    fn report(names: &[&[u8]]) -> FlowReport {
        let mut report = FlowReport::new();
        let mut batch = FlowBatch::default();
        for (n, name) in (0..).zip(names) {
            let text = FlowText {
                sni: name,
                ..FlowText::default()
            };
            batch.push(flow(n), &text);
            let partial = FlowRow {
                extent: Extent::Partial,
                ..flow(n)
            };
            batch.push(partial, &text);
        }
        report.write(&batch).unwrap();
        report
    }

    #[test]
    fn final_records_count_once_and_bytes_are_kept() {
        let report = report(&[b"A.example", b"a.example", b""]);
        assert_eq!((report.tcp, report.udp, report.bytes), (3, 0, 30_000));
        assert_eq!((report.data_segments, report.retransmissions), (30, 3));
        assert_eq!(report.rtt.max(), Some(21_000_000));
        assert_eq!(report.handshake.count(), 3);
        let bits: u64 = report.bits_down_at.bins().map(|(_, bits)| bits).sum();
        assert_eq!(bits, 27_000 * 8, "spread, nothing lost");
        assert!(report.bits_down_at.bins().filter(|(_, b)| *b > 0).count() > 4);
        let names = report.names.top(9);
        assert_eq!(names.len(), 1);
        assert_eq!((names[0].count, names[0].payload.flows), (20_000, 2));
        assert_eq!(report.servers.top(1)[0].key, b"192.0.2.1:443");
    }

    #[test]
    fn workers_add_up() {
        let mut one = report(&[b"a", b"b"]);
        one.merge(&report(&[b"b"]));
        assert_eq!(one.tcp, 3);
        assert_eq!(one.names.top(1)[0].count, 20_000);
        assert_eq!(
            one.applications,
            [Application {
                name: "tls",
                flows: 3,
                bytes: 30_000
            }]
        );
    }

    #[test]
    fn the_page_is_whole_and_escapes_names() {
        let meta = ReportMeta {
            title: "flows <x>".to_owned(),
            first_ts_ns: Some(1000 * S),
            last_ts_ns: Some(1002 * S),
            ..ReportMeta::default()
        };
        let html = report(&[b"<script>alert(1)</script>", b"b.example"]).render(&meta);
        assert!(!html.contains("<script"), "markup from the network");
        for part in [
            "&lt;script&gt;",
            "Throughput over time",
            "Round-trip time",
            "Anomalies",
            "Applications",
            "Servers",
            "192.0.2.1:443",
            "Flow duration",
            "</html>",
        ] {
            assert!(html.contains(part), "{part}");
        }
        // A page of nothing is a page.
        assert!(
            FlowReport::new()
                .render(&ReportMeta::default())
                .contains("</html>")
        );
    }
}
