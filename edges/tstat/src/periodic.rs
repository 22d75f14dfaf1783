//! Lines of partial records: what was added in a period of a flow.

use linkweir_record::flow::{Flow, FlowRow};

use crate::lines::{core_counters, push_all, push_end, push_header, push_times};

const TCP: [&str; 46] = [
    "c_ip",
    "c_port",
    "s_ip",
    "s_port",
    "time_abs_start",
    "time_rel_start",
    "time_rel_end",
    "bin_duration",
    "c_pkts_all",
    "c_rst_cnt",
    "c_ack_cnt",
    "c_ack_cnt_p",
    "c_bytes_uniq",
    "c_pkts_data",
    "c_bytes_all",
    "c_pkts_retx",
    "c_bytes_retx",
    "c_pkts_ooo",
    "c_syn_cnt",
    "c_fin_cnt",
    "s_pkts_all",
    "s_rst_cnt",
    "s_ack_cnt",
    "s_ack_cnt_p",
    "s_bytes_uniq",
    "s_pkts_data",
    "s_bytes_all",
    "s_pkts_retx",
    "s_bytes_retx",
    "s_pkts_ooo",
    "s_syn_cnt",
    "s_fin_cnt",
    "c_rtt_avg",
    "c_rtt_cnt",
    "s_rtt_avg",
    "s_rtt_cnt",
    "c_cwin_min",
    "c_cwin_max",
    "s_cwin_min",
    "s_cwin_max",
    "c_sack_cnt",
    "s_sack_cnt",
    "c_isint",
    "s_isint",
    "c_iscrypto",
    "s_iscrypto",
];
const UDP: [&str; 16] = [
    "c_ip",
    "c_port",
    "c_isint",
    "c_iscrypto",
    "s_ip",
    "s_port",
    "s_isint",
    "s_iscrypto",
    "time_abs_start",
    "time_rel_start",
    "time_rel_end",
    "bin_duration",
    "c_pkts_all",
    "c_bytes_all",
    "s_pkts_all",
    "s_bytes_all",
];

pub(crate) fn tcp_header(out: &mut Vec<u8>) {
    push_header(out, "#", b' ', TCP.into_iter());
}
pub(crate) fn udp_header(out: &mut Vec<u8>) {
    push_header(out, "#", b' ', UDP.into_iter());
}

/// Start of a period, since 1970 and since the start of its flow; end; length.
fn push_period(out: &mut Vec<u8>, row: &FlowRow) {
    push_times(
        out,
        [
            row.first_ns,
            row.first_ns.saturating_sub(row.start_ns),
            row.last_ns.saturating_sub(row.start_ns),
            row.duration_ns(),
        ]
        .map(Some),
    );
}

/// A line of `log_tcp_periodic`.
pub(crate) fn tcp(out: &mut Vec<u8>, flow: &Flow<'_>) {
    let row = flow.row;
    let (c, s) = (&row.client, &row.server);
    push_end(out, c);
    out.push(b' ');
    push_end(out, s);
    push_period(out, row);
    push_all(out, core_counters(c));
    push_all(out, core_counters(s));
    for side in [c, s] {
        push_times(out, [Some(side.rtt.avg_ns)]);
        push_all(out, [u64::from(side.rtt.count)]);
    }
    push_all(
        out,
        [
            u64::from(c.cwin_min),
            u64::from(c.cwin_max),
            u64::from(s.cwin_min),
            u64::from(s.cwin_max),
            c.sack_cnt,
            s.sack_cnt,
            u64::from(c.is_internal),
            u64::from(s.is_internal),
            u64::from(c.is_encrypted),
            u64::from(s.is_encrypted),
        ],
    );
    out.push(b'\n');
}

/// A line of `log_udp_periodic`.
pub(crate) fn udp(out: &mut Vec<u8>, flow: &Flow<'_>) {
    let row = flow.row;
    for side in [&row.client, &row.server] {
        push_end(out, side);
        push_all(
            out,
            [u64::from(side.is_internal), u64::from(side.is_encrypted)],
        );
        out.push(b' ');
    }
    // The times bring their own space.
    out.pop();
    push_period(out, row);
    for side in [&row.client, &row.server] {
        push_all(out, [side.pkts_all, side.bytes_all]);
    }
    out.push(b'\n');
}
