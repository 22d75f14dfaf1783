//! How far the clock of the other side is from ours.
//!
//! Source: Cristian 1989: the other side's time is that of the middle of the exchange, and wrong by at
//! most half of what the exchange took; of several exchanges the quickest counts (as in RFC 5905 sec. 10).

/// A question for the time and its answer, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    /// When it was asked, by our clock.
    pub(super) asked: u64,
    /// What the other side said.
    pub(super) said: u64,
    /// When the answer came, by our clock.
    pub(super) heard: u64,
}

/// What is known of the other side's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::load) struct Offset {
    /// Its time minus ours, nanoseconds.
    pub(in crate::load) offset_ns: i128,
    /// At most so wrong, nanoseconds.
    pub(in crate::load) error_ns: u64,
}

impl Offset {
    /// From the quickest of some probes.
    pub(super) fn estimate(probes: &[Probe]) -> Self {
        let took = |probe: &Probe| probe.heard.saturating_sub(probe.asked);
        let Some(best) = probes.iter().min_by_key(|probe| took(probe)) else {
            return Self::default();
        };
        let half = took(best) / 2;
        Self {
            offset_ns: i128::from(best.said) - i128::from(best.asked) - i128::from(half),
            error_ns: took(best).div_ceil(2),
        }
    }

    /// Our time at which the other side's clock shows `there`; `None` outside of all times.
    pub(super) fn here(self, there: u64) -> Option<u64> {
        u64::try_from(i128::from(there) - self.offset_ns).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_counts() {
        let probes = [
            Probe {
                asked: 1000,
                said: 9000,
                heard: 5000,
            },
            Probe {
                asked: 6000,
                said: 5100,
                heard: 6201,
            },
        ];
        let offset = Offset::estimate(&probes);
        assert_eq!((offset.offset_ns, offset.error_ns), (-1000, 101));
        assert_eq!(offset.here(10_000), Some(11_000));
        assert_eq!(Offset::estimate(&[]), Offset::default());
        let ahead = Offset {
            offset_ns: 500,
            error_ns: 0,
        };
        assert_eq!((ahead.here(700), ahead.here(300)), (Some(200), None));
    }
}
