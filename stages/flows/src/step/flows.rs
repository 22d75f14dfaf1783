//! What a flow that has ended adds to Tstat's histograms.
//!
//! Most histograms of TCP count only flows that Tstat's logs call complete. Round-trip times are
//! counted where both halves of the path have samples.

use linkweir_record::flow::{Anomaly, FlowRow, FlowSide, FlowState, FlowText, Protocol, RttRow};
use linkweir_sketch::cells::Direction;
use linkweir_sketch::step::{HistogramId, HistogramSet};

use super::ids::{BySide, ids};
use super::{L7Class, sites};

/// A flow with at least this much payload is large.
const LARGE_BYTES: u64 = 1_000_000;
/// The segment size where none was announced (RFC 9293 sec. 3.7.1).
const DEFAULT_MSS: u64 = 536;
/// Tstat's bit of HTTP.
const HTTP_BIT: u32 = 1;
/// Tstat's bit of TLS.
const TLS_BIT: u32 = 8192;

/// The two sides with the directions in which they send.
fn sides(row: &FlowRow) -> [(&FlowSide, Direction); 2] {
    let (client, server) = (&row.client, &row.server);
    [
        (
            client,
            Direction::of(client.is_internal, server.is_internal),
        ),
        (
            server,
            Direction::of(server.is_internal, client.is_internal),
        ),
    ]
}

/// Sides of complete TCP flows that sent everything in sequence, by direction and side.
///
/// Nearly all are such, and each is a zero in sixteen histograms: they are put there together.
#[derive(Debug, Default)]
pub(super) struct InSequence([[u64; 2]; 4]);

impl InSequence {
    /// Puts the zeros into the histograms and begins at none.
    pub(super) fn drain(&mut self, into: &mut HistogramSet) {
        let directions = [
            Direction::In,
            Direction::Out,
            Direction::Loc,
            Direction::Ext,
        ];
        for (direction, counts) in directions.into_iter().zip(&mut self.0) {
            for (number, count) in counts.iter_mut().enumerate() {
                let count = std::mem::take(count);
                for family in ids().anomalies {
                    into.add_n(family.direction.get(direction), 0, count);
                    into.add_n(at(&family.side, number), 0, count);
                }
            }
        }
    }

    fn count(&mut self, direction: Direction, number: usize) {
        let counts = self.0.get_mut(direction as usize);
        if let Some(count) = counts.and_then(|counts| counts.get_mut(number)) {
            *count += 1;
        }
    }
}

/// Adds the final record of a flow.
pub(super) fn add(
    row: &FlowRow,
    text: &FlowText<'_>,
    in_sequence: &mut InSequence,
    into: &mut HistogramSet,
) {
    match row.protocol {
        Protocol::Tcp => add_tcp(row, text, in_sequence, into),
        Protocol::Udp => add_udp(row, into),
    }
    if row.state == FlowState::Evicted {
        // Places 0 and 2: flows of UDP and of TCP that there was no room for.
        let place = match row.protocol {
            Protocol::Udp => 0,
            Protocol::Tcp => 2,
        };
        into.add(ids().profile_flows, place);
    }
}

fn add_udp(row: &FlowRow, into: &mut HistogramSet) {
    let ids = ids();
    let class = u64::from(L7Class::of_row(row).number());
    let other_ports = [row.server.port, row.client.port];
    for ((side, direction), port) in sides(row).into_iter().zip(other_ports) {
        let values = [side.bytes_all, side.bytes_all, side.pkts_all];
        for (family, value) in ids.udp_cl.into_iter().zip(values) {
            into.add(family.get(direction), value);
        }
        if side.pkts_all > 0 {
            into.add(ids.udp_port_flow_dst, u64::from(port));
            for family in ids.l7_udp_num {
                into.add(family.get(direction), class);
            }
        }
    }
    into.add(ids.udp_tot_time, row.duration_ns() / 1_000_000);
}

fn add_tcp(
    row: &FlowRow,
    text: &FlowText<'_>,
    in_sequence: &mut InSequence,
    into: &mut HistogramSet,
) {
    let ids = ids();
    if !row.has_syn {
        // Tstat throws them away.
        let packets = row.client.pkts_all.saturating_add(row.server.pkts_all);
        into.add_n(ids.profile_trash, 0, packets);
    }
    into.add(ids.tcp_interrupted, u64::from(is_interrupted(row)));
    for (number, (side, direction)) in sides(row).into_iter().enumerate() {
        add_kinds(side, direction, number, into);
    }
    if !row.is_complete() {
        return;
    }
    add_opening(row, into);
    into.add_fine(ids.tcp_tot_time, row.duration_ns() / 1_000);
    let bytes = row.client.bytes_uniq.saturating_add(row.server.bytes_uniq);
    into.add_n(ids.profile_tcpdata, 0, bytes);

    let [(_, direction), _] = sides(row);
    let class = L7Class::of_row(row);
    for family in ids.l7_tcp_num {
        into.add(family.get(direction), u64::from(class.number()));
    }
    add_site(row, text, direction, into);

    let has_rtt = row.client.rtt.count > 0 && row.server.rtt.count > 0;
    for (number, (side, direction)) in sides(row).into_iter().enumerate() {
        let mut add = |family: BySide, value: u64| {
            into.add_fine(family.direction.get(direction), value);
            into.add_fine(at(&family.side, number), value);
        };
        let lengths = [side.bytes_all, side.bytes_all, side.pkts_all];
        for (family, value) in ids.tcp_cl.into_iter().zip(lengths) {
            add(family, value);
        }
        if side.anomalies == [0; Anomaly::COUNT] {
            in_sequence.count(direction, number);
        } else {
            // The last class, tail loss probes, is unknown to Tstat.
            for (family, class) in ids.anomalies.into_iter().zip(Anomaly::ALL) {
                let probes = match class {
                    Anomaly::Unknown => side.anomaly(Anomaly::TailLossProbe),
                    _ => 0,
                };
                add(family, side.anomaly(class).saturating_add(probes));
            }
        }
        if has_rtt {
            let RttRow {
                count,
                avg_ns,
                min_ns,
                max_ns,
                std_ns,
            } = side.rtt;
            for (family, ns) in ids
                .tcp_rtt
                .into_iter()
                .zip([min_ns, avg_ns, max_ns, std_ns])
            {
                add(family, ns / 1_000);
            }
            add(ids.tcp_rtt_cnt, u64::from(count));
            into.add_fine(ids.tcp_rtt_nc_avg.get(direction), avg_ns / 1_000);
        }
        into.add_fine(ids.tcp_win_ini, u64::from(side.win_min));
        into.add_fine(ids.tcp_win_max, u64::from(side.win_max));
        add_throughput(side, number, into);
    }
}

/// The class of sites.
fn add_site(row: &FlowRow, text: &FlowText<'_>, direction: Direction, into: &mut HistogramSet) {
    let ids = ids();
    if row.con_t & HTTP_BIT != 0
        && let Some(class) = row.http_t.checked_sub(1)
        && let Ok(class) = u8::try_from(class)
    {
        for family in ids.l7_http_num {
            into.add(family.get(direction), u64::from(sites::counted(class)));
        }
        let category = sites::web_category(class);
        into.add(ids.l7_web_num.get(direction), u64::from(category));
    }
    if row.con_t & TLS_BIT != 0 {
        let class = sites::tls_class(text.sni);
        into.add(ids.l7_tls_num.get(direction), u64::from(class));
    }
}

fn at(ids: &[HistogramId; 2], side: usize) -> HistogramId {
    ids.get(side).copied().unwrap_or(HistogramId(u16::MAX))
}

/// Payload over the time from the first packet of the flow to the last payload of the side, kbit/s.
fn add_throughput(side: &FlowSide, number: usize, into: &mut HistogramSet) {
    let ids = ids();
    let Some(ns) = side.last_ns.filter(|ns| *ns > 0) else {
        return;
    };
    let kilobits = u128::from(side.bytes_uniq) * 8_000_000 / u128::from(ns);
    let kilobits = u64::try_from(kilobits).unwrap_or(u64::MAX);
    into.add_fine(at(&ids.tcp_thru, number), kilobits);
    if side.bytes_uniq >= LARGE_BYTES
        && let Some(families) = ids.tcp_thru_lf.get(number)
    {
        for id in families {
            into.add_fine(*id, kilobits);
        }
    }
}

/// Options and segment sizes of the SYNs.
fn add_opening(row: &FlowRow, into: &mut HistogramSet) {
    let ids = ids();
    let (client, server) = (&row.client, &row.server);
    let options = [
        (client.has_sack, server.has_sack),
        (client.has_window_scale, server.has_window_scale),
        (client.has_timestamps, server.has_timestamps),
        (client.has_multipath, server.has_multipath),
    ];
    for (id, offered) in ids.tcp_opts.into_iter().zip(options) {
        let value = match offered {
            (true, true) => 1,
            (true, false) => 2,
            (false, true) => 3,
            (false, false) => 4,
        };
        into.add(id, value);
    }
    let used = match client.mss.min(server.mss) {
        0 => DEFAULT_MSS,
        mss => u64::from(mss),
    };
    let sizes = [u64::from(client.mss), u64::from(server.mss), used];
    for (id, value) in ids.tcp_mss.into_iter().zip(sizes) {
        into.add(id, value);
    }
}

/// Segments by Tstat's number of their class; 0 are those with payload in sequence.
fn add_kinds(side: &FlowSide, direction: Direction, number: usize, into: &mut HistogramSet) {
    let family = ids().tcp_anomalies;
    let ids = [family.direction.get(direction), at(&family.side, number)];
    let out_of_sequence = side
        .anomalies
        .iter()
        .fold(0, |sum: u64, n| sum.saturating_add(*n));
    let mut add = |class: u64, segments: u64| {
        for id in ids {
            into.add_n(id, class, segments);
        }
    };
    add(0, side.pkts_data.saturating_sub(out_of_sequence));
    if out_of_sequence == 0 {
        return;
    }
    for class in Anomaly::ALL {
        let number = match class {
            Anomaly::Rto => 1,
            Anomaly::FastRetransmit => 2,
            Anomaly::Reordering => 3,
            Anomaly::NetworkDuplicate => 4,
            Anomaly::FlowControl => 5,
            Anomaly::UnnecessaryRto => 6,
            Anomaly::UnnecessaryFastRetransmit => 7,
            // Tstat has several numbers for what nothing decides; this is the first.
            Anomaly::Unknown | Anomaly::TailLossProbe => 8,
        };
        add(number, side.anomaly(class));
    }
}

/// Whether the user gave up: the client reset while the server was sending.
///
/// Source: Rossi, Casetti, Mellia 2003, "User Patience and the Web"; as Tstat applies it.
fn is_interrupted(row: &FlowRow) -> bool {
    let (client, server) = (&row.client, &row.server);
    let is_eligible =
        server.fin_cnt == 0 && server.rst_cnt == 0 && server.bytes_uniq > 0 && client.rst_cnt > 0;
    let rtt = client.rtt.avg_ns.saturating_add(server.rtt.avg_ns);
    is_eligible
        && server
            .last_ns
            .is_some_and(|last| row.duration_ns().saturating_sub(last) < rtt)
}
