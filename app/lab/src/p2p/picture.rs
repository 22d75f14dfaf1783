//! Rates over time.

use super::recorded::Flows;
use crate::report::{Axis, Curve, Picture, Unit};

/// Width of a bin, seconds: that of the records.
const BIN: f64 = 0.25;

/// The torrent, the downloads beside it, and what the first is shaped to, as `flows` saw them where the
/// clients are.
pub(super) fn rates(seen: &Flows, shape: f64) -> Picture {
    let all = [("torrent", "bittorrent"), ("downloads", "http")]
        .map(|(name, application)| (name, seen.periods(application)));
    let times = || {
        let periods = all.iter().flat_map(|(_, periods)| periods);
        periods.map(|(at, _)| *at)
    };
    let begin = times().fold(f64::INFINITY, f64::min);
    let end = times().fold(f64::NEG_INFINITY, f64::max);
    let mut curves: Vec<Curve> = all
        .iter()
        .map(|(name, periods)| Curve {
            name: (*name).to_owned(),
            points: binned(periods, begin, end),
        })
        .collect();
    if end > begin {
        curves.push(Curve {
            name: "what the torrent is shaped to".to_owned(),
            points: vec![(0.0, shape), (end - begin, shape)],
        });
    }
    Picture {
        title: "Rate of a shaped torrent and of downloads that are not shaped".to_owned(),
        x: Axis {
            name: "time".to_owned(),
            unit: Unit::Seconds,
            is_logarithmic: false,
        },
        y: Axis {
            name: "content".to_owned(),
            unit: Unit::BitsPerSecond,
            is_logarithmic: false,
        },
        curves,
    }
}

/// Bits per second in each bin from the beginning to the end; the bytes of a period count where it began.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and far below 2^32 bins"
)]
fn binned(periods: &[(f64, f64)], begin: f64, end: f64) -> Vec<(f64, f64)> {
    if periods.is_empty() {
        return Vec::new();
    }
    let bin = |at: f64| ((at - begin) / BIN) as usize;
    let mut points: Vec<(f64, f64)> = (0..=bin(end))
        .map(|index| (index as f64 * BIN, 0.0))
        .collect();
    for (at, bytes) in periods {
        if let Some((_, rate)) = points.get_mut(bin(*at)) {
            *rate += 8.0 * bytes / BIN;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_their_bins() {
        let points = binned(&[(10.0, 100.0), (10.6, 50.0), (10.7, 25.0)], 10.0, 10.8);
        let expected = [(0.0, 3200.0), (0.25, 0.0), (0.5, 2400.0), (0.75, 0.0)];
        assert_eq!(points, expected);
        assert!(binned(&[], f64::INFINITY, f64::NEG_INFINITY).is_empty());
    }
}
