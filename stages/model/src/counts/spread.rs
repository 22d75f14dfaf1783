//! Counts of long bins spread over shorter ones.

use super::{Counts, CountsError, MAX_BINS};
use crate::number::{number, to_count, to_index};
use crate::{Random, poisson};

/// How [`spread`] spreads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Length of the given bins in seconds.
    pub from_bin_s: f64,
    /// Length of the bins that are made, in seconds; must divide `from_bin_s`.
    pub bin_s: f64,
    /// Arrivals per bin that are made, on average; `None`: all of those that are given.
    pub mean: Option<f64>,
    /// Seed of the draws.
    pub seed: u64,
}

/// Spreads counts of long bins (of a minute, say) over shorter ones (of 10 s).
///
/// The given counts are taken as the rate in the middle of their bins. Between the middles the rate
/// is interpolated along a line, before the first and after the last it stays; it is scaled to
/// `mean`, and each new bin is a Poisson draw around the rate in its middle. What is made follows the
/// given series from the length of its bins upwards and has no structure below that: it is a
/// surrogate of what was counted, and whoever shows figures from it should say so.
///
/// # Errors
/// A bin length that is not positive or does not divide the given one, no bins, too many.
pub fn spread(counts: &[u64], how: Spread) -> Result<Counts, CountsError> {
    let per_bin = how.from_bin_s / how.bin_s;
    let times = to_index(per_bin.round());
    let is_whole = (per_bin - number(times)).abs() <= 1e-9 * per_bin;
    if !(per_bin.is_finite() && times > 0 && is_whole) {
        return Err(CountsError::BinLength(how.bin_s));
    }
    let bins = counts.len().saturating_mul(times);
    if bins > MAX_BINS {
        return Err(CountsError::TooManyBins(bins));
    }
    let mut rates = Vec::with_capacity(bins);
    for (at, &here) in counts.iter().enumerate() {
        let here = here as f64;
        let before = at.checked_sub(1).and_then(|at| counts.get(at));
        let before = before.map_or(here, |&count| count as f64);
        let after = counts.get(at + 1).map_or(here, |&count| count as f64);
        for step in 0..times {
            // From the middle of the given bin, in parts of it: -1/2 to 1/2.
            let off = (number(step) + 0.5) / number(times) - 0.5;
            let next = if off < 0.0 { before } else { after };
            rates.push(here + (next - here) * off.abs());
        }
    }
    let mean = rates.iter().sum::<f64>() / number(bins);
    let wanted = how.mean.unwrap_or_else(|| mean / number(times));
    let scale = if mean > 0.0 { wanted / mean } else { 0.0 };
    let mut random = Random::new(how.seed);
    let values = rates
        .iter()
        .map(|rate| to_count(poisson::draw(rate * scale, &mut random)))
        .collect();
    Counts::new(how.bin_s, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Spread = Spread {
        from_bin_s: 60.0,
        bin_s: 10.0,
        mean: None,
        seed: 1,
    };

    #[test]
    fn the_total_is_kept_and_the_rate_is_followed() {
        let minutes: Vec<u64> = (0..500).map(|i| 6_000 + 3_000 * (i % 2)).collect();
        let counts = spread(&minutes, HOW).unwrap();
        assert_eq!(counts.len(), 3000);
        assert!((counts.mean() / 1250.0 - 1.0).abs() < 0.005, "{counts:?}");
        // The middle of an even minute is low, that of an odd one high.
        let middle = |odd: usize| -> f64 {
            let of = counts.values().iter().skip(6 * odd + 2).step_by(12);
            of.map(|&count| f64::from(count)).sum::<f64>() / 250.0
        };
        assert!(middle(0) < 1060.0 && middle(1) > 1440.0);
    }

    #[test]
    fn a_mean_can_be_asked_for_and_a_seed_repeats() {
        let how = Spread {
            mean: Some(32.57),
            ..HOW
        };
        let counts = spread(&[70_000; 200], how).unwrap();
        assert!((counts.mean() - 32.57).abs() < 0.5);
        assert_eq!(counts, spread(&[70_000; 200], how).unwrap());
        let other = spread(&[70_000; 200], Spread { seed: 2, ..how }).unwrap();
        assert_ne!(counts, other);
    }

    #[test]
    fn lengths_that_do_not_divide_are_refused() {
        for bin_s in [7.0, 0.0, f64::NAN, 120.0] {
            assert!(spread(&[1, 2], Spread { bin_s, ..HOW }).is_err());
        }
        assert_eq!(spread(&[], HOW), Err(CountsError::NoBins));
        assert_eq!(spread(&[0, 0], HOW).unwrap().total(), 0);
    }
}
