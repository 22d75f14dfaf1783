//! What the numbers of a histogram stand for, and what is written of them.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::catalogue::{HISTOGRAMS, HistogramId};
use super::{Linear, Step};

/// What is counted in the bins of a histogram, and what Tstat writes of it.
///
/// Sums are kept, so that the steps of several shards add up exactly; they are divided when the step
/// is written ([`Step::lines`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Values: written as they are.
    Count,
    /// Bytes of each class: written as bit/s over the time that was measured.
    BitRate,
    /// Bytes: written in units of 1,000,000.
    Megabytes,
    /// Classes 0 and 2 are counts; 1 and 3 are written as the mean number of UDP and TCP flows.
    Flows,
}

/// Of each histogram its scale, and the divisor from what its log-linear twin counts to its own unit;
/// zero where it has no twin.
static SCALES: LazyLock<Vec<(Scale, u16)>> =
    LazyLock::new(|| HISTOGRAMS.iter().map(|def| scale(def.name)).collect());

fn scale(name: &str) -> (Scale, u16) {
    let kind = match name {
        "profile_tcpdata" => Scale::Megabytes,
        "profile_flows" => Scale::Flows,
        _ if name.contains("_bitrate_") && !name.starts_with("mm_") => Scale::BitRate,
        _ if name.starts_with("video_rate_") => Scale::BitRate,
        _ => Scale::Count,
    };
    // Families whose values go beyond their last bin today. Times are in thousandths.
    let twin = if name.starts_with("tcp_rtt_cnt") {
        1
    } else if name.starts_with("tcp_rtt_") || name == "tcp_tot_time" {
        1000
    } else if ["tcp_win_", "tcp_cwnd", "tcp_cl_b_l_", "tcp_thru_"]
        .iter()
        .any(|family| name.starts_with(family))
    {
        1
    } else {
        0
    };
    (kind, twin)
}

impl HistogramId {
    /// What its bins count.
    #[must_use]
    pub fn scale(self) -> Scale {
        SCALES
            .get(usize::from(self.0))
            .map_or(Scale::Count, |(scale, _)| *scale)
    }

    /// The divisor from the values of its log-linear twin to its own; `None` where it has none.
    ///
    /// 1000 for times: the twin counts microseconds where the histogram counts milliseconds.
    #[must_use]
    pub fn twin_divisor(self) -> Option<u16> {
        let (_, divisor) = SCALES.get(usize::from(self.0))?;
        (*divisor > 0).then_some(*divisor)
    }
}

impl Step {
    /// Nanoseconds that were measured: all of the step, but in the first and last one of a run.
    #[must_use]
    pub const fn measured_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// What Tstat writes of a histogram: the lower edge of each bin that is not empty, and its value
    /// in the unit of the description.
    pub fn lines(&self, id: HistogramId) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (scale, def) = (id.scale(), id.def());
        let (min, size) = def.map_or((0, 1), |def| (u64::from(def.min), u64::from(def.bin_size)));
        let bins = self.histograms.get(id).map(|one: &Linear| &*one.bins);
        let [tcp, udp] = self.flow_us;
        // The means are in no bin.
        let extra = (scale == Scale::Flows).then_some([(1, udp), (3, tcp)]);
        let bins = (0_u64..)
            .zip(bins.unwrap_or_default().iter().copied())
            .chain(extra.into_iter().flatten());
        let mut lines: Vec<_> = bins
            .filter(|(_, value)| *value > 0)
            .map(|(bin, value)| (min + bin * size, self.scaled(scale, bin, value)))
            .filter(|(_, value)| *value > 0)
            .collect();
        if scale == Scale::Flows {
            lines.sort_unstable();
        }
        lines.into_iter()
    }

    /// A histogram with its bins in the unit of the description: what [`Self::lines`] tells, for those
    /// who read single bins. Where it is not [`Scale::Count`], the moments are those of the bins.
    #[must_use]
    pub fn written(&self, id: HistogramId) -> Option<Cow<'_, Linear>> {
        if id.scale() == Scale::Count {
            return self.histograms.get(id).map(Cow::Borrowed);
        }
        // All of them have bins of width one from zero.
        let mut set = super::HistogramSet::default();
        for (class, value) in self.lines(id) {
            set.add_n(id, class, value);
        }
        set.get(id).cloned().map(Cow::Owned)
    }

    fn scaled(&self, scale: Scale, bin: u64, value: u64) -> u64 {
        let ratio = |numerator: u64, factor: u64, divisor: u64| {
            let exact = (u128::from(numerator) * u128::from(factor)).checked_div(divisor.into());
            u64::try_from(exact.unwrap_or_default()).unwrap_or(u64::MAX)
        };
        match scale {
            Scale::Count => value,
            Scale::BitRate => ratio(value, 8_000_000_000, self.measured_ns()),
            Scale::Megabytes => value / 1_000_000,
            Scale::Flows if bin % 2 == 1 => ratio(value, 1_000, self.measured_ns()),
            Scale::Flows => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> HistogramId {
        HistogramId::named(name).unwrap()
    }

    #[test]
    fn rates_are_sums_divided_by_the_time_measured() {
        let mut step = Step {
            from_ns: 1_000_000_000,
            to_ns: 3_000_000_000,
            flow_us: [9_000_000, 1_000_000],
            ..Step::default()
        };
        let rate = id("tcp_bitrate_in");
        step.histograms.add_n(rate, 33, 1000);
        step.histograms.add_n(id("profile_flows"), 0, 7);
        step.histograms.add(id("tcp_opts_SACK"), 3);
        let lines = |name| step.lines(id(name)).collect::<Vec<_>>();
        assert_eq!(lines("tcp_bitrate_in"), [(33, 4000)]);
        // Half a flow on the average is less than one.
        assert_eq!(lines("profile_flows"), [(0, 7), (3, 4)]);
        assert_eq!(lines("tcp_opts_SACK"), [(3, 1)]);
        assert_eq!(lines("tcp_opts_TS"), []);
        let written = |name| step.written(id(name)).map(|one| (one.count, one.max));
        assert_eq!(written("tcp_bitrate_in"), Some((4000, 33)));
        assert_eq!(written("tcp_opts_SACK"), Some((1, 3)));
        assert_eq!(written("tcp_opts_TS"), None);
    }

    #[test]
    fn families() {
        assert_eq!(id("tcp_rtt_avg_in").twin_divisor(), Some(1000));
        assert_eq!(id("tcp_rtt_cnt_in").twin_divisor(), Some(1));
        assert_eq!(id("tcp_thru_lf_c2s").twin_divisor(), Some(1));
        assert_eq!(id("tcp_cl_b_s_in").twin_divisor(), None);
        assert_eq!(id("mm_avg_bitrate_in").scale(), Scale::Count);
        assert_eq!(id("ip_bitrate_nc_out").scale(), Scale::BitRate);
        let rates = HISTOGRAMS.iter().filter(|def| {
            HistogramId::named(def.name).map(HistogramId::scale) == Some(Scale::BitRate)
        });
        assert!(rates.clone().all(|def| def.description.contains("bit/s")));
        assert_eq!(rates.count(), 44);
    }
}
