//! Which series are written: those of Tstat's stock set of 1,491 whose histogram is measured, and the value
//! of each in a step.
//!
//! Source: Tstat 3.3.0, its `rrd.conf` and the meaning of the words in it.

use linkweir_sketch::step::{HISTOGRAMS, HistogramDef, HistogramId, Linear};

/// One number derived from a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// `hit`: values counted.
    Hits,
    /// `avg`: their mean.
    Average,
    /// `min`: the smallest.
    Minimum,
    /// `max`: the largest.
    Maximum,
    /// `var`: the sample variance.
    Variance,
    /// `stdev`: its root.
    Deviation,
    /// `idxN`: values in the bin of N.
    Index(u32),
    /// `idxoth`: values in no bin that has an `idx` of its own.
    Others,
    /// `prcP`: lower edge of the bin in which P percent of the values are reached.
    Percentile(u8),
}

impl Statistic {
    /// The middle part of the file's name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Hits => "hit".to_owned(),
            Self::Average => "avg".to_owned(),
            Self::Minimum => "min".to_owned(),
            Self::Maximum => "max".to_owned(),
            Self::Variance => "var".to_owned(),
            Self::Deviation => "stdev".to_owned(),
            Self::Index(at) => format!("idx{at}"),
            Self::Others => "idxoth".to_owned(),
            Self::Percentile(p) => format!("prc{p}"),
        }
    }
}

/// What is derived from one histogram.
#[derive(Debug, Clone, Copy)]
struct Set {
    moments: &'static [Statistic],
    percentiles: &'static [u8],
    indices: &'static [u32],
    has_others: bool,
}

const fn indices(indices: &'static [u32]) -> Set {
    Set {
        moments: &[],
        percentiles: &[],
        indices,
        has_others: false,
    }
}

const fn and_others(set: Set) -> Set {
    Set {
        has_others: true,
        ..set
    }
}

const fn quantity(moments: &'static [Statistic]) -> Set {
    Set {
        moments,
        percentiles: &[50, 95, 99],
        indices: &[],
        has_others: false,
    }
}

const SIZE: Set = quantity(&[Statistic::Average, Statistic::Maximum, Statistic::Deviation]);
const RANGE: Set = quantity(&[
    Statistic::Average,
    Statistic::Minimum,
    Statistic::Maximum,
    Statistic::Deviation,
]);
const PACKET_LENGTH: Set = Set {
    moments: &[Statistic::Average],
    percentiles: &[50, 90, 95],
    indices: &[40, 1500],
    has_others: true,
};
const TWO: Set = indices(&[0, 1]);
const THREE: Set = indices(&[0, 1, 2]);
const SIX: Set = indices(&[0, 1, 2, 3, 4, 5]);
/// 1 both sides, 2 client only, 3 server only, 4 neither.
const OPTION: Set = indices(&[1, 2, 3, 4]);
const WEB: Set = indices(&[0, 1, 2, 3, 4, 5, 6, 7]);
const TLS: Set = indices(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
const VIDEO: Set = indices(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
const HTTP: Set = indices(&[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20,
]);
const TCP_APPLICATIONS: Set = and_others(indices(&[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17, 19, 25, 26, 27, 28, 33, 37, 38, 39, 49,
]));
const TCP_BITRATES: Set = and_others(indices(&[
    0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 14, 15, 16, 17, 19, 25, 26, 27, 28, 33, 37, 38, 39, 49,
]));
const UDP_APPLICATIONS: Set = and_others(indices(&[
    1, 2, 5, 6, 11, 12, 13, 14, 15, 16, 17, 29, 30, 31, 32, 34, 36, 40, 41, 42, 43, 44, 45, 47, 48,
    49,
]));
const TCP_PORTS: Set = and_others(indices(&[
    20, 21, 22, 23, 25, 80, 110, 119, 143, 443, 445, 1214, 1433, 4661, 4662, 6881, 6699, 8080,
]));
const UDP_PORTS: Set = and_others(indices(&[53, 67, 68, 69, 123, 137, 443, 4672, 6346]));
const PAYLOAD_TYPES: Set = and_others(indices(&[0, 8, 14, 31, 32, 33, 96, 97]));
const IP_PROTOCOLS: Set = and_others(indices(&[1, 6, 17]));
const ANOMALIES: Set = indices(&[0, 1, 2, 3, 4, 5, 6, 7, 63]);
const STREAM_TYPES: Set = indices(&[4, 6, 7, 8]);

/// Histograms of each direction: `NAME_in`, `NAME_out`, `NAME_loc`.
const BY_DIRECTION: &[(&str, Set)] = &[
    ("L7_UDP_num", UDP_APPLICATIONS),
    ("L7_TCP_num", TCP_APPLICATIONS),
    ("L7_HTTP_num", HTTP),
    ("http_bitrate", HTTP),
    ("L7_WEB_num", WEB),
    ("web_bitrate", WEB),
    ("L7_TLS_num", TLS),
    ("tls_bitrate", TLS),
    ("L7_VIDEO_num", VIDEO),
    ("video_rate", VIDEO),
    ("ip_bitrate", THREE),
    ("L3_bitrate", SIX),
    ("L3_protocol", SIX),
    ("tcp_bitrate", TCP_BITRATES),
    ("udp_bitrate", UDP_APPLICATIONS),
    ("ip_len", PACKET_LENGTH),
    ("ip_protocol", IP_PROTOCOLS),
    ("tcp_port_dst", TCP_PORTS),
    ("tcp_port_syndst", TCP_PORTS),
    ("udp_port_dst", UDP_PORTS),
    ("udp_cl_p", SIZE),
    ("tcp_rtt_avg", RANGE),
    ("tcp_anomalies", ANOMALIES),
    ("mm_tot_time", SIZE),
    ("mm_tot_time_s", SIZE),
    ("mm_avg_ipg", SIZE),
    ("mm_avg_jitter", SIZE),
    ("mm_cl_b", SIZE),
    ("mm_cl_p", SIZE),
    ("mm_cl_b_s", SIZE),
    ("mm_cl_p_s", SIZE),
    ("mm_n_oos", SIZE),
    ("mm_p_oos", SIZE),
    ("mm_p_dup", SIZE),
    ("mm_avg_bitrate", SIZE),
    ("mm_type", STREAM_TYPES),
    ("mm_uni_multi", TWO),
    ("mm_rtp_pt", PAYLOAD_TYPES),
    ("rtcp_cl_b", SIZE),
    ("rtcp_cl_p", SIZE),
    ("rtcp_mm_cl_b", SIZE),
    ("rtcp_mm_cl_p", SIZE),
    ("rtcp_mm_bt", SIZE),
    ("rtcp_bt", SIZE),
    ("rtcp_rtt", SIZE),
    ("rtcp_lost", SIZE),
    ("rtcp_dup", SIZE),
    ("rtcp_f_lost", SIZE),
    ("rtcp_t_lost", SIZE),
    ("rtcp_avg_inter", SIZE),
    ("rtcp_jitter", SIZE),
];

/// Histograms of all traffic.
const OF_ALL: &[(&str, Set)] = &[
    ("chat_flow_num", SIX),
    ("L4_flow_number", TWO),
    ("udp_port_flow_dst", UDP_PORTS),
    ("tcp_opts_SACK", OPTION),
    ("tcp_opts_WS", OPTION),
    ("tcp_opts_TS", OPTION),
    ("tcp_opts_MPTCP", OPTION),
    ("tcp_cl_b_s_c2s", SIZE),
    ("tcp_cl_b_s_s2c", SIZE),
    ("tcp_tot_time", SIZE),
    ("tcp_interrupted", TWO),
    ("tcp_thru_c2s", SIZE),
    ("tcp_thru_s2c", SIZE),
    ("tcp_thru_lf_c2s", RANGE),
    ("tcp_thru_lf_s2c", RANGE),
    ("profile_flows", indices(&[0, 1, 2, 3])),
    ("profile_cpu", THREE),
    ("profile_trash", indices(&[0])),
    ("profile_tcpdata", TWO),
];

/// One file: a histogram and what is derived from it.
#[derive(Debug, Clone, Copy)]
pub struct Series {
    /// The histogram.
    pub id: HistogramId,
    /// Its definition.
    pub def: &'static HistogramDef,
    /// What is derived.
    pub statistic: Statistic,
    /// The bins with a series of their own, which [`Statistic::Others`] leaves out.
    tracked: &'static [u32],
}

impl Series {
    /// Name of the file, for example `tcp_rtt_avg_in.prc95.rrd`.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}.{}.rrd", self.def.name, self.statistic.name())
    }

    /// The value of a step; `None` where it is not defined: there is no mean of nothing, no
    /// deviation of one value. Counts are defined always. (Tstat writes an average of 0 and a
    /// percentile below the range for a step without values.)
    #[must_use]
    pub fn value(&self, histogram: Option<&Linear>) -> Option<f64> {
        match self.statistic {
            Statistic::Hits => Some(float(histogram.map_or(0, |h| h.count))),
            Statistic::Index(at) => Some(float(histogram.map_or(0, |h| self.bin(h, at)))),
            Statistic::Others => Some(float(histogram.map_or(0, |h| {
                let tracked = self.tracked.iter().map(|at| self.bin(h, *at));
                tracked.fold(h.count, u64::saturating_sub)
            }))),
            _ => self.of_values(histogram.filter(|h| h.count > 0)?),
        }
    }

    fn of_values(&self, h: &Linear) -> Option<f64> {
        match self.statistic {
            Statistic::Average => Some(float(h.sum) / float(h.count)),
            Statistic::Minimum => Some(float(h.min)),
            Statistic::Maximum => Some(float(h.max)),
            Statistic::Variance => variance(h),
            Statistic::Deviation => variance(h).map(f64::sqrt),
            Statistic::Percentile(p) => self.percentile(h, p),
            Statistic::Hits | Statistic::Index(_) | Statistic::Others => None,
        }
    }

    fn bin(&self, h: &Linear, value: u32) -> u64 {
        let at = value.saturating_sub(self.def.min) / self.def.bin_size.max(1);
        h.bins.get(at as usize).copied().unwrap_or_default()
    }

    /// The first bin at which `p` percent are reached. Compared in whole numbers: 100 cdf >= p n.
    fn percentile(&self, h: &Linear, p: u8) -> Option<f64> {
        let wanted = u128::from(p) * u128::from(h.count);
        let mut cdf = 0_u128;
        let at = h.bins.iter().position(|count| {
            cdf += u128::from(*count);
            *count > 0 && cdf * 100 >= wanted
        })?;
        let edge = u64::from(self.def.min) + at as u64 * u64::from(self.def.bin_size);
        Some(float(edge))
    }
}

/// Numbers above 2^53 are rounded, which no drawing shows.
#[expect(clippy::cast_precision_loss, reason = "the format of rrdtool is f64")]
const fn float(value: u64) -> f64 {
    value as f64
}

/// The sample variance: (n sum of squares - square of the sum) / (n (n - 1)), in whole numbers as far
/// as they reach, so that nothing cancels.
#[expect(clippy::cast_precision_loss, reason = "the format of rrdtool is f64")]
fn variance(h: &Linear) -> Option<f64> {
    let n = u128::from(h.count);
    let below = n
        .checked_mul(n.checked_sub(1)?)
        .filter(|below| *below > 0)?;
    let square = u128::from(h.sum) * u128::from(h.sum);
    let above = match h.sum_squares.checked_mul(n) {
        Some(product) => product.saturating_sub(square) as f64,
        None => (h.sum_squares as f64)
            .mul_add(n as f64, -(square as f64))
            .max(0.0),
    };
    Some(above / below as f64)
}

/// The stock set, in the order of its histograms.
#[must_use]
pub fn stock() -> Vec<Series> {
    let mut all = Vec::with_capacity(1_491);
    let directions = ["in", "out", "loc"];
    for (base, set) in BY_DIRECTION {
        for direction in directions {
            push(&mut all, &format!("{base}_{direction}"), set);
        }
    }
    for (name, set) in OF_ALL {
        push(&mut all, name, set);
    }
    all
}

/// Those of the stock set whose histogram is measured: the files that are made.
#[must_use]
pub fn measured() -> Vec<Series> {
    let mut all = stock();
    all.retain(|series| series.id.is_measured());
    all
}

fn push(all: &mut Vec<Series>, name: &str, set: &Set) {
    let Some(id) = HistogramId::named(name) else {
        return;
    };
    let Some(def) = HISTOGRAMS.get(usize::from(id.0)) else {
        return;
    };
    let moments = set.moments.iter().copied();
    let percentiles = set.percentiles.iter().map(|p| Statistic::Percentile(*p));
    let indices = set.indices.iter().map(|at| Statistic::Index(*at));
    let others = set.has_others.then_some(Statistic::Others);
    let statistics = moments.chain(percentiles).chain(indices).chain(others);
    all.extend(statistics.map(|statistic| Series {
        id,
        def,
        statistic,
        tracked: set.indices,
    }));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linkweir_sketch::step::HistogramSet;

    use super::*;

    /// FNV-1a, 64 bits.
    fn hash(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The files that Tstat 3.3.0 makes with its stock configuration: how many of each kind, and a
    /// hash of their sorted names.
    #[test]
    fn the_stock_set_has_the_names_of_tstat() {
        let stock = stock();
        let names: BTreeSet<_> = stock.iter().map(Series::file).collect();
        assert_eq!((stock.len(), names.len()), (1_491, 1_491));
        let count = |part: &str| names.iter().filter(|name| name.contains(part)).count();
        let kinds = [
            ".avg.", ".min.", ".max.", ".stdev.", ".prc", ".idxoth.", ".idx",
        ]
        .map(count);
        assert_eq!(kinds, [91, 5, 88, 88, 273, 31, 946]);
        let sorted = names
            .iter()
            .map(|name| format!("{name}\n"))
            .collect::<String>();
        assert_eq!(hash(&sorted), EXPECTED, "{:#x}", hash(&sorted));
        // The longest name of a data source (rrdcreate(1)).
        assert!(stock.iter().all(|series| series.def.name.len() <= 19));
    }

    const EXPECTED: u64 = 0x56a1_5582_f73d_541c;

    fn series(name: &str) -> Series {
        let stock = stock();
        *stock.iter().find(|series| series.file() == name).unwrap()
    }

    #[test]
    fn values_are_those_of_tstat() {
        let id = HistogramId::named("ip_len_in").unwrap();
        let mut set = HistogramSet::default();
        for (value, times) in [(40, 50), (43, 1), (600, 40), (1500, 9)] {
            set.add_n(id, value, times);
        }
        let h = set.get(id);
        let value = |what: &str| series(&format!("ip_len_in.{what}.rrd")).value(h).unwrap();
        assert_eq!(value("idx40"), 51.0);
        assert_eq!(value("idx1500"), 9.0);
        assert_eq!(value("idxoth"), 40.0);
        assert_eq!(value("prc50"), 40.0);
        assert_eq!(value("prc90"), 600.0);
        assert_eq!(value("prc95"), 1500.0);
        assert!((value("avg") - 395.43).abs() < 1e-9);
        let rtt = HistogramId::named("tcp_rtt_avg_in").unwrap();
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            set.add(rtt, value);
        }
        let value = |what: &str| series(&format!("tcp_rtt_avg_in.{what}.rrd")).value(set.get(rtt));
        assert_eq!((value("min"), value("max")), (Some(2.0), Some(9.0)));
        assert!((value("stdev").unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_mean_and_one_no_deviation() {
        fn of(name: &str, h: Option<&Linear>) -> Option<f64> {
            series(name).value(h)
        }
        assert_eq!(of("ip_len_in.avg.rrd", None), None);
        assert_eq!(of("ip_len_in.prc95.rrd", None), None);
        assert_eq!(of("ip_len_in.idx40.rrd", None), Some(0.0));
        assert_eq!(of("ip_len_in.idxoth.rrd", None), Some(0.0));
        let id = HistogramId::named("tcp_rtt_avg_in").unwrap();
        let mut set = HistogramSet::default();
        set.add(id, 7);
        assert_eq!(of("tcp_rtt_avg_in.avg.rrd", set.get(id)), Some(7.0));
        assert_eq!(of("tcp_rtt_avg_in.stdev.rrd", set.get(id)), None);
        set.add(id, u64::MAX);
        assert!(
            of("tcp_rtt_avg_in.stdev.rrd", set.get(id))
                .unwrap()
                .is_finite()
        );
        // Above the range: the lower edge of the last bin.
        let edge = of("tcp_rtt_avg_in.prc99.rrd", set.get(id)).unwrap();
        assert!(edge <= f64::from(id.def().unwrap().max));
    }
}
