//! The state of a flow in the words of Zeek's conn.log.
//!
//! Source: `conn_state` of Zeek's `base/protocols/conn/main.zeek`, which reads the states of both
//! endpoints, and the state machine of its `packet_analysis/protocol/tcp/TCPSessionAdapter.cc`, which
//! makes them. What a record counts is enough to tell where an endpoint ended, but for one thing: whether
//! a side reset before it closed ([`FlowSide::is_rst_first`]).

use std::sync::LazyLock;

use super::row::{FlowRow, FlowSide, Protocol};

/// Where an endpoint of a TCP connection ended: Zeek's `TCP_Endpoint` states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    /// It sent nothing that opens, carries or ends a connection.
    Inactive,
    /// It sent, but no SYN was seen.
    Partial,
    /// It sent a SYN that was not answered by one.
    SynSent,
    Established,
    /// It sent FIN.
    Closed,
    /// It sent RST, and not behind the FINs of both.
    Reset,
}

impl Endpoint {
    const fn is_inactive(self) -> bool {
        matches!(self, Self::Inactive | Self::Partial)
    }
}

/// Whether it ended in order: a FIN, and no RST before.
const fn has_closed(side: &FlowSide) -> bool {
    side.fin_cnt > 0 && !(side.rst_cnt > 0 && side.is_rst_first)
}

/// Where `side` ended, if it ended: a RST behind its own FIN is none where the peer closed too,
/// before or after it.
const fn end(side: &FlowSide, peer: &FlowSide) -> Option<Endpoint> {
    if side.rst_cnt > 0 && !(has_closed(side) && has_closed(peer)) {
        Some(Endpoint::Reset)
    } else if side.fin_cnt > 0 {
        Some(Endpoint::Closed)
    } else {
        None
    }
}

impl FlowRow {
    /// The state in the words of Zeek's conn.log.
    #[must_use]
    pub const fn conn_state(&self) -> &'static str {
        let (client, server) = (&self.client, &self.server);
        if matches!(self.protocol, Protocol::Udp) {
            return match (client.pkts_all, server.pkts_all) {
                (_, 0) => "S0",
                (0, _) => "SHR",
                _ => "SF",
            };
        }
        match (self.client_end(), self.server_end()) {
            (Endpoint::SynSent, Endpoint::Reset) => "REJ",
            (Endpoint::Reset, Endpoint::Reset)
                if client.bytes_uniq == 0 && server.bytes_uniq == 0 =>
            {
                "REJ"
            }
            (client, Endpoint::Reset) if client.is_inactive() => "RSTRH",
            (_, Endpoint::Reset) => "RSTR",
            // Zeek wants a history in which the client acknowledged and closed nothing.
            (Endpoint::Reset, server)
                if server.is_inactive()
                    && self.has_client_syn()
                    && client.ack_cnt_p == 0
                    && client.fin_cnt == 0 =>
            {
                "RSTOS0"
            }
            (Endpoint::Reset, server) if server.is_inactive() => "OTH",
            (Endpoint::Reset, _) => "RSTO",
            (Endpoint::Closed, Endpoint::Closed) => "SF",
            (Endpoint::Closed, server) if server.is_inactive() => "SH",
            (Endpoint::Closed, _) => "S2",
            (client, Endpoint::Closed) if client.is_inactive() => "SHR",
            (_, Endpoint::Closed) => "S3",
            (Endpoint::SynSent, Endpoint::Inactive) => "S0",
            (Endpoint::Established, Endpoint::Established) => "S1",
            _ => "OTH",
        }
    }

    /// Whether a record of a later period is of a connection whose SYN came in an earlier one: its
    /// counters are differences.
    const fn was_opened_before(&self) -> bool {
        self.has_syn && self.start_ns < self.first_ns
    }

    const fn has_client_syn(&self) -> bool {
        self.client.syn_cnt > 0 || self.was_opened_before()
    }

    const fn has_server_syn(&self) -> bool {
        self.server.syn_cnt > 0 || (self.was_opened_before() && self.server.pkts_all > 0)
    }

    const fn client_end(&self) -> Endpoint {
        if let Some(end) = end(&self.client, &self.server) {
            end
        } else if self.has_server_syn() && (self.has_client_syn() || self.client.ack_cnt > 0) {
            // Who acknowledges a SYN-ACK sent a SYN that was missed.
            Endpoint::Established
        } else if self.has_client_syn() {
            Endpoint::SynSent
        } else if self.client.pkts_all > 0 {
            Endpoint::Partial
        } else {
            Endpoint::Inactive
        }
    }

    const fn server_end(&self) -> Endpoint {
        if let Some(end) = end(&self.server, &self.client) {
            end
        } else if self.has_server_syn() {
            Endpoint::Established
        } else if self.server.pkts_all == 0
            || (self.has_client_syn() && self.server.pkts_all == self.server.ack_cnt_p)
        {
            // Some acknowledge a SYN before they answer it.
            Endpoint::Inactive
        } else {
            Endpoint::Partial
        }
    }
}

// By what an out-of-sequence segment was classified.

/// A kind of evidence; a set of them is an `u8` with their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Evidence {
    /// Timestamps: which copy was sent when, and which one was acknowledged (RFC 7323, RFC 3522).
    Timestamps = 1,
    /// A duplicate selective acknowledgment: the receiver had it twice (RFC 2883).
    Dsack = 2,
    /// Selective acknowledgments: the receiver had later segments (RFC 2018, RFC 8985).
    Sack = 4,
    /// The identification field of IPv4, where it is not zero.
    IpId = 8,
    /// Duplicate acknowledgments (RFC 5681).
    DupAcks = 16,
    /// Time alone, against round-trip and retransmission times (RFC 6298).
    Timing = 32,
    /// The window of the receiver.
    Window = 64,
}

impl Evidence {
    /// All kinds, strongest first.
    pub const ALL: [Self; 7] = [
        Self::Timestamps,
        Self::Dsack,
        Self::Sack,
        Self::IpId,
        Self::DupAcks,
        Self::Timing,
        Self::Window,
    ];

    /// Its bit.
    #[must_use]
    pub const fn bit(self) -> u8 {
        self as u8
    }

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timestamps => "timestamps",
            Self::Dsack => "dsack",
            Self::Sack => "sack",
            Self::IpId => "ip_id",
            Self::DupAcks => "dup_acks",
            Self::Timing => "timing",
            Self::Window => "window",
        }
    }

    /// The words of a set, joined by commas; empty for the empty set.
    #[must_use]
    pub fn words(set: u8) -> &'static str {
        static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
            let words = |set: u8| {
                let of_set = Evidence::ALL.into_iter().filter(|one| set & one.bit() != 0);
                of_set.map(Evidence::as_str).collect::<Vec<_>>().join(",")
            };
            (0..=u8::MAX).map(words).collect()
        });
        WORDS.get(usize::from(set)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::{Evidence, *};

    /// A row of what each side sent, by Zeek's letters of `history`: `S` a SYN (with ACK where the
    /// server sends it), `A` a pure ACK, `D` payload, `F` a FIN, `R` a RST; upper case is the client.
    fn row(history: &str) -> FlowRow {
        let mut row = FlowRow::default();
        for letter in history.chars() {
            let is_client = letter.is_ascii_uppercase();
            let side = if is_client {
                &mut row.client
            } else {
                &mut row.server
            };
            side.pkts_all += 1;
            match letter.to_ascii_uppercase() {
                'S' => {
                    side.syn_cnt += 1;
                    side.ack_cnt += u64::from(!is_client);
                }
                'A' => {
                    side.ack_cnt += 1;
                    side.ack_cnt_p += 1;
                }
                'D' => {
                    side.ack_cnt += 1;
                    side.bytes_uniq += 1;
                }
                'F' => {
                    side.ack_cnt += 1;
                    side.fin_cnt += 1;
                }
                _ => {
                    side.is_rst_first |= side.fin_cnt == 0;
                    side.rst_cnt += 1;
                }
            }
        }
        row.has_syn = row.client.syn_cnt > 0;
        row
    }

    fn check(cases: &[(&str, &str)]) {
        for (history, state) in cases {
            assert_eq!(row(history).conn_state(), *state, "{history}");
        }
    }

    #[test]
    fn states_of_connections_whose_syns_were_seen() {
        check(&[
            ("S", "S0"),
            ("Sa", "S0"),
            ("Sd", "OTH"),
            ("Ss", "S1"),
            ("SsADd", "S1"),
            ("SsADdFaf", "SF"),
            ("SsADdFa", "S2"),
            ("SsADdfA", "S3"),
            ("Sr", "REJ"),
            ("SR", "RSTOS0"),
            ("SAR", "OTH"),
            ("SF", "SH"),
            ("SFR", "OTH"),
            ("SsADR", "RSTO"),
            ("SsADdr", "RSTR"),
            ("SsrR", "REJ"),
            ("SsADrR", "RSTR"),
        ]);
    }

    #[test]
    fn a_reset_behind_both_fins_is_none() {
        check(&[
            ("SsADdFafR", "SF"),
            ("SsADdFafr", "SF"),
            ("SsADdfFR", "SF"),
            // Zeek takes the RST back when the other side closes too.
            ("SsADdFRf", "SF"),
            ("SsADdfrF", "SF"),
            // Behind one FIN it is one, and so is one before its sender's FIN.
            ("SsADdFR", "RSTO"),
            ("SsADdFr", "RSTR"),
            ("SsADdfR", "RSTO"),
            ("SsADdFrf", "RSTR"),
            ("SsADdfRF", "RSTO"),
        ]);
    }

    #[test]
    fn a_syn_ack_without_syn_is_as_if_the_syn_had_been_seen() {
        check(&[
            ("sA", "S1"),
            ("sADdFf", "SF"),
            ("sADdF", "S2"),
            ("sADdf", "S3"),
            ("sADR", "RSTO"),
            ("sR", "RSTO"),
            ("sADr", "RSTR"),
            // Nothing answers it: a scan in reverse.
            ("s", "OTH"),
            ("sf", "SHR"),
            ("sr", "RSTRH"),
        ]);
    }

    #[test]
    fn connections_met_in_the_middle() {
        check(&[
            ("Dd", "OTH"),
            ("DdFf", "SF"),
            ("DdFfR", "SF"),
            ("DdF", "SH"),
            ("Ddf", "SHR"),
            ("Dr", "RSTRH"),
            ("r", "RSTRH"),
            ("DdR", "OTH"),
            ("DdFr", "RSTR"),
            ("DdfR", "RSTO"),
        ]);
    }

    #[test]
    fn a_later_period_is_of_a_connection_that_was_opened() {
        let later = |history| {
            let mut row = row(history);
            (row.has_syn, row.start_ns, row.first_ns) = (true, 5, 9);
            row.conn_state()
        };
        assert_eq!(later("Dd"), "S1");
        assert_eq!(later("DdF"), "S2");
        assert_eq!(later("Ddr"), "RSTR");
    }

    #[test]
    fn sets_are_words() {
        assert_eq!(Evidence::words(0), "");
        let set = Evidence::IpId.bit() | Evidence::Timestamps.bit();
        assert_eq!(Evidence::words(set), "timestamps,ip_id");
    }
}
