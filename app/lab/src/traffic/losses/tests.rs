//! Figures of a run that was measured, and what is said of them when one is false.

use serde_json::{Value, json};

use super::counted::COUNTERS;
use super::*;

fn ended(summary: Value) -> Ended {
    Ended {
        name: "it".to_owned(),
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
    undelivered: u64,
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
            undelivered: 0,
        }
    }

    /// The rows that disagree.
    fn wrong(self) -> Vec<String> {
        let load = ended(self.load);
        let observations = Observations {
            loads: vec![&load],
            http: &ended(self.http),
            gateway: &ended(Value::Null),
            flows: self.flows,
            server: server(self.server),
            unheard: Unheard {
                server: server(self.unheard.0),
                open: self.unheard.1,
            },
            undelivered: Undelivered {
                server: self.undelivered,
                ..Undelivered::default()
            },
        };
        let tables = observations.tables(Some(&ended(self.line)));
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
fn an_observer_that_is_wrong_by_one_is_noticed() {
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
fn what_the_machine_lost_itself_is_said_and_allowed_for() {
    // Two that the server sent, one of them a copy, came nowhere.
    let lossy = || {
        let mut run = Run::measured();
        run.server[1] += 1;
        run.server[2] += 1;
        run
    };
    let wrong = ["server: sent", "server: sent again", "server"];
    assert_eq!(lossy().wrong(), wrong);
    let mut run = lossy();
    run.undelivered = 2;
    assert_eq!(run.wrong(), [""; 0]);
    let mut run = lossy();
    run.undelivered = 1;
    assert_eq!(run.wrong(), ["server: sent"]);
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
