//! `tcp_flow` and `udp_flow`: one record per flow, both directions in it.
//!
//! The columns are those of Tstat's `log_tcp_complete` and `log_udp_complete`, with their names,
//! order and units, and what Tstat does not have. A record has the columns of its protocol; JSON
//! leaves the others out, tables and lines, which have one shape for all, leave them empty.
//!
//! Source: Tstat (Rossi, Mellia 2006), its logs as version 3.3.0 writes them.

mod batch;
mod columns;
mod conn_state;
mod dns;
mod history;
mod quic;
mod row;
mod stream;

pub use batch::{DnsLine, Flow, FlowBatch, FlowText};
pub use conn_state::Evidence;
pub use dns::{DNS_TEXTS, DnsEntry, DnsRow};
pub use history::{Event, History};
pub use quic::{Halves, QuicRow, SpinVerdict};
pub use row::{
    Anomaly, Extent, FlowRow, FlowSide, FlowState, Protocol, RETRANSMISSION_COLUMNS, RttRow,
};
pub use row::{MESSAGE_TEXTS, Message, MessageKind, MessageRow};
pub use stream::{Jitter, MediaPart, ReportPart, StreamEnd, StreamKinds, StreamPart, StreamRow};

use crate::line::{Cell, LineCell};
use crate::schema::{Endpoint, Field, RecordKind, Value, ZeekColumn};

/// The columns that Tstat's `log_tcp_complete` has, from the first.
pub const TCP_COLUMNS: usize = 134;

/// The columns of a record of a UDP flow: Tstat's, in its order, and ours.
pub const UDP_FIELDS: [&str; UDP_COUNT] = [
    "c_ip",
    "c_port",
    "c_first_abs",
    "c_durat",
    "c_bytes_all",
    "c_pkts_all",
    "c_isint",
    "c_iscrypto",
    "c_type",
    "s_ip",
    "s_port",
    "s_first_abs",
    "s_durat",
    "s_bytes_all",
    "s_pkts_all",
    "s_isint",
    "s_iscrypto",
    "s_type",
    "fqdn",
    "quic_SNI",
    "quic_UA",
    "quic_c_vers",
    "quic_s_vers",
    "quic_zero_rtt",
    "quic_ech",
    "protocol",
    "record",
    "state",
    "flow_id",
    "vlan",
    "application",
    "sni",
    "c_ip_bytes",
    "s_ip_bytes",
    "first",
    "last",
    "durat",
    "community_id",
    "ja4",
    "uid",
    "history",
    "client_country",
    "client_asn",
    "server_country",
    "server_asn",
    "quic_rtt_ns",
    "c_quic_rtt_ns",
    "s_quic_rtt_ns",
    "spin_rtt_ns",
    "c_spin_rtt_ns",
    "s_spin_rtt_ns",
    "spin_rtt_cnt",
    "spin_valid",
    "quic_retries",
    "quic_version_negotiations",
    "quic_migrated",
];
const UDP_COUNT: usize = 56;

/// Columns that only UDP flows have.
const UDP_ONLY: [&str; 23] = [
    "c_first_abs",
    "c_durat",
    "c_type",
    "s_first_abs",
    "s_durat",
    "s_type",
    "quic_SNI",
    "quic_UA",
    "quic_c_vers",
    "quic_s_vers",
    "quic_zero_rtt",
    "quic_ech",
    "quic_rtt_ns",
    "c_quic_rtt_ns",
    "s_quic_rtt_ns",
    "spin_rtt_ns",
    "c_spin_rtt_ns",
    "s_spin_rtt_ns",
    "spin_rtt_cnt",
    "spin_valid",
    "quic_retries",
    "quic_version_negotiations",
    "quic_migrated",
];

/// The kind of flows.
#[derive(Debug, Clone, Copy)]
pub struct FlowKind;

impl RecordKind for FlowKind {
    type View<'a> = Flow<'a>;
    type Batch = FlowBatch;
    const NAME: &'static str = "flow";
    const VERSION: u16 = 2;
    const ZEEK_PATH: &'static str = "conn";

    fn fields() -> &'static [Field] {
        columns::FIELDS
    }

    #[inline]
    fn value<'a>(view: &Flow<'a>, column: usize) -> Value<'a>
    where
        'a: 'a,
    {
        columns::read_column(view, column)
    }

    const SHAPES: usize = 2;

    #[inline]
    fn shape(view: &Flow<'_>) -> usize {
        match view.row.protocol {
            Protocol::Tcp => 0,
            Protocol::Udp => 1,
        }
    }

    #[inline]
    fn has_column(shape: usize, column: usize) -> bool {
        use std::sync::LazyLock;
        /// Of each column, which shapes have it.
        static HAS: LazyLock<Vec<[bool; FlowKind::SHAPES]>> = LazyLock::new(|| {
            let fields = columns::FIELDS.iter();
            fields
                .map(|field| {
                    [
                        !UDP_ONLY.contains(&field.name),
                        UDP_FIELDS.contains(&field.name),
                    ]
                })
                .collect()
        });
        let has = HAS.get(column).and_then(|shapes| shapes.get(shape));
        has.copied().unwrap_or_default()
    }

    fn text_line() -> &'static [&'static str] {
        &[
            "protocol",
            "c_ip",
            "c_port",
            "s_ip",
            "s_port",
            "first",
            "durat",
            "c_pkts_all",
            "s_pkts_all",
            "c_bytes_all",
            "s_bytes_all",
            "c_pkts_retx",
            "s_pkts_retx",
            "c_rtt_avg",
            "s_rtt_avg",
            "state",
            "application",
            "sni",
            "fqdn",
        ]
    }

    fn line() -> &'static [LineCell] {
        const CELLS: &[LineCell] = &[
            LineCell::new("time", 12, Cell::Moment(&["first"])),
            LineCell::new(
                "client → server",
                33,
                Cell::Ends(["c_ip", "c_port", "s_ip", "s_port"]),
            ),
            LineCell::new("", 3, Cell::First(&["protocol"])),
            LineCell::new("duration", 8, Cell::Span("durat")),
            LineCell::new("packets", 9, Cell::Counts(["c_pkts_all", "s_pkts_all"])),
            LineCell::new("bytes", 13, Cell::Bytes(["c_bytes_all", "s_bytes_all"])),
            LineCell::optional(
                "state",
                6,
                Cell::Outcome {
                    of: &["state"],
                    good: &["closed", "idle", "open", "reused"],
                },
            ),
            LineCell::new("application", 11, Cell::First(&["application"])),
            LineCell::new("name", 16, Cell::First(&["sni", "fqdn"])),
        ];
        CELLS
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        const fn column(name: &'static str, kind: &'static str) -> ZeekColumn {
            ZeekColumn { name, kind }
        }
        const COLUMNS: &[(&str, ZeekColumn)] = &[
            ("first", column("ts", "time")),
            ("uid", column("uid", "string")),
            ("c_ip", column("id.orig_h", "addr")),
            ("c_port", column("id.orig_p", "port")),
            ("s_ip", column("id.resp_h", "addr")),
            ("s_port", column("id.resp_p", "port")),
            ("protocol", column("proto", "enum")),
            ("application", column("service", "string")),
            ("durat", column("duration", "interval")),
            // Of TCP, Zeek takes them from sequence numbers.
            ("c_bytes_uniq", column("orig_bytes", "count")),
            ("s_bytes_uniq", column("resp_bytes", "count")),
            ("conn_state", column("conn_state", "string")),
            ("c_isint", column("local_orig", "bool")),
            ("s_isint", column("local_resp", "bool")),
            ("missed_bytes", column("missed_bytes", "count")),
            ("history", column("history", "string")),
            ("c_pkts_all", column("orig_pkts", "count")),
            ("c_ip_bytes", column("orig_ip_bytes", "count")),
            ("s_pkts_all", column("resp_pkts", "count")),
            ("s_ip_bytes", column("resp_ip_bytes", "count")),
            ("", column("tunnel_parents", "set[string]")),
            ("protocol", column("ip_proto", "count")),
            // Ours, behind Zeek's; `vlan` is named as by its policy script.
            ("vlan", column("vlan", "int")),
            ("sni", column("server_name", "string")),
            ("fqdn", column("fqdn", "string")),
            ("record", column("record", "string")),
            ("flow_id", column("flow_id", "count")),
            ("community_id", column("community_id", "string")),
            ("client_country", column("client_country", "string")),
            ("client_asn", column("client_asn", "count")),
            ("server_country", column("server_country", "string")),
            ("server_asn", column("server_asn", "count")),
        ];
        COLUMNS
    }

    fn time_ns(view: &Flow<'_>) -> u64 {
        view.row.first_ns
    }

    /// Partial records have times of their own.
    #[inline]
    fn subject(view: &Flow<'_>) -> u64 {
        view.row.flow_id
    }

    #[inline]
    fn endpoints(view: &Flow<'_>) -> [Endpoint; 2] {
        [
            (view.row.client.ip, view.row.client.port),
            (view.row.server.ip, view.row.server.port),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::RecordBatch;

    #[test]
    fn every_name_is_a_column_and_stands_once() {
        let names: Vec<_> = FlowKind::fields().iter().map(|field| field.name).collect();
        for name in UDP_FIELDS
            .iter()
            .chain(&UDP_ONLY)
            .chain(FlowKind::text_line())
        {
            assert_eq!(names.iter().filter(|n| n == &name).count(), 1, "{name}");
        }
        for (name, _) in FlowKind::zeek_columns() {
            assert!(name.is_empty() || names.contains(name), "{name}");
        }
        assert_eq!(names.get(TCP_COLUMNS - 1), Some(&"dns_enc"));
        assert_eq!(names.get(TCP_COLUMNS), Some(&"c_first_abs"));
    }

    #[test]
    fn batches_keep_rows_texts_and_messages() {
        let mut batch = FlowBatch::default();
        let row = FlowRow {
            first_ns: 1_500_000,
            ..FlowRow::default()
        };
        let text = FlowText {
            sni: b"a.example",
            fqdn: b"b.example",
            ..FlowText::default()
        };
        assert!(batch.is_empty());
        batch.push(row, &text);
        let udp = FlowRow {
            protocol: Protocol::Udp,
            ..row
        };
        batch.push(udp, &FlowText::default());
        let first = batch.get(0).unwrap();
        assert_eq!(first.text, text);
        let at = |name: &str| FlowKind::column(name).unwrap();
        assert_eq!(
            FlowKind::value(&first, at("first")),
            Value::Millis(1_500_000)
        );
        assert_eq!(
            FlowKind::value(&first, at("c_tls_SNI")),
            Value::Text(b"a.example")
        );
        assert_eq!(FlowKind::value(&first, at("quic_SNI")), Value::Null);
        assert_eq!(
            FlowKind::value(&first, at("application")),
            Value::Word("unknown")
        );
        let has = |view, name| FlowKind::has_column(FlowKind::shape(view), at(name));
        assert!(has(&first, "c_rtt_avg") && has(&first, "sni"));
        assert!(!has(&first, "quic_SNI"));
        let second = batch.get(1).unwrap();
        assert!(!has(&second, "c_rtt_avg"));
        assert!(has(&second, "quic_SNI") && has(&second, "sni"));
    }
}
