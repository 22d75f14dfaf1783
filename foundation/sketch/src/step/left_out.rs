//! Which of Tstat's histograms are not measured here, and why: no file and no round-robin database is made
//! of them.

use std::sync::LazyLock;

use super::catalogue::{HISTOGRAMS, HistogramId};

/// Histograms that nothing here fills, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// Their names; at most one `*` in each stands for any text.
    pub names: &'static [&'static str],
    /// Why nothing fills them.
    pub reason: &'static str,
}

/// All that are left out. The table in `docs/flows.md` is tested against this list.
pub static LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        names: &["*_c_in", "*_c_out", "*_c_c2s", "*_c_s2c", "tcp_rtt_c_avg_*"],
        reason: "no option takes the networks of a cloud (Tstat's `-C`); the histograms of traffic that is \
                 not with a cloud (`_nc_`) count all",
    },
    LeftOut {
        names: &[
            "video_rate_in",
            "video_rate_out",
            "video_rate_loc",
            "video_rate_nc_*",
            "L7_VIDEO_num_in",
            "L7_VIDEO_num_out",
            "L7_VIDEO_num_loc",
            "L7_VIDEO_num_nc_*",
        ],
        reason: "the format of a video is seen only where HTTP is in clear text, which video no longer is",
    },
    LeftOut {
        names: &["chat_flow_num"],
        reason: "it counts users, presence and chats of MSN, Yahoo and XMPP before they were encrypted",
    },
    LeftOut {
        names: &["tcp_win_avg"],
        reason: "the mean would cost every TCP packet an addition and every flow 16 bytes beyond its eight \
                 cache lines; `tcp_win_ini` and `tcp_win_max` are measured",
    },
    LeftOut {
        names: &["profile_cpu"],
        reason: "measurements follow the time of the packets; the load of the processor is the system's to \
                 tell",
    },
];

impl LeftOut {
    /// Whether a histogram with this name is one of them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names
            .iter()
            .any(|pattern| match pattern.split_once('*') {
                Some((before, behind)) => name
                    .strip_prefix(before)
                    .is_some_and(|rest| rest.ends_with(behind)),
                None => *pattern == name,
            })
    }

    /// How many they are.
    #[must_use]
    pub fn count(&self) -> usize {
        HISTOGRAMS.iter().filter(|def| self.has(def.name)).count()
    }
}

impl HistogramId {
    /// Whether anything here fills it.
    #[must_use]
    pub fn is_measured(self) -> bool {
        static MEASURED: LazyLock<Vec<bool>> = LazyLock::new(|| {
            let is_left_out = |name| LEFT_OUT.iter().any(|one| one.has(name));
            let all = HISTOGRAMS.iter();
            all.map(|def| !is_left_out(def.name)).collect()
        });
        MEASURED
            .get(usize::from(self.0))
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_names_histograms_and_none_is_left_out_twice() {
        for one in LEFT_OUT {
            for pattern in one.names {
                let alone = LeftOut {
                    names: std::slice::from_ref(pattern),
                    ..*one
                };
                assert!(alone.count() > 0, "{pattern}");
            }
        }
        for def in HISTOGRAMS {
            let times = LEFT_OUT.iter().filter(|one| one.has(def.name)).count();
            assert!(times < 2, "{}", def.name);
        }
        let measured = |name| HistogramId::named(name).unwrap().is_measured();
        assert!(measured("ip_bitrate_nc_in") && !measured("ip_bitrate_c_in"));
        assert!(!HistogramId(u16::MAX).is_measured());
    }
}
