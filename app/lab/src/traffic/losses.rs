//! What was lost, and what was sent again because of it, as each witness knows it.
//!
//! The probe stands between the gateway and the server, the line between the clients and the gateway.
//! So everything that the server sends passes the probe before it can be lost, and what the clients send
//! passes it only if it was not. Most rows are therefore equations and have no tolerance: what goes into
//! the line and is not lost comes out of it, and who sends a segment again either makes up for one that
//! was lost or sends one that arrives twice. Only *why* something was sent again is a conclusion that
//! `flows` draws from the wire, and has one.

use std::collections::BTreeMap;

use linkweir_testkit::gateway::Place;
use serde::Deserialize;

use crate::LabError;
use crate::findings::{Rule, Table, Unit};
use crate::ground::Ground;
use crate::program::Ended;
use crate::records;

/// What the server's kernel counts. Source: RFC 4022; the others are Linux's (`snmp_counter.rst`).
const COUNTERS: [&str; 5] = [
    "TcpInSegs",
    "TcpOutSegs",
    "TcpRetransSegs",
    "TcpExtTCPSynRetrans",
    "TcpExtTCPFastRetrans",
];
/// A conclusion may be wrong in one case of ten, or in three of few.
const WRONG_PART: f64 = 0.1;
const WRONG_FEW: f64 = 3.0;

/// The counters of the server's kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server(BTreeMap<&'static str, u64>);

impl Server {
    /// As they stand.
    pub(super) fn read(ground: &Ground<'_>) -> Self {
        let read = |name| (name, ground.net.counter(Place::Server, name).unwrap_or(0));
        Self(COUNTERS.map(read).into())
    }

    /// What was counted between an earlier reading and this one.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let counts = self.0.keys().map(|name| {
            let count = self.count(name) - earlier.count(name);
            (*name, count)
        });
        Self(counts.collect())
    }

    fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Segments that it sent. `OutSegs` leaves out what is sent again, but for SYN-ACKs, which both
    /// count (`tcp_rtx_synack` in `net/ipv4/tcp_output.c`).
    fn sent(&self) -> u64 {
        self.count("TcpOutSegs") + self.sent_again() - self.count("TcpExtTCPSynRetrans")
    }

    fn sent_again(&self) -> u64 {
        self.count("TcpRetransSegs")
    }

    /// Sent again when a timer had run out: that of a retransmission, or of a loss probe. (One fast
    /// retransmission begins a recovery; all of it is counted as fast.)
    fn by_timer(&self) -> u64 {
        let others = self.count("TcpExtTCPSynRetrans") + self.count("TcpExtTCPFastRetrans");
        self.sent_again().saturating_sub(others)
    }
}

/// Fields of `tcp_flow` that count segments, and their sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Flows {
    c_pkts_all: u64,
    c_pkts_data: u64,
    c_bytes_all: u64,
    c_pkts_retx: u64,
    c_syn_cnt: u64,
    s_pkts_all: u64,
    s_pkts_data: u64,
    s_bytes_all: u64,
    s_pkts_retx: u64,
    s_syn_retx: u64,
    s_pkts_fs: u64,
    s_pkts_unfs: u64,
    s_pkts_rto: u64,
    s_pkts_unrto: u64,
    s_pkts_tlp: u64,
}

impl Flows {
    /// Those of all records.
    pub(super) fn read(ground: &Ground<'_>) -> Result<Self, LabError> {
        let mut sums = Self::default();
        records::each(&ground.path("flows.jsonl"), |flow| sums.add(&flow))?;
        Ok(sums)
    }

    const fn add(&mut self, flow: &Self) {
        self.c_pkts_all += flow.c_pkts_all;
        self.c_pkts_data += flow.c_pkts_data;
        self.c_bytes_all += flow.c_bytes_all;
        self.c_pkts_retx += flow.c_pkts_retx;
        self.c_syn_cnt += flow.c_syn_cnt;
        self.s_pkts_all += flow.s_pkts_all;
        self.s_pkts_data += flow.s_pkts_data;
        self.s_bytes_all += flow.s_bytes_all;
        self.s_pkts_retx += flow.s_pkts_retx;
        self.s_syn_retx += flow.s_syn_retx;
        self.s_pkts_fs += flow.s_pkts_fs;
        self.s_pkts_unfs += flow.s_pkts_unfs;
        self.s_pkts_rto += flow.s_pkts_rto;
        self.s_pkts_unrto += flow.s_pkts_unrto;
        self.s_pkts_tlp += flow.s_pkts_tlp;
    }
}

/// What was still to be said when the generators had ended: nobody hears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unheard {
    /// What the server's kernel counted from then on.
    pub(super) server: Server,
    /// Connections that it had not seen closed by then. The close of each may have been lost, and is not
    /// sent again.
    pub(super) open: u64,
}

/// Those who know something of it.
pub(super) struct Witnesses<'a> {
    /// All generators.
    pub(super) loads: Vec<&'a Ended>,
    pub(super) http: &'a Ended,
    pub(super) gateway: &'a Ended,
    pub(super) flows: Flows,
    pub(super) server: Server,
    pub(super) unheard: Unheard,
}

impl Witnesses<'_> {
    /// The tables that there are with a line and without.
    pub(super) fn tables(&self, line: Option<&Ended>) -> Vec<Table> {
        let mut tables = vec![self.retransmissions()];
        if let Some(line) = line {
            tables.insert(0, self.segments(line));
            tables.push(self.reasons(line));
        }
        tables
    }

    /// Each segment, counted wherever it passes.
    fn segments(&self, line: &Ended) -> Table {
        let names = ["load", "line", "flows", "http", "server"];
        let mut table = Table::new("segments over the line", &names);
        let flows = self.flows;
        let (up, down) = (Way::of(line, "forth"), Way::of(line, "back"));
        let load = |what: &str| Some(self.load(what));
        let http = |what: &str| self.http.count(&format!("http/{what}"));
        let server = |name| Some(self.server.count(name));
        let (same, count) = (Rule::Same, Unit::Count);
        let mut row = |what: &str, unit, rule, cells: [Option<u64>; 5]| {
            // Counts of a run are far below 2^53.
            let cells = cells.map(|cell| cell.map(|n| n as f64));
            table.row(what, unit, rule, &cells);
        };
        let sent = [load("segments_sent"), up.all("segments"), None, None, None];
        row("clients: sent", count, same, sent);
        let shown = |cell| [None, cell, None, None, None];
        row("  lost", count, Rule::Shown, shown(up.all("lost")));
        row("  late", count, Rule::Shown, shown(up.all("late")));
        let came = [
            None,
            up.left(),
            Some(flows.c_pkts_all),
            None,
            server("TcpInSegs"),
        ];
        row("  arrived", count, same, came);
        let syn = [None, up.kept("syn"), Some(flows.c_syn_cnt), None, None];
        row("    with SYN", count, same, syn);
        // A request is a segment.
        let requests = http("requests") + http("retransmitted_requests");
        let data = [
            None,
            up.kept("data"),
            Some(flows.c_pkts_data),
            Some(requests),
            None,
        ];
        row("    with payload", count, same, data);
        let bytes = [None, up.payload_left(), Some(flows.c_bytes_all), None, None];
        row("    payload", Unit::Bytes, same, bytes);

        let sent = [
            None,
            down.all("segments"),
            Some(flows.s_pkts_all),
            None,
            Some(self.server.sent()),
        ];
        row("server: sent", count, same, sent);
        let data = [
            None,
            down.one("segments", "data"),
            Some(flows.s_pkts_data),
            None,
            None,
        ];
        row("    with payload", count, same, data);
        let bytes = [None, down.payload(), Some(flows.s_bytes_all), None, None];
        row("    payload", Unit::Bytes, same, bytes);
        row("  lost", count, Rule::Shown, shown(down.all("lost")));
        row("  late", count, Rule::Shown, shown(down.all("late")));
        let came = [load("segments_received"), down.left(), None, None, None];
        let unheard = but_for(self.unheard.server.sent());
        row("  arrived", count, unheard, came);
        table
    }

    /// What the server sent again all passes the probe.
    fn retransmissions(&self) -> Table {
        let names = ["load", "flows", "http", "gateway", "server"];
        let mut table = Table::new("retransmissions", &names);
        let (flows, server) = (self.flows, &self.server);
        let http = |what: &str| Some(self.http.count(&format!("http/{what}")));
        let both = |seen: u64, sent: u64| [None, Some(seen), None, None, Some(sent)];
        let again = both(flows.s_pkts_retx, server.sent_again());
        table.count("server: sent again", Rule::Same, &again);
        let syn = both(flows.s_syn_retx, server.count("TcpExtTCPSynRetrans"));
        table.count("  SYN-ACK", Rule::Same, &syn);
        let fast = both(
            flows.s_pkts_fs + flows.s_pkts_unfs,
            server.count("TcpExtTCPFastRetrans"),
        );
        table.count("  because of acknowledgments", concluded(&fast), &fast);
        let timer = both(
            flows.s_pkts_rto + flows.s_pkts_unrto + flows.s_pkts_tlp,
            server.by_timer(),
        );
        table.count("  because of a timer", concluded(&timer), &timer);
        // A head is in a segment; of a longer response others may have been sent again too.
        let heads = [
            None,
            Some(flows.s_pkts_retx - flows.s_syn_retx),
            http("retransmitted_responses"),
            None,
            None,
        ];
        table.count("  responses among them", Rule::Falling(0.0), &heads);
        let clients = [
            Some(self.clients_again()),
            Some(flows.c_pkts_retx),
            None,
            None,
            None,
        ];
        // Of what is sent again some is lost again, and some makes up for what never came.
        table.count("clients: sent again", Rule::Falling(0.0), &clients);
        let requests = [
            None,
            Some(flows.c_pkts_retx),
            http("retransmitted_requests"),
            None,
            None,
        ];
        table.count("  requests among them", Rule::Falling(0.0), &requests);
        let gaps = self.gateway.count("gateway/counts/gap");
        let gaps = [None, None, None, Some(gaps), None];
        table.count("gaps that nobody filled", Rule::AtMost(0.0), &gaps);
        table
    }

    /// Whatever is sent again either makes up for a loss or arrives twice.
    fn reasons(&self, line: &Ended) -> Table {
        let names = ["sent again", "lost or twice there"];
        let mut table = Table::new("why it was sent again", &names);
        let load = |what: &str| self.load(what);
        let (up, down) = (Way::of(line, "forth"), Way::of(line, "back"));
        // After the end of a connection too. What found no room is as good as lost.
        let twice = load("duplicates") + load("time_wait_answers") + load("not_held");
        let server = [
            Some(self.server.sent_again()),
            down.lost_in_sequence().map(|lost| lost + twice),
        ];
        let unheard = but_for(self.unheard.server.sent_again());
        table.count("server", unheard, &server);
        let clients = [
            Some(self.clients_again()),
            up.lost_in_sequence()
                .map(|lost| lost + self.flows.c_pkts_retx),
        ];
        table.count("clients", but_for(self.unheard.open), &clients);
        table
    }

    fn clients_again(&self) -> u64 {
        self.load("retransmissions") + self.load("syn_retransmissions")
    }

    /// What the generators' TCP counts.
    fn load(&self, what: &str) -> u64 {
        let counts = self.loads.iter();
        counts
            .map(|load| load.count(&format!("load/tcp/{what}")))
            .sum()
    }
}

/// Nothing, but for so many.
fn but_for(count: u64) -> Rule {
    match count {
        0 => Rule::Same,
        count => Rule::Within(count as f64),
    }
}

/// What a conclusion may be wrong in.
fn concluded(cells: &[Option<u64>]) -> Rule {
    let largest = cells.iter().flatten().max().copied().unwrap_or(0);
    Rule::Within((largest as f64 * WRONG_PART).max(WRONG_FEW).round())
}

/// One direction of a line, in its summary. What is not there is `None`, and never a count of zero.
struct Way<'a> {
    line: &'a Ended,
    name: &'static str,
}

impl<'a> Way<'a> {
    const fn of(line: &'a Ended, name: &'static str) -> Self {
        Self { line, name }
    }

    fn get(&self, way: &str) -> Option<u64> {
        let way = format!("/line/{}/{way}", self.name);
        self.line.summary.pointer(&way)?.as_u64()
    }

    /// Segments of a kind that were received, lost or late.
    fn one(&self, what: &str, kind: &str) -> Option<u64> {
        self.get(&format!("{what}/{kind}"))
    }

    /// Those of all kinds.
    fn all(&self, what: &str) -> Option<u64> {
        let kinds = ["syn", "data", "fin", "ack", "rst"];
        kinds.iter().map(|kind| self.one(what, kind)).sum()
    }

    /// Those of a kind that were not lost.
    fn kept(&self, kind: &str) -> Option<u64> {
        self.one("segments", kind)?
            .checked_sub(self.one("lost", kind)?)
    }

    /// All that were not lost.
    fn left(&self) -> Option<u64> {
        self.all("segments")?.checked_sub(self.all("lost")?)
    }

    /// Those lost that have a place in the sequence, so that they have to be sent again.
    fn lost_in_sequence(&self) -> Option<u64> {
        let kinds = ["syn", "data", "fin"];
        kinds.iter().map(|kind| self.one("lost", kind)).sum()
    }

    fn payload(&self) -> Option<u64> {
        self.get("payload_bytes")
    }

    fn payload_left(&self) -> Option<u64> {
        self.payload()?.checked_sub(self.get("lost_bytes")?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ended(summary: Value) -> Ended {
        Ended {
            name: "it".to_owned(),
            code: Some(0),
            summary,
        }
    }

    /// Figures of a run, of which each may be made false.
    struct Run {
        load: Value,
        line: Value,
        flows: Flows,
        http: Value,
        server: [u64; 5],
        unheard: ([u64; 5], u64),
    }

    fn server(counts: [u64; 5]) -> Server {
        Server(COUNTERS.into_iter().zip(counts).collect())
    }

    impl Run {
        /// One that was measured: 457 sessions, 1 % lost and 1 % late each way.
        fn measured() -> Self {
            let segments = |syn: u64, data: u64, fin: u64, ack: u64, rst: u64| json!({ "syn": syn, "data": data, "fin": fin, "ack": ack, "rst": rst });
            Self {
                load: json!({ "load": { "tcp": {
                    "segments_sent": 4904, "segments_received": 4894, "retransmissions": 18,
                    "syn_retransmissions": 20, "duplicates": 0, "time_wait_answers": 18,
                    "not_held": 0,
                } } }),
                line: json!({ "line": {
                    "forth": {
                        "segments": segments(753, 833, 743, 2575, 0),
                        "lost": segments(9, 7, 3, 22, 0),
                        "late": segments(6, 8, 6, 24, 0),
                        "payload_bytes": 88_304, "lost_bytes": 740,
                    },
                    "back": {
                        "segments": segments(744, 2680, 744, 743, 30),
                        "lost": segments(11, 21, 7, 8, 0),
                        "late": segments(9, 26, 7, 8, 0),
                        "payload_bytes": 3_290_565, "lost_bytes": 24_788,
                    },
                } }),
                flows: Flows {
                    c_pkts_all: 4863,
                    c_pkts_data: 826,
                    c_bytes_all: 87_564,
                    c_pkts_retx: 19,
                    c_syn_cnt: 744,
                    s_pkts_all: 4941,
                    s_pkts_data: 2680,
                    s_bytes_all: 3_290_565,
                    s_pkts_retx: 57,
                    s_syn_retx: 11,
                    s_pkts_fs: 27,
                    s_pkts_unfs: 0,
                    s_pkts_rto: 16,
                    s_pkts_unrto: 0,
                    s_pkts_tlp: 3,
                },
                http: json!({ "http": {
                    "requests": 825, "retransmitted_requests": 1, "retransmitted_responses": 8,
                } }),
                server: [4863, 4895, 57, 11, 27],
                unheard: ([0; 5], 0),
            }
        }

        /// The rows that disagree.
        fn wrong(self) -> Vec<String> {
            let load = ended(self.load);
            let witnesses = Witnesses {
                loads: vec![&load],
                http: &ended(self.http),
                gateway: &ended(Value::Null),
                flows: self.flows,
                server: server(self.server),
                unheard: Unheard {
                    server: server(self.unheard.0),
                    open: self.unheard.1,
                },
            };
            let tables = witnesses.tables(Some(&ended(self.line)));
            assert_eq!(tables.len(), 3);
            let rows = tables.into_iter().flat_map(|table| table.rows);
            rows.filter(|row| !row.agrees())
                .map(|row| row.what.trim().to_owned())
                .collect()
        }
    }

    #[test]
    fn what_was_measured_agrees() {
        assert_eq!(Run::measured().wrong(), [""; 0]);
    }

    #[test]
    fn a_witness_that_is_wrong_by_one_is_noticed() {
        let mut run = Run::measured();
        run.flows.s_pkts_retx -= 1;
        assert_eq!(run.wrong(), ["server: sent again"]);

        let mut run = Run::measured();
        run.flows.c_pkts_retx += 1;
        assert_eq!(run.wrong(), ["clients"]);

        let mut run = Run::measured();
        run.server[0] += 1;
        assert_eq!(run.wrong(), ["arrived"]);

        let mut run = Run::measured();
        run.http["http"]["retransmitted_requests"] = 2.into();
        assert_eq!(run.wrong(), ["with payload"]);

        let mut run = Run::measured();
        run.load["load"]["tcp"]["time_wait_answers"] = 17.into();
        assert_eq!(run.wrong(), ["server"]);

        let mut run = Run::measured();
        run.line["line"]["back"]["lost"]["data"] = 20.into();
        assert_eq!(run.wrong(), ["arrived", "server"]);
    }

    #[test]
    fn what_nobody_heard_at_the_end_is_no_disagreement_and_no_more_than_that() {
        // A close was lost, and the generator ended before it was due again.
        let unclosed = |run: &mut Run| {
            let lost = &mut run.line["line"]["forth"]["lost"];
            lost["fin"] = 4.into();
            lost["ack"] = 21.into();
        };
        let mut run = Run::measured();
        unclosed(&mut run);
        assert_eq!(run.wrong(), ["clients"]);
        let mut run = Run::measured();
        unclosed(&mut run);
        run.unheard.1 = 1;
        assert_eq!(run.wrong(), [""; 0]);

        // The server closes once more.
        let mut run = Run::measured();
        run.load["load"]["tcp"]["segments_received"] = 4893.into();
        run.load["load"]["tcp"]["time_wait_answers"] = 17.into();
        run.unheard.0 = [0, 0, 1, 0, 0];
        assert_eq!(run.wrong(), [""; 0]);
    }

    #[test]
    fn a_class_may_be_wrong_in_few_cases() {
        let mut run = Run::measured();
        (run.flows.s_pkts_fs, run.flows.s_pkts_rto) = (24, 19);
        assert_eq!(run.wrong(), [""; 0]);
        let mut run = Run::measured();
        (run.flows.s_pkts_fs, run.flows.s_pkts_rto) = (23, 20);
        assert_eq!(
            run.wrong(),
            ["because of acknowledgments", "because of a timer"]
        );
    }

    #[test]
    fn a_line_that_says_nothing_is_no_line_without_losses() {
        let mut run = Run::measured();
        run.line = Value::Null;
        assert!(run.wrong().contains(&"clients: sent".to_owned()));
    }

    #[test]
    fn counters_are_those_since_the_beginning() {
        let since = server([5, 7, 9, 3, 2]).since(&server([1, 1, 1, 1, 1]));
        assert_eq!(since, server([4, 6, 8, 2, 1]));
        assert_eq!(since.sent(), 6 + 8 - 2);
        assert_eq!(since.by_timer(), 8 - 2 - 1);
    }
}
