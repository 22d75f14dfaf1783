//! What is known of one flow: everything of fixed size.

use std::net::{IpAddr, Ipv6Addr};

use super::quic::QuicRow;
use crate::place::Place;

/// Transport protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Transmission Control Protocol (RFC 9293).
    #[default]
    Tcp,
    /// User Datagram Protocol (RFC 768).
    Udp,
}

impl Protocol {
    /// The word in the `protocol` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    /// The number in an IP header.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// Whether a record tells of a whole flow or of one period of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// The whole flow; written once, when it has ended.
    #[default]
    Final,
    /// What was added since the record before of the same flow: counters are differences. The
    /// partial records of a flow add up to its final one.
    Partial,
}

impl Extent {
    /// The word in the `record` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Partial => "partial",
        }
    }
}

/// How a flow ended, or what it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowState {
    /// Still there when the input ended, when the run was stopped, or when a partial record was
    /// written.
    #[default]
    Open,
    /// Both sides sent FIN and both were acknowledged.
    Closed,
    /// One side sent RST.
    Reset,
    /// Nothing came for the idle timeout.
    Idle,
    /// A SYN that was never answered.
    Unanswered,
    /// It had to leave because the table was full.
    Evicted,
    /// The same ports began a new connection.
    Reused,
}

impl FlowState {
    /// The word in the `state` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Idle => "idle",
            Self::Unanswered => "unanswered",
            Self::Evicted => "evicted",
            Self::Reused => "reused",
        }
    }
}

/// What an out-of-sequence segment is.
///
/// Source: Mellia, Meo, Muscariello, Rossi 2008, "Passive analysis of TCP anomalies"; the class of
/// tail loss probes is ours (RFC 8985 sec. 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Anomaly {
    /// Retransmitted when the retransmission timer ran out.
    Rto,
    /// Retransmitted after three duplicate acknowledgments, or selective ones (RFC 8985).
    FastRetransmit,
    /// Late, but sent once.
    Reordering,
    /// Sent once and doubled by the network.
    NetworkDuplicate,
    /// Nothing decides.
    Unknown,
    /// A probe of a closed window, or a keep-alive (RFC 9293 sec. 3.8.4, 3.8.6.1).
    FlowControl,
    /// Retransmitted by the timer although the receiver had it.
    UnnecessaryRto,
    /// Retransmitted after duplicate acknowledgments although the receiver had it.
    UnnecessaryFastRetransmit,
    /// The last segment once more, before the timer runs out, to provoke an acknowledgment.
    TailLossProbe,
}

/// The columns of a record whose sum is [`FlowSide::retransmissions`] of both sides.
pub const RETRANSMISSION_COLUMNS: [&str; 10] = [
    "c_pkts_rto",
    "s_pkts_rto",
    "c_pkts_fs",
    "s_pkts_fs",
    "c_pkts_unrto",
    "s_pkts_unrto",
    "c_pkts_unfs",
    "s_pkts_unfs",
    "c_pkts_tlp",
    "s_pkts_tlp",
];

impl Anomaly {
    /// Number of classes.
    pub const COUNT: usize = 9;

    /// All classes, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Rto,
        Self::FastRetransmit,
        Self::Reordering,
        Self::NetworkDuplicate,
        Self::Unknown,
        Self::FlowControl,
        Self::UnnecessaryRto,
        Self::UnnecessaryFastRetransmit,
        Self::TailLossProbe,
    ];

    /// Whether the sender sent the segment again: all by timer, by duplicate acknowledgments and as a probe of the tail,
    /// needed or not. What the network reordered or doubled was sent once, and a keep-alive carries nothing.
    #[must_use]
    pub const fn is_retransmission(self) -> bool {
        match self {
            Self::Rto
            | Self::FastRetransmit
            | Self::UnnecessaryRto
            | Self::UnnecessaryFastRetransmit
            | Self::TailLossProbe => true,
            Self::Reordering | Self::NetworkDuplicate | Self::Unknown | Self::FlowControl => false,
        }
    }

    /// Its name in summaries and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rto => "rto",
            Self::FastRetransmit => "fast_retransmit",
            Self::Reordering => "reordering",
            Self::NetworkDuplicate => "network_duplicate",
            Self::Unknown => "unknown",
            Self::FlowControl => "flow_control",
            Self::UnnecessaryRto => "unnecessary_rto",
            Self::UnnecessaryFastRetransmit => "unnecessary_fast_retransmit",
            Self::TailLossProbe => "tail_loss_probe",
        }
    }
}

/// Round-trip times of one half of the path: from the capture point to the receiver and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RttRow {
    /// Samples; where there is none, all others are zero.
    pub count: u32,
    /// Mean, nanoseconds.
    pub avg_ns: u64,
    /// Smallest, nanoseconds.
    pub min_ns: u64,
    /// Largest, nanoseconds.
    pub max_ns: u64,
    /// Standard deviation, nanoseconds.
    pub std_ns: u64,
}

/// What one side sent, and what is known of it.
///
/// Times are nanoseconds since the first packet of the flow, unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSide {
    /// Its address.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
    /// Whether the address is of an internal network.
    pub is_internal: bool,
    /// Where the address is, before it was replaced.
    pub place: Place,
    /// Whether the address was replaced (Crypto-PAn).
    pub is_encrypted: bool,
    /// Packets.
    pub pkts_all: u64,
    /// Packets with RST.
    pub rst_cnt: u64,
    /// Packets with ACK.
    pub ack_cnt: u64,
    /// Packets with ACK and neither payload nor SYN, FIN, RST.
    pub ack_cnt_p: u64,
    /// Payload bytes, each counted once.
    pub bytes_uniq: u64,
    /// Payload bytes that the capture missed, between the first and the last byte that were sent or acknowledged.
    pub missed_bytes: u64,
    /// Packets with payload.
    pub pkts_data: u64,
    /// Payload bytes, with retransmissions.
    pub bytes_all: u64,
    /// Packets with bytes that had been seen before.
    pub pkts_retx: u64,
    /// Payload bytes that had been seen before.
    pub bytes_retx: u64,
    /// Packets that came after later ones and had not been seen before.
    pub pkts_ooo: u64,
    /// Packets with SYN.
    pub syn_cnt: u64,
    /// Packets with FIN.
    pub fin_cnt: u64,
    /// Whether its first RST came before any FIN of its own, or with it.
    pub is_rst_first: bool,
    /// Bytes of IP packets, headers included.
    pub ip_bytes: u64,
    /// First packet of this side, nanoseconds since the epoch.
    pub first_packet_ns: Option<u64>,
    /// Last packet of this side, nanoseconds since the epoch.
    pub last_packet_ns: Option<u64>,
    /// First packet with payload.
    pub first_ns: Option<u64>,
    /// Last packet with payload.
    pub last_ns: Option<u64>,
    /// First packet with ACK that is no SYN.
    pub first_ack_ns: Option<u64>,
    /// Round-trip times of what this side sent.
    pub rtt: RttRow,
    /// Smallest time to live or hop limit.
    pub ttl_min: u8,
    /// Largest time to live or hop limit.
    pub ttl_max: u8,
    /// Whether it offered window scaling.
    pub has_window_scale: bool,
    /// Whether it sent timestamps.
    pub has_timestamps: bool,
    /// Its window scale, a shift.
    pub window_scale: u8,
    /// Whether it offered selective acknowledgments.
    pub has_sack: bool,
    /// Whether it offered multipath TCP (RFC 8684).
    pub has_multipath: bool,
    /// Packets with selective acknowledgments.
    pub sack_cnt: u64,
    /// Maximum segment size it announced, bytes; zero where it did not.
    pub mss: u16,
    /// Longest payload, bytes.
    pub mss_max: u32,
    /// Shortest payload, bytes.
    pub mss_min: u32,
    /// Largest window it announced, scaled, bytes.
    pub win_max: u32,
    /// Smallest window but zero it announced, scaled, bytes.
    pub win_min: u32,
    /// Packets that announced a window of zero.
    pub win_0: u64,
    /// Most bytes in flight.
    pub cwin_max: u32,
    /// Fewest bytes in flight, but zero.
    pub cwin_min: u32,
    /// Bytes in flight before the first acknowledgment of data.
    pub cwin_ini: u32,
    /// Out-of-sequence segments by [`Anomaly`].
    pub anomalies: [u64; Anomaly::COUNT],
    /// Retransmitted SYNs.
    pub syn_retx: u64,
    /// Packets with payload and PSH.
    pub pkts_push: u64,
    /// Pure acknowledgments that repeated the one before while data was outstanding.
    pub dup_acks: u64,
    /// Last packet of its TLS handshake.
    pub last_handshake_ns: Option<u64>,
    /// First packet with TLS application data.
    pub appdata_ns: Option<u64>,
    /// Bytes of TLS application data records.
    pub appdata_bytes: u64,
    /// TLS version it offered or chose, as on the wire (`0x0303`); zero where there is none.
    pub tls_version: u16,
    /// QUIC version of its first long header; zero where there is none.
    pub quic_version: u32,
}

impl Default for FlowSide {
    fn default() -> Self {
        Self {
            ip: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port: 0,
            is_internal: false,
            place: Place::default(),
            is_encrypted: false,
            pkts_all: 0,
            rst_cnt: 0,
            ack_cnt: 0,
            ack_cnt_p: 0,
            bytes_uniq: 0,
            missed_bytes: 0,
            pkts_data: 0,
            bytes_all: 0,
            pkts_retx: 0,
            bytes_retx: 0,
            pkts_ooo: 0,
            syn_cnt: 0,
            fin_cnt: 0,
            is_rst_first: false,
            ip_bytes: 0,
            first_packet_ns: None,
            last_packet_ns: None,
            first_ns: None,
            last_ns: None,
            first_ack_ns: None,
            rtt: RttRow::default(),
            ttl_min: 0,
            ttl_max: 0,
            has_window_scale: false,
            has_timestamps: false,
            window_scale: 0,
            has_sack: false,
            has_multipath: false,
            sack_cnt: 0,
            mss: 0,
            mss_max: 0,
            mss_min: 0,
            win_max: 0,
            win_min: 0,
            win_0: 0,
            cwin_max: 0,
            cwin_min: 0,
            cwin_ini: 0,
            anomalies: [0; Anomaly::COUNT],
            syn_retx: 0,
            pkts_push: 0,
            dup_acks: 0,
            last_handshake_ns: None,
            appdata_ns: None,
            appdata_bytes: 0,
            tls_version: 0,
            quic_version: 0,
        }
    }
}

impl FlowSide {
    /// Segments of a class.
    #[must_use]
    pub fn anomaly(&self, class: Anomaly) -> u64 {
        self.anomalies
            .get(class as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Segments with payload that this side sent again: those of the classes that [are
    /// retransmissions](Anomaly::is_retransmission).
    #[must_use]
    pub fn retransmissions(&self) -> u64 {
        let classes = Anomaly::ALL.iter().zip(&self.anomalies);
        let sent_again = classes.filter(|(class, _)| class.is_retransmission());
        sent_again.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// The numbers of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowRow {
    /// Names the flow in all of its records: a hash of addresses, ports, protocol and first packet.
    pub flow_id: u64,
    /// First packet of the flow, of a partial record of its period; nanoseconds since the epoch.
    pub first_ns: u64,
    /// Last packet, nanoseconds since the epoch.
    pub last_ns: u64,
    /// First packet of the whole flow, nanoseconds since the epoch; `first_ns` but in a partial
    /// record.
    pub start_ns: u64,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Whole flow or a period.
    pub extent: Extent,
    /// How it ended.
    pub state: FlowState,
    /// Whether the first packet of a TCP connection was seen: its SYN.
    pub has_syn: bool,
    /// Who opened it; of a TCP flow without SYN, who seems to have.
    pub client: FlowSide,
    /// Who was called.
    pub server: FlowSide,
    /// Outermost VLAN id of its first packet.
    pub vlan: Option<u16>,
    /// Name of the application protocol, of several joined by commas; `unknown` where nothing was recognised.
    pub application: &'static str,
    /// Tstat's bit mask of application protocols (TCP), or its number of one (UDP).
    pub con_t: u32,
    /// Tstat's number of the peer-to-peer protocol.
    pub p2p_t: u32,
    /// Tstat's class of HTTP.
    pub http_t: u32,
    /// Tstat's subtype of peer-to-peer messages.
    pub p2p_st: u32,
    /// eDonkey messages: data, signalling, client to server, client to client, chat.
    pub ed2k: [u32; 5],
    /// HTTP requests.
    pub http_requests: u32,
    /// HTTP responses.
    pub http_responses: u32,
    /// Status code of the first HTTP response; zero where there is none.
    pub http_status: u16,
    /// TLS session: 0 new, 1 resumed by id, 2 by ticket or pre-shared key.
    pub tls_session: u8,
    /// Address of the resolver that named the server.
    pub dns_resolver: Option<IpAddr>,
    /// Time of the question that named the server, nanoseconds since the epoch.
    pub dns_request_ns: Option<u64>,
    /// Time of the answer, nanoseconds since the epoch.
    pub dns_response_ns: Option<u64>,
    /// Whether 0-RTT packets of QUIC were seen.
    pub has_zero_rtt: bool,
    /// Whether the `ClientHello` had the extension of an encrypted one.
    pub has_ech: bool,
    /// Kinds of evidence by which segments were classified, a set of [`super::Evidence`] bits.
    pub evidence: u8,
    /// What happened, in Zeek's letters.
    pub history: super::History,
    /// SYN to SYN-ACK, nanoseconds.
    pub syn_ack_ns: Option<u64>,
    /// SYN-ACK to the ACK of the client, nanoseconds.
    pub ack_dat_ns: Option<u64>,
    /// What is known of a flow of QUIC beside its versions.
    pub quic: Option<QuicRow>,
}

impl FlowRow {
    /// Nanoseconds from first to last packet.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// Whether Tstat's logs count it as complete: SYNs of both sides were seen, and it was closed,
    /// reset or idle before the input ended.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.client.syn_cnt > 0
            && self.server.syn_cnt > 0
            && matches!(
                self.state,
                FlowState::Closed | FlowState::Reset | FlowState::Idle | FlowState::Reused
            )
    }
}

// Heads of HTTP messages within a flow: what Tstat's `log_http_complete` has lines of.

/// Which half of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// From the client. Texts: method, host, path, `Referer`, `User-Agent`, `Cookie`, `DNT`, and the
    /// name of the server by DNS.
    Request,
    /// From the server. Texts: `Content-Length`, `Content-Type`, `Server`, `Content-Range`,
    /// `Location`, `Set-Cookie`, and two that are empty.
    Response,
}

/// The fixed part of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRow {
    /// Request or response.
    pub kind: MessageKind,
    /// When its first packet was seen, nanoseconds since the epoch.
    pub time_ns: u64,
    /// Address and port of the client.
    pub client: (IpAddr, u16),
    /// Address and port of the server.
    pub server: (IpAddr, u16),
    /// Status code of a response; zero of a request.
    pub status: u16,
}

/// Texts of a message.
pub const MESSAGE_TEXTS: usize = 8;

/// A head, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The fixed part.
    pub row: &'a MessageRow,
    /// Its texts in the order of [`MessageKind`]; empty where there is none.
    pub texts: [&'a [u8]; MESSAGE_TEXTS],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Flow, FlowText};
    use crate::{FlowKind, RecordKind as _, Value};

    #[test]
    fn retransmissions_are_the_sum_of_their_columns() {
        let mut row = FlowRow::default();
        for (n, class) in Anomaly::ALL.into_iter().enumerate() {
            row.client.anomalies[class as usize] = 1 << n;
            row.server.anomalies[class as usize] = 1 << (n + 16);
        }
        (row.client.pkts_retx, row.server.pkts_retx) = (1 << 40, 1 << 41);
        let sum = row.client.retransmissions() + row.server.retransmissions();
        let view = Flow {
            row: &row,
            text: FlowText::default(),
        };
        let columns = RETRANSMISSION_COLUMNS.map(|name| {
            let column = FlowKind::column(name).unwrap();
            match FlowKind::value(&view, column) {
                Value::U64(count) => count,
                other => panic!("{name}: {other:?}"),
            }
        });
        assert_eq!(columns.iter().sum::<u64>(), sum);
        // Reordered, doubled, unknown and keep-alives are none.
        assert_eq!(sum & 0xffff, 0b1_1100_0011);
    }
}
