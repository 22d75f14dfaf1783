//! Lines of TCP and UDP flows, each column as Tstat prints it; what all logs are made of.
//!
//! A line ends with a newline; its columns are separated by one space. Text from the network is
//! escaped, so that none of it can add a column or a line.

use linkweir_record::RecordKind;
use linkweir_record::escape::hex;
use linkweir_record::flow::{
    Anomaly, Flow, FlowKind, FlowRow, FlowSide, RttRow, TCP_COLUMNS, UDP_FIELDS,
};
use linkweir_sink::escape::{is_unprintable, push_hex_escaped};
use linkweir_sink::number::{push_ip, push_millis6, push_seconds6, push_u64};

/// Columns of flows that are not complete: Tstat's core set.
pub(crate) const CORE_COLUMNS: usize = 44;

/// `PREFIX` and `NAME:NUMBER` for each column.
pub(crate) fn push_header<'a>(
    out: &mut Vec<u8>,
    prefix: &str,
    separator: u8,
    names: impl Iterator<Item = &'a str>,
) {
    out.extend_from_slice(prefix.as_bytes());
    for (name, number) in names.zip(1_u64..) {
        if number > 1 {
            out.push(separator);
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        push_u64(out, number);
    }
    out.push(b'\n');
}

fn tcp_names() -> impl Iterator<Item = &'static str> {
    FlowKind::fields()
        .iter()
        .take(TCP_COLUMNS)
        .map(|field| field.name)
}

/// Headers. `#31#`: the sets of columns that Tstat's options turn on, all but the advanced one.
pub(crate) fn tcp_complete_header(out: &mut Vec<u8>) {
    push_header(out, "#31#", b' ', tcp_names());
}
pub(crate) fn tcp_nocomplete_header(out: &mut Vec<u8>) {
    push_header(out, "#31#", b' ', tcp_names().take(CORE_COLUMNS));
}
/// Numbers, each after a space.
#[inline]
pub(crate) fn push_all<const N: usize>(out: &mut Vec<u8>, numbers: [u64; N]) {
    for number in numbers {
        match u8::try_from(number) {
            // Nearly all columns of nearly all flows.
            Ok(digit @ 0..10) => out.extend_from_slice(&[b' ', b'0' + digit]),
            _ => {
                out.push(b' ');
                push_u64(out, number);
            }
        }
    }
}

/// Times, each after a space; those that are not known are zero.
#[inline]
pub(crate) fn push_times<const N: usize>(out: &mut Vec<u8>, times: [Option<u64>; N]) {
    for time in times {
        match time {
            None | Some(0) => out.extend_from_slice(b" 0.000000"),
            Some(nanos) => {
                out.push(b' ');
                push_ms(out, nanos);
            }
        }
    }
}

/// A text after a space, `-` where there is none.
#[inline]
pub(crate) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b' ');
    if text.is_empty() {
        out.push(b'-');
    } else {
        push_hex_escaped(out, text, |b| b == b' ' || b == b'\\' || is_unprintable(b));
    }
}

/// Address and port.
pub(crate) fn push_end(out: &mut Vec<u8>, side: &FlowSide) {
    push_ip(out, side.ip);
    push_all(out, [u64::from(side.port)]);
}

pub(crate) fn core_counters(side: &FlowSide) -> [u64; 12] {
    [
        side.pkts_all,
        side.rst_cnt,
        side.ack_cnt,
        side.ack_cnt_p,
        side.bytes_uniq,
        side.pkts_data,
        side.bytes_all,
        side.pkts_retx,
        side.bytes_retx,
        side.pkts_ooo,
        side.syn_cnt,
        side.fin_cnt,
    ]
}

fn push_core(out: &mut Vec<u8>, row: &FlowRow) {
    let (c, s) = (&row.client, &row.server);
    push_end(out, c);
    push_all(out, core_counters(c));
    out.push(b' ');
    push_end(out, s);
    push_all(out, core_counters(s));
    push_times(
        out,
        [
            Some(row.first_ns),
            Some(row.last_ns),
            Some(row.duration_ns()),
            c.first_ns,
            s.first_ns,
            c.last_ns,
            s.last_ns,
            c.first_ack_ns,
            s.first_ack_ns,
        ],
    );
    push_all(
        out,
        [
            u64::from(c.is_internal),
            u64::from(s.is_internal),
            u64::from(c.is_encrypted),
            u64::from(s.is_encrypted),
            u64::from(row.con_t),
            u64::from(row.p2p_t),
            u64::from(row.http_t),
        ],
    );
}

fn push_end_to_end(out: &mut Vec<u8>, side: &FlowSide) {
    let RttRow {
        count,
        avg_ns,
        min_ns,
        max_ns,
        std_ns,
    } = side.rtt;
    push_times(out, [avg_ns, min_ns, max_ns, std_ns].map(Some));
    let counters = [
        u64::from(count),
        u64::from(side.ttl_min),
        u64::from(side.ttl_max),
    ];
    push_all(out, counters);
}

fn push_options(out: &mut Vec<u8>, side: &FlowSide) {
    push_all(
        out,
        [
            u64::from(side.has_window_scale),
            u64::from(side.has_timestamps),
            u64::from(side.window_scale),
            u64::from(side.has_sack),
            side.sack_cnt,
            u64::from(side.mss),
            u64::from(side.mss_max),
            u64::from(side.mss_min),
            u64::from(side.win_max),
            u64::from(side.win_min),
            side.win_0,
            u64::from(side.cwin_max),
            u64::from(side.cwin_min),
            u64::from(side.cwin_ini),
        ],
    );
    let [
        rto,
        fast,
        reordered,
        duplicate,
        unknown,
        control,
        unneeded_rto,
        unneeded_fast,
        probes,
    ] = side.anomalies;
    // Tstat has no class of tail loss probes: they are unknown to it.
    let classes = [
        rto,
        fast,
        reordered,
        duplicate,
        unknown.saturating_add(probes),
        control,
        unneeded_rto,
        unneeded_fast,
        side.syn_retx,
    ];
    push_all(out, classes);
}

/// The bits that Tstat has for what is offered in ALPN (RFC 7301).
fn alpn_bits(names: &[u8]) -> u64 {
    if names.is_empty() {
        return 0;
    }
    let bits = names.split(|b| *b == b',').fold(0, |bits, name| {
        bits | match name {
            b"http/1.0" | b"http/1.1" => 32,
            b"h2" => 128,
            name if name.starts_with(b"spdy") => 64,
            _ => 0,
        }
    });
    if bits == 0 { 16 } else { bits }
}

fn tls_version(version: u16) -> &'static [u8] {
    match version {
        0 => b"",
        0x0200 => b"ssl2",
        0x0300 => b"ssl3",
        0x0301 => b"1.0",
        0x0302 => b"1.1",
        0x0303 => b"1.2",
        0x0304 => b"1.3",
        _ => b"other",
    }
}

fn push_layer7(out: &mut Vec<u8>, flow: &Flow<'_>) {
    let Flow { row, text } = flow;
    let (c, s) = (&row.client, &row.server);
    let counters = [u64::from(row.http_requests), u64::from(row.http_responses)];
    push_all(out, counters);
    match row.http_status {
        0 => out.extend_from_slice(b" ---"),
        status => push_all(out, [u64::from(status)]),
    }
    push_all(out, [c.pkts_push, s.pkts_push]);
    push_text(out, text.sni);
    push_text(out, text.certificate_name);
    let tls = [
        alpn_bits(text.client_alpn),
        alpn_bits(text.server_alpn),
        u64::from(row.tls_session),
    ];
    push_all(out, tls);
    push_times(
        out,
        [
            c.last_handshake_ns,
            s.last_handshake_ns,
            c.appdata_ns,
            s.appdata_ns,
        ],
    );
    push_all(out, [c.appdata_bytes, s.appdata_bytes]);
    push_text(out, text.fqdn);
    match row.dns_resolver {
        Some(resolver) => {
            out.push(b' ');
            push_ip(out, resolver);
            push_times(out, [row.dns_request_ns, row.dns_response_ns]);
        }
        // So does Tstat.
        None => out.extend_from_slice(b" - 0.0 0.0"),
    }
    push_text(out, text.http_host);
    push_text(out, tls_version(c.tls_version));
    push_text(out, tls_version(s.tls_version));
    let is_resolver_encrypted = c.is_encrypted && row.dns_resolver.is_some();
    push_all(out, [u64::from(is_resolver_encrypted)]);
}

/// A line of `log_tcp_complete`.
pub(crate) fn tcp_complete(out: &mut Vec<u8>, flow: &Flow<'_>) {
    let row = flow.row;
    push_core(out, row);
    push_end_to_end(out, &row.client);
    push_end_to_end(out, &row.server);
    push_all(out, [u64::from(row.p2p_st)]);
    push_all(out, row.ed2k.map(u64::from));
    push_options(out, &row.client);
    push_options(out, &row.server);
    push_layer7(out, flow);
    out.push(b'\n');
}

/// A line of `log_tcp_nocomplete`.
pub(crate) fn tcp_nocomplete(out: &mut Vec<u8>, flow: &Flow<'_>) {
    push_core(out, flow.row);
    out.push(b'\n');
}

const _: () = assert!(Anomaly::COUNT == 9, "the classes are taken apart by name");

/// Nanoseconds as milliseconds with six decimals, as C's `%f` prints the nearest double.
///
/// A time since 1970 in milliseconds leaves a double twelve bits for its fraction, so that Tstat
/// prints `.187988` for 188 microseconds. Scripts compare such texts: they come out the same here.
/// Shorter times are exact.
fn push_ms(out: &mut Vec<u8>, nanos: u64) {
    let whole = nanos / 1_000_000;
    let bits = u64::BITS - whole.leading_zeros();
    // The bits that 53 leave for the fraction; from 20 on they cannot be told from six decimals.
    let fraction_bits = 53_u32.saturating_sub(bits);
    if fraction_bits >= 20 {
        return push_millis6(out, nanos);
    }
    // The nearest double: no tie is possible, because 15,625 does not divide a power of two.
    let nearest = (((nanos % 1_000_000) << fraction_bits) + 500_000) / 1_000_000;
    let (whole, fraction) = if nearest >> fraction_bits > 0 {
        (whole + 1, 0)
    } else {
        (whole, nearest)
    };
    // Its six decimals, ties to even.
    let scaled = fraction * 1_000_000;
    let (mut decimals, rest) = (scaled >> fraction_bits, scaled & ((1 << fraction_bits) - 1));
    let half = (1_u64 << fraction_bits) >> 1;
    if rest > half || (rest == half && decimals % 2 == 1) {
        decimals += 1;
    }
    // 0.9999995 and more have no double so near to the next whole number.
    push_u64(out, whole);
    out.push(b'.');
    let from = out.len();
    push_u64(out, 1_000_000 + decimals);
    // The leading one kept the zeros.
    out.remove(from);
}

/// Columns that Tstat has.
const UDP_COLUMNS: usize = 25;

pub(crate) fn udp_complete_header(out: &mut Vec<u8>) {
    push_header(out, "#", b' ', UDP_FIELDS.into_iter().take(UDP_COLUMNS));
}
fn push_udp_side(out: &mut Vec<u8>, side: &FlowSide, kind: u32) {
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
pub(crate) fn udp_complete(out: &mut Vec<u8>, flow: &Flow<'_>) {
    let Flow { row, text } = flow;
    push_udp_side(out, &row.client, row.con_t);
    out.push(b' ');
    push_udp_side(out, &row.server, row.con_t);
    push_text(out, text.fqdn);
    push_text(out, text.sni);
    push_percent(out, text.quic_user_agent);
    push_version(out, row.client.quic_version);
    push_version(out, row.server.quic_version);
    push_all(out, [u64::from(row.has_zero_rtt), u64::from(row.has_ech)]);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(nanos: u64) -> String {
        let mut out = Vec::new();
        push_ms(&mut out, nanos);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_in_a_log_of_tstat() {
        assert_eq!(text(1_795_222_198_122_188_000), "1795222198122.187988");
        assert_eq!(text(1_795_222_198_259_855_000), "1795222198259.854980");
        assert_eq!(text(137_667_000), "137.667000");
        assert_eq!(text(0), "0.000000");
        assert_eq!(text(u64::MAX), "18446744073709.550781");
    }

    proptest! {
        /// Microseconds as Tstat has them: a double of microseconds, divided by 1000.
        #[test]
        fn as_c_prints_a_double(micros in prop_oneof![
            0_u64..10_000_000_000, 915_000_000_000_000..4_000_000_000_000_000_u64
        ]) {
            prop_assert_eq!(text(micros * 1000), format!("{:.6}", micros as f64 / 1000.0));
        }

        #[test]
        fn nanoseconds_are_near(nanos: u64) {
            let exact = nanos as f64 / 1e6;
            let printed: f64 = text(nanos).parse().unwrap();
            prop_assert!((printed - exact).abs() <= 0.002 + exact * 1e-15);
        }
    }
}
