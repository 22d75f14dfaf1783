//! Where each histogram stands, by family and direction; looked up once per run of the program.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use linkweir_sketch::cells::Direction;
use linkweir_sketch::step::HistogramId;

/// No histogram: what is counted there is forgotten.
const NONE: HistogramId = HistogramId(u16::MAX);

fn named(name: &str) -> HistogramId {
    HistogramId::named(name).unwrap_or(NONE)
}

/// One histogram or several.
trait Each {
    fn each(&self, then: &mut impl FnMut(HistogramId));
}

impl Each for HistogramId {
    fn each(&self, then: &mut impl FnMut(Self)) {
        if *self != NONE {
            then(*self);
        }
    }
}

impl<T: Each, const N: usize> Each for [T; N] {
    fn each(&self, then: &mut impl FnMut(HistogramId)) {
        self.iter().for_each(|one| one.each(then));
    }
}

impl Each for ByDirection {
    fn each(&self, then: &mut impl FnMut(HistogramId)) {
        self.0.each(then);
    }
}

impl Each for BySide {
    fn each(&self, then: &mut impl FnMut(HistogramId)) {
        self.direction.each(then);
        self.side.each(then);
    }
}

/// Histograms of one family for incoming, outgoing and local traffic.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByDirection([HistogramId; 3]);

impl ByDirection {
    fn of(family: &str) -> Self {
        Self(["in", "out", "loc"].map(|direction| {
            // The names of incoming ones are not always made like the others.
            let family = match (family, direction) {
                ("tcp_unnrtx_RTO", "in") => "tcp_unnecessary_rtx_RTO",
                ("tcp_unnrtx_FR", "in") => "tcp_unnecessary_rtx_FR",
                ("tcp_flow_ctrl", "in") => "tcp_flow_control",
                _ => family,
            };
            named(&format!("{family}_{direction}"))
        }))
    }

    /// That of a direction; between externals Tstat counts nothing.
    pub(super) fn get(self, direction: Direction) -> HistogramId {
        let at = self.0.get(direction as usize);
        at.copied().unwrap_or(NONE)
    }
}

/// Histograms of one family by direction, and by who sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct BySide {
    pub(super) direction: ByDirection,
    /// What the client sent, what the server sent.
    pub(super) side: [HistogramId; 2],
}

impl BySide {
    fn of(family: &str) -> Self {
        Self {
            direction: ByDirection::of(family),
            side: ["c2s", "s2c"].map(|side| named(&format!("{family}_{side}"))),
        }
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $make:expr;)*) => {
        /// All histograms that are filled.
        #[derive(Debug)]
        pub(super) struct Ids { $($(#[$doc])* pub(super) $field: $kind,)* }

        impl Ids {
            fn new() -> Self {
                Self { $($field: $make,)* }
            }

            fn each(&self, then: &mut impl FnMut(HistogramId)) {
                $(self.$field.each(then);)*
            }
        }
    };
}

ids! {
    ip_len: ByDirection = ByDirection::of("ip_len");
    ip_ttl: ByDirection = ByDirection::of("ip_ttl");
    ip_tos: ByDirection = ByDirection::of("ip_tos");
    ip_protocol: ByDirection = ByDirection::of("ip_protocol");
    ip6_plen: ByDirection = ByDirection::of("ip6_plen");
    ip6_hop_limit: ByDirection = ByDirection::of("ip6_hop_limit");
    ip6_protocol: ByDirection = ByDirection::of("ip6_protocol");
    icmpv6_type: ByDirection = ByDirection::of("icmpv6_type");
    l3_protocol: ByDirection = ByDirection::of("L3_protocol");
    l3_bitrate: ByDirection = ByDirection::of("L3_bitrate");
    /// With and without the suffix of traffic that is not with a cloud: without a list of clouds
    /// they are the same.
    ip_bitrate: [ByDirection; 2] = ["ip_bitrate", "ip_bitrate_nc"].map(ByDirection::of);
    tcp_bitrate: [ByDirection; 2] = ["tcp_bitrate", "tcp_bitrate_nc"].map(ByDirection::of);
    udp_bitrate: [ByDirection; 2] = ["udp_bitrate", "udp_bitrate_nc"].map(ByDirection::of);
    tcp_port_src: ByDirection = ByDirection::of("tcp_port_src");
    tcp_port_dst: ByDirection = ByDirection::of("tcp_port_dst");
    tcp_port_synsrc: ByDirection = ByDirection::of("tcp_port_synsrc");
    tcp_port_syndst: ByDirection = ByDirection::of("tcp_port_syndst");
    udp_port_dst: ByDirection = ByDirection::of("udp_port_dst");
    udp_port_flow_dst: HistogramId = named("udp_port_flow_dst");
    l4_flow_number: HistogramId = named("L4_flow_number");
    l7_tcp_num: [ByDirection; 2] = ["L7_TCP_num", "L7_TCP_num_nc"].map(ByDirection::of);
    l7_udp_num: [ByDirection; 2] = ["L7_UDP_num", "L7_UDP_num_nc"].map(ByDirection::of);
    l7_http_num: [ByDirection; 2] = ["L7_HTTP_num", "L7_HTTP_num_nc"].map(ByDirection::of);
    http_bitrate: [ByDirection; 2] = ["http_bitrate", "http_bitrate_nc"].map(ByDirection::of);
    l7_web_num: ByDirection = ByDirection::of("L7_WEB_num");
    web_bitrate: ByDirection = ByDirection::of("web_bitrate");
    l7_tls_num: ByDirection = ByDirection::of("L7_TLS_num");
    tls_bitrate: ByDirection = ByDirection::of("tls_bitrate");
    /// SACK, window scaling, timestamps, multipath.
    tcp_opts: [HistogramId; 4] =
        ["tcp_opts_SACK", "tcp_opts_WS", "tcp_opts_TS", "tcp_opts_MPTCP"].map(named);
    /// Of the client, of the server, used.
    tcp_mss: [HistogramId; 3] = ["tcp_mss_a", "tcp_mss_b", "tcp_mss_used"].map(named);
    tcp_win_ini: HistogramId = named("tcp_win_ini");
    tcp_win_max: HistogramId = named("tcp_win_max");
    tcp_cwnd: HistogramId = named("tcp_cwnd");
    /// Bytes (short range, long range) and packets.
    tcp_cl: [BySide; 3] = ["tcp_cl_b_s", "tcp_cl_b_l", "tcp_cl_p"].map(BySide::of);
    udp_cl: [ByDirection; 3] = ["udp_cl_b_s", "udp_cl_b_l", "udp_cl_p"].map(ByDirection::of);
    tcp_tot_time: HistogramId = named("tcp_tot_time");
    udp_tot_time: HistogramId = named("udp_tot_time");
    tcp_thru: [HistogramId; 2] = ["tcp_thru_c2s", "tcp_thru_s2c"].map(named);
    tcp_thru_lf: [[HistogramId; 2]; 2] = [
        ["tcp_thru_lf_c2s", "tcp_thru_lf_nc_c2s"].map(named),
        ["tcp_thru_lf_s2c", "tcp_thru_lf_nc_s2c"].map(named),
    ];
    /// Smallest, mean, largest, standard deviation.
    tcp_rtt: [BySide; 4] =
        ["tcp_rtt_min", "tcp_rtt_avg", "tcp_rtt_max", "tcp_rtt_stdev"].map(BySide::of);
    tcp_rtt_nc_avg: ByDirection = ByDirection::of("tcp_rtt_nc_avg");
    tcp_rtt_cnt: BySide = BySide::of("tcp_rtt_cnt");
    /// In the order of the classes of `Anomaly`, without the last.
    anomalies: [BySide; 8] = [
        "tcp_rtx_RTO",
        "tcp_rtx_FR",
        "tcp_reordering",
        "tcp_net_dup",
        "tcp_unknown",
        "tcp_flow_ctrl",
        "tcp_unnrtx_RTO",
        "tcp_unnrtx_FR",
    ]
    .map(BySide::of);
    tcp_anomalies: BySide = BySide::of("tcp_anomalies");
    tcp_interrupted: HistogramId = named("tcp_interrupted");
    profile_trash: HistogramId = named("profile_trash");
    profile_flows: HistogramId = named("profile_flows");
    profile_tcpdata: HistogramId = named("profile_tcpdata");
    mm_burst_loss: ByDirection = ByDirection::of("mm_burst_loss");
    mm_oos_p: ByDirection = ByDirection::of("mm_oos_p");
    mm_reord_p_n: ByDirection = ByDirection::of("mm_reord_p_n");
    mm_reord_delay: ByDirection = ByDirection::of("mm_reord_delay");
    mm_cl_b: ByDirection = ByDirection::of("mm_cl_b");
    mm_cl_b_s: ByDirection = ByDirection::of("mm_cl_b_s");
    mm_cl_p: ByDirection = ByDirection::of("mm_cl_p");
    mm_cl_p_s: ByDirection = ByDirection::of("mm_cl_p_s");
    mm_tot_time: ByDirection = ByDirection::of("mm_tot_time");
    mm_tot_time_s: ByDirection = ByDirection::of("mm_tot_time_s");
    mm_avg_bitrate: ByDirection = ByDirection::of("mm_avg_bitrate");
    mm_rtp_pt: ByDirection = ByDirection::of("mm_rtp_pt");
    mm_avg_ipg: ByDirection = ByDirection::of("mm_avg_ipg");
    mm_avg_jitter: ByDirection = ByDirection::of("mm_avg_jitter");
    mm_n_oos: ByDirection = ByDirection::of("mm_n_oos");
    mm_p_oos: ByDirection = ByDirection::of("mm_p_oos");
    mm_p_dup: ByDirection = ByDirection::of("mm_p_dup");
    mm_p_lost: ByDirection = ByDirection::of("mm_p_lost");
    mm_p_late: ByDirection = ByDirection::of("mm_p_late");
    mm_uni_multi: ByDirection = ByDirection::of("mm_uni_multi");
    mm_type: ByDirection = ByDirection::of("mm_type");
    rtcp_jitter: ByDirection = ByDirection::of("rtcp_jitter");
    rtcp_f_lost: ByDirection = ByDirection::of("rtcp_f_lost");
    rtcp_lost: ByDirection = ByDirection::of("rtcp_lost");
    rtcp_dup: ByDirection = ByDirection::of("rtcp_dup");
    rtcp_rtt: ByDirection = ByDirection::of("rtcp_rtt");
    rtcp_mm_bt: ByDirection = ByDirection::of("rtcp_mm_bt");
    rtcp_t_lost: ByDirection = ByDirection::of("rtcp_t_lost");
    rtcp_bt: ByDirection = ByDirection::of("rtcp_bt");
    rtcp_mm_cl_p: ByDirection = ByDirection::of("rtcp_mm_cl_p");
    rtcp_mm_cl_b: ByDirection = ByDirection::of("rtcp_mm_cl_b");
    rtcp_cl_p: ByDirection = ByDirection::of("rtcp_cl_p");
    rtcp_cl_b: ByDirection = ByDirection::of("rtcp_cl_b");
    rtcp_avg_inter: ByDirection = ByDirection::of("rtcp_avg_inter");
}

/// The histograms.
pub(super) fn ids() -> &'static Ids {
    static IDS: LazyLock<Ids> = LazyLock::new(Ids::new);
    &IDS
}

/// The histograms of Tstat's that are measured here; all others of the catalogue stay empty.
#[must_use]
pub fn filled() -> BTreeSet<HistogramId> {
    let mut all = BTreeSet::new();
    ids().each(&mut |id| {
        all.insert(id);
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_the_catalogue() {
        // Between the clouds Tstat has no local traffic; all others must be there.
        let missing = format!("{:?}", ids()).matches("HistogramId(65535)").count();
        let without_local = 3 + 3 + 1 + 1;
        assert_eq!(missing, without_local);
    }
}
