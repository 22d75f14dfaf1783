//! What rules can measure of each kind of record, and in which words.

use linkweir_record::flow::Anomaly;
use linkweir_record::gateway::GatewayEventKind;

use crate::api::{FlowCounts, GatewayCounts, HttpCounts, LoadCounts};
use crate::figures::Counts;

/// The words of rules of one kind of record, beside those that its counts know.
#[derive(Debug)]
pub struct Words {
    /// What a rule begins with, for messages.
    pub(super) expected: &'static str,
    /// Names and units of the distributions, in their order. A single one needs no name.
    pub(super) quantities: &'static [(&'static str, &'static str)],
    /// What scopes there are.
    pub(super) scopes: &'static [&'static str],
    /// Whether there is a table whose fill means something.
    pub(super) has_table: bool,
    /// Whether the entries of the table can be counted, as `active flows`.
    pub(super) has_active: bool,
}

/// Counts that a rule can look at.
pub trait Measured: Counts {
    /// The words of its rules.
    const WORDS: Words;

    /// What can be counted per second; `None` of another word.
    fn rate(&self, word: &str) -> Option<u64>;

    /// A part and its whole; `None` of another word.
    fn share(&self, word: &str) -> Option<(u64, u64)>;
}

impl Measured for HttpCounts {
    const WORDS: Words = Words {
        expected: "what to measure: p95, mean, max, `requests rate`, `5xx share`, drops, `table fill`...",
        quantities: &[("response time", "ns")],
        scopes: &["host", "server", "client", "url"],
        has_table: true,
        has_active: false,
    };

    fn rate(&self, word: &str) -> Option<u64> {
        Some(match word {
            "requests" => self.requests,
            "responses" => self.responses,
            "unanswered" => self.unanswered,
            "4xx" => self.errors_4xx.0,
            "5xx" => self.errors_5xx.0,
            _ => return None,
        })
    }

    fn share(&self, word: &str) -> Option<(u64, u64)> {
        Some(match word {
            "4xx" => (self.errors_4xx.0, self.responses),
            "5xx" => (self.errors_5xx.0, self.responses),
            "unanswered" => (self.unanswered, self.requests),
            "orphans" => (self.orphans, self.responses),
            "retransmissions" => (self.retransmissions, self.requests),
            _ => return None,
        })
    }
}

impl Measured for FlowCounts {
    const WORDS: Words = Words {
        expected: "what to measure: `p95 of rtt`, `mean of throughput`, `retransmissions share`, \
                   `flows rate`, `active flows`, drops, `table fill`...",
        quantities: &[
            ("rtt", "ns"),
            ("server rtt", "ns"),
            ("client rtt", "ns"),
            ("handshake", "ns"),
            ("throughput", "bit/s"),
            ("duration", "ns"),
        ],
        scopes: &["name", "server", "client", "application"],
        has_table: true,
        has_active: true,
    };

    fn rate(&self, word: &str) -> Option<u64> {
        Some(match word {
            "flows" => self.ended_tcp.saturating_add(self.ended_udp),
            "new flows" => self.new_flows,
            "resets" => self.ends.reset,
            "unanswered" => self.ends.unanswered,
            "retransmissions" => self.retransmissions,
            _ => return None,
        })
    }

    fn share(&self, word: &str) -> Option<(u64, u64)> {
        Some(match word {
            "retransmissions" => (self.retransmissions, self.data_segments),
            "resets" => (self.ends.reset, self.ended_tcp),
            "unanswered" => (self.ends.unanswered, self.ended_tcp),
            class => {
                let class = Anomaly::ALL.into_iter().find(|a| a.as_str() == class)?;
                (self.anomalies.get(class), self.data_segments)
            }
        })
    }
}

impl Measured for GatewayCounts {
    const WORDS: Words = Words {
        expected: "what to measure: `infected rate`, `blocked rate`, `keyword rate`, \
                   `events rate`, `packets rate`, `bits rate` or drops",
        quantities: &[],
        scopes: &["application", "server", "client"],
        has_table: false,
        has_active: false,
    };

    fn rate(&self, word: &str) -> Option<u64> {
        Some(match word {
            "events" => self.kinds.total(),
            // Connections that are stopped: by a rule, or for what they carry.
            "blocked" => self.refused + self.kinds.get(GatewayEventKind::Blocked),
            kind => {
                let kind = GatewayEventKind::ALL
                    .iter()
                    .find(|one| one.as_str() == kind)?;
                self.kinds.get(*kind)
            }
        })
    }

    fn share(&self, _word: &str) -> Option<(u64, u64)> {
        None
    }
}

impl Measured for LoadCounts {
    const WORDS: Words = Words {
        expected: "what to measure: `p99 of response`, `p99 of lag`, `failed share`, `5xx share`, \
                   `sessions rate`, drops, `table fill`...",
        quantities: &[
            ("response", "ns"),
            ("service", "ns"),
            ("connect", "ns"),
            ("lag", "ns"),
        ],
        scopes: &[],
        has_table: true,
        has_active: false,
    };

    fn rate(&self, word: &str) -> Option<u64> {
        Some(match word {
            "sessions" => self.started,
            "completed" => self.completed,
            "failed" => self.causes.total(),
            "requests" => self.requests,
            "responses" => self.responses,
            "unanswered" => self.unanswered,
            "4xx" => self.codes.in_class(4),
            "5xx" => self.codes.in_class(5),
            _ => return None,
        })
    }

    fn share(&self, word: &str) -> Option<(u64, u64)> {
        let failed = self.causes.total();
        let ended = self.completed.saturating_add(failed);
        Some(match word {
            "failed" => (failed, ended),
            // Failed because the generator had no room or no port, not because of the server.
            "no_room" => (self.causes.of("no_room"), ended),
            "4xx" => (self.codes.in_class(4), self.responses),
            "5xx" => (self.codes.in_class(5), self.responses),
            _ => return None,
        })
    }
}
