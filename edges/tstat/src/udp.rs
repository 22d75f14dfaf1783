//! Lines of UDP flows.

use linkweir_record::flow::{Flow, FlowSide, UDP_FIELDS};

use crate::lines::{push_all, push_end, push_header, push_text, push_times};
use linkweir_sink::escape::hex;
use linkweir_sink::number::push_seconds6;

/// Columns that Tstat has.
const COLUMNS: usize = 25;

pub(crate) fn header(out: &mut Vec<u8>) {
    push_header(out, "#", b' ', UDP_FIELDS.into_iter().take(COLUMNS));
}
fn push_side(out: &mut Vec<u8>, side: &FlowSide, kind: u32) {
    push_end(out, side);
    push_times(out, [side.first_packet_ns]);
    let duration = match (side.first_packet_ns, side.last_packet_ns) {
        (Some(first), Some(last)) => last.saturating_sub(first),
        _ => 0,
    };
    out.push(b' ');
    // Seconds, unlike all others.
    push_seconds6(out, duration);
    push_all(
        out,
        [
            side.bytes_all,
            side.pkts_all,
            u64::from(side.is_internal),
            u64::from(side.is_encrypted),
            u64::from(kind),
        ],
    );
}

fn push_version(out: &mut Vec<u8>, version: u32) {
    if version == 0 {
        return push_text(out, b"");
    }
    out.extend_from_slice(b" 0x");
    for byte in version.to_be_bytes() {
        out.extend_from_slice(&hex(byte));
    }
}

/// Percent-encoding, a space as `+`.
fn push_percent(out: &mut Vec<u8>, text: &[u8]) {
    if text.is_empty() {
        return push_text(out, b"");
    }
    out.push(b' ');
    for &byte in text {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => out.push(byte),
            b' ' => out.push(b'+'),
            _ => {
                let [high, low] = hex(byte);
                out.extend_from_slice(&[b'%', high, low]);
            }
        }
    }
}

/// A line of `log_udp_complete`.
pub(crate) fn line(out: &mut Vec<u8>, flow: &Flow<'_>) {
    let Flow { row, text } = flow;
    push_side(out, &row.client, row.con_t);
    out.push(b' ');
    push_side(out, &row.server, row.con_t);
    push_text(out, text.fqdn);
    push_text(out, text.sni);
    push_percent(out, text.quic_user_agent);
    push_version(out, row.client.quic_version);
    push_version(out, row.server.quic_version);
    push_all(out, [u64::from(row.has_zero_rtt), u64::from(row.has_ech)]);
    out.push(b'\n');
}
