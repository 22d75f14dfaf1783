//! `http_half`: a TCP segment that an HTTP measurement would look at, as a row.
//!
//! For traces that no machine reads alone: each capture file is reduced to such rows where it lies, an
//! engine brings together what belongs together, and the measurement reads rows instead of packets.
//!
//! # The shard rule
//! Which rows must meet is told by all rows of the trace, of all files, and so it is the engine that
//! tells it. In SQL, `:n` being the number of shards (numbers of 32 bits are compared on the circle: `a`
//! is not before `b` where `pmod(a - b, 4294967296) < 2147483648`):
//!
//! ```sql
//! WITH seen AS (
//!   SELECT *,
//!     CASE WHEN is_request = 1 THEN concat(src_ip, ' ', src_port)
//!          WHEN is_request = 0 THEN concat(dst_ip, ' ', dst_port) END AS client,
//!     last(CASE WHEN is_request IS NOT NULL THEN seq END, true) OVER before AS last_seq,
//!     last(CASE WHEN is_request IS NOT NULL THEN ack END, true) OVER before AS last_ack,
//!     last(end_seq, true) OVER before AS last_end
//!   FROM halves
//!   WINDOW before AS (PARTITION BY connection, src_ip, src_port ORDER BY order_ns, file, packet
//!                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
//! judged AS (
//!   SELECT *, is_plain = 1 AND CASE
//!     -- No message begins here: harmless unless one is expected inside.
//!     WHEN is_request IS NULL THEN last_end IS NULL
//!       OR pmod(seq - last_end, 4294967296) < 2147483648
//!       OR pmod(last_end - seq - payload_len, 4294967296) < 2147483648
//!     -- The first message of its direction.
//!     WHEN last_seq IS NULL THEN true
//!     -- The last message again.
//!     WHEN seq = last_seq THEN is_request = 0 OR ack = last_ack
//!     -- A later message, behind the end of the one before it.
//!     ELSE pmod(seq - last_seq, 4294967296) < 2147483648
//!       AND (last_end IS NULL OR pmod(seq - last_end, 4294967296) < 2147483648)
//!       AND (is_request = 0 OR (ack <> last_ack AND pmod(ack - last_ack, 4294967296) < 2147483648))
//!     END AS fits
//!   FROM seen),
//! known AS (
//!   SELECT *, min(CASE WHEN fits THEN 1 ELSE 0 END) OVER whole = 1
//!     AND (min(client) OVER whole IS NULL OR min(client) OVER whole = max(client) OVER whole) AS by_message
//!   FROM judged WINDOW whole AS (PARTITION BY connection))
//! SELECT *, CASE WHEN by_message THEN pmod(eq3, :n) ELSE pmod(connection, :n) END AS shard
//! FROM known WHERE NOT by_message OR is_request IS NOT NULL
//! ORDER BY shard, order_ns, file, packet
//! ```

use std::net::{IpAddr, Ipv6Addr};

use crate::schema::{Endpoint, Field, RecordBatch, RecordKind, Value, ZeekColumn, columns, opt};

/// A segment without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfRow {
    /// The latest capture time in the file so far, nanoseconds since the epoch: the order of rows.
    pub order_ns: u64,
    /// Capture time, nanoseconds since the epoch.
    pub ts_ns: u64,
    /// Number of the packet in its file, from 1.
    pub packet: u64,
    /// Hash of the connection, below 2^63, the same for both directions.
    pub connection: u64,
    /// Address that sent it; within tunnels the innermost.
    pub src_ip: IpAddr,
    /// Address that it was sent to.
    pub dst_ip: IpAddr,
    /// Place of the file in the trace.
    pub file: u32,
    /// `SEG.SEQ` as in the header.
    pub seq: u32,
    /// `SEG.ACK` as in the header.
    pub ack: u32,
    /// The sequence number behind the message that begins with the segment, where that is known.
    pub end_seq: Option<u32>,
    /// Bytes of payload on the wire.
    pub payload_len: u32,
    /// Bytes of payload that were captured.
    pub captured_len: u32,
    /// Eq. (3) of the message that begins with the segment: the same for a request and its response.
    pub eq3: u32,
    /// TCP port that sent it.
    pub src_port: u16,
    /// TCP port that it was sent to.
    pub dst_port: u16,
    /// Outermost VLAN id.
    pub vlan: Option<u16>,
    /// The control bits.
    pub flags: u8,
    /// Whether a request or a response begins with the segment; nothing where neither does.
    pub is_request: Option<bool>,
    /// Whether the segment says nothing beyond one whole message that begins with it; where none does,
    /// whether it was kept only because of what may have come before the file.
    pub is_plain: bool,
}

impl Default for HalfRow {
    fn default() -> Self {
        Self {
            order_ns: 0,
            ts_ns: 0,
            packet: 0,
            connection: 0,
            src_ip: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            dst_ip: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            file: 0,
            seq: 0,
            ack: 0,
            end_seq: None,
            payload_len: 0,
            captured_len: 0,
            eq3: 0,
            src_port: 0,
            dst_port: 0,
            vlan: None,
            flags: 0,
            is_request: None,
            is_plain: false,
        }
    }
}

/// A segment, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpHalf<'a> {
    /// Everything of fixed size.
    pub row: &'a HalfRow,
    /// The payload as far as it matters: what is missing up to [`HalfRow::captured_len`] may be read as
    /// zeros.
    pub payload: &'a [u8],
}

/// Segments in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct HalfBatch {
    rows: Vec<HalfRow>,
    /// Where the payload of each row ends in the arena.
    ends: Vec<usize>,
    arena: Vec<u8>,
}

impl HalfBatch {
    /// Appends a segment.
    #[inline]
    pub fn push(&mut self, row: HalfRow, payload: &[u8]) {
        self.arena.extend_from_slice(payload);
        self.ends.push(self.arena.len());
        self.rows.push(row);
    }
}

impl RecordBatch<HalfKind> for HalfBatch {
    #[inline]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<HttpHalf<'_>> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let payload = self.arena.get(start..*self.ends.get(at)?)?;
        let row = self.rows.get(at)?;
        Some(HttpHalf { row, payload })
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
        self.arena.clear();
    }

    fn push_view(&mut self, view: &HttpHalf<'_>) {
        self.push(*view.row, view.payload);
    }

    fn memory_bytes(&self) -> usize {
        self.rows.len() * (size_of::<HalfRow>() + size_of::<usize>()) + self.arena.len()
    }
}

/// The kind `http_half`.
#[derive(Debug, Clone, Copy)]
pub struct HalfKind;

fn flag(value: bool) -> Value<'static> {
    Value::U64(u64::from(value))
}

fn number(value: u32) -> Value<'static> {
    Value::U64(u64::from(value))
}

/// A capture time behind the year 2262, which only a damaged capture has, as the last one that a column
/// can hold: a row without a time would end the reading of all that follow it.
fn time(ns: u64) -> Value<'static> {
    Value::U64(ns.min(i64::MAX.cast_unsigned()))
}

columns!(FIELDS, read_column, v: HttpHalf, {
    order_ns: I64, "ns since 1970", None, "Latest capture time in the file so far: rows are in the order of order_ns, file, packet." => time(v.row.order_ns);
    file: U32, "", None, "Place of the file in the trace (--file-number)." => number(v.row.file);
    packet: I64, "", None, "Number of the packet in its file, from 1." => Value::U64(v.row.packet);
    ts_ns: I64, "ns since 1970", Some(323), "Capture time." => time(v.row.ts_ns);
    src_ip: Ip, "", Some(8), "Address that sent the segment; within tunnels the innermost." => Value::Ip(v.row.src_ip);
    src_port: Port, "", Some(7), "TCP port that sent it." => Value::Port(v.row.src_port);
    dst_ip: Ip, "", Some(12), "Address that it was sent to." => Value::Ip(v.row.dst_ip);
    dst_port: Port, "", Some(11), "TCP port that it was sent to." => Value::Port(v.row.dst_port);
    vlan: U16, "", Some(58), "Outermost VLAN id." => opt(v.row.vlan.map(u64::from));
    seq: U32, "", Some(184), "Sequence number of the TCP header." => number(v.row.seq);
    ack: U32, "", Some(185), "Acknowledgment number of the TCP header." => number(v.row.ack);
    flags: U16, "", Some(6), "Control bits of the TCP header." => Value::U64(u64::from(v.row.flags));
    payload_len: U32, "bytes", None, "Payload on the wire." => number(v.row.payload_len);
    captured_len: U32, "bytes", None, "Payload that was captured." => number(v.row.captured_len);
    payload: Bytes, "", None, "Captured payload as far as it matters: what is missing up to captured_len may be read as zeros." => Value::Bytes(v.payload);
    is_request: U16, "", None, "1 where a request begins with the segment, 0 where a response does; empty where neither." => v.row.is_request.map_or(Value::Null, flag);
    is_plain: U16, "", None, "1 where nothing but one whole message begins in the segment; where none begins, 1 where it was kept only because of what may have come before the file." => flag(v.row.is_plain);
    end_seq: U32, "", None, "Sequence number behind the message that begins with the segment, where that is known." => opt(v.row.end_seq.map(u64::from));
    connection: I64, "", None, "Hash of the connection, the same for both directions." => Value::U64(v.row.connection);
    eq3: U32, "", None, "Eq. (3) of Vega et al. 2017: the same for a request and its response." => number(v.row.eq3);
});

impl RecordKind for HalfKind {
    type View<'a> = HttpHalf<'a>;
    type Batch = HalfBatch;
    const NAME: &'static str = "http_half";
    const ZEEK_PATH: &'static str = "http_half";

    fn fields() -> &'static [Field] {
        FIELDS
    }

    #[inline]
    fn value<'a>(view: &HttpHalf<'a>, column: usize) -> Value<'a>
    where
        'a: 'a,
    {
        read_column(view, column)
    }

    fn text_line() -> &'static [&'static str] {
        &[
            "ts_ns",
            "src_ip",
            "src_port",
            "dst_ip",
            "dst_port",
            "seq",
            "ack",
            "payload_len",
            "is_request",
            "is_plain",
        ]
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        const fn column(name: &'static str, kind: &'static str) -> ZeekColumn {
            ZeekColumn { name, kind }
        }
        const COLUMNS: &[(&str, ZeekColumn)] = &[
            ("src_ip", column("id.orig_h", "addr")),
            ("src_port", column("id.orig_p", "port")),
            ("dst_ip", column("id.resp_h", "addr")),
            ("dst_port", column("id.resp_p", "port")),
            ("seq", column("seq", "count")),
            ("ack", column("ack", "count")),
            ("payload_len", column("payload_len", "count")),
        ];
        COLUMNS
    }

    fn time_ns(view: &HttpHalf<'_>) -> u64 {
        view.row.ts_ns
    }

    #[inline]
    fn endpoints(view: &HttpHalf<'_>) -> [Endpoint; 2] {
        [
            (view.row.src_ip, view.row.src_port),
            (view.row.dst_ip, view.row.dst_port),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_what_was_put_in() {
        let mut batch = HalfBatch::default();
        for (packet, payload) in [(1, &b"GET"[..]), (2, b""), (3, b"HTTP/1.1")] {
            let row = HalfRow {
                packet,
                ..HalfRow::default()
            };
            batch.push(row, payload);
        }
        let mut copy = HalfBatch::default();
        batch.views().for_each(|view| copy.push_view(&view));
        let seen: Vec<_> = copy.views().map(|v| (v.row.packet, v.payload)).collect();
        assert_eq!(
            seen,
            [(1, &b"GET"[..]), (2, &b""[..]), (3, &b"HTTP/1.1"[..])]
        );
        assert_eq!(copy.get(3), None);
        copy.clear();
        assert!(copy.is_empty());
    }

    #[test]
    fn what_is_not_known_is_null() {
        let row = HalfRow {
            order_ns: u64::MAX >> 1,
            ..HalfRow::default()
        };
        let view = HttpHalf {
            row: &row,
            payload: b"x",
        };
        let value = |name: &str| HalfKind::value(&view, HalfKind::column(name).unwrap());
        for name in ["vlan", "is_request", "end_seq"] {
            assert_eq!(value(name), Value::Null, "{name}");
        }
        assert_eq!(value("order_ns"), Value::U64(u64::MAX >> 1));
        assert_eq!(value("payload"), Value::Bytes(b"x"));
    }
}
