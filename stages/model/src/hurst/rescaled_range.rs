//! The range of the sums of a block over its standard deviation, against the length of the block.
//!
//! In a block of k bins with mean a and standard deviation S, the sums `W(t) = x(1) + ... + x(t) - t a` stray
//! over a range R = max W - min W (with W(0) = 0). `E[R/S] ~ k^H`: a line of slope H through the logarithms
//! of the mean R/S over all blocks of a length.
//!
//! The estimate is drawn towards 0.7: in short blocks R/S of independent values grows faster than `k^(1/2)` (by
//! `k^0.537` from 32 to 1,024 bins, from the expectation of Anis and Lloyd 1976, Biometrika 63), that of
//! strongly dependent ones more slowly.
//!
//! Source: Mandelbrot, Wallis 1969 (Water Resources Research 5); Taqqu, Teverovsky, Willinger 1995, sec. 3.6.

use super::{Estimate, levels, line};
use crate::number::number;

/// Shortest block: in shorter ones even independent values seem dependent.
const SHORTEST: usize = 32;
/// Blocks of the longest kind. The range of a block is known well from one block alone, so that longer ones serve than
/// for a variance.
const FEWEST: usize = 8;

/// Of a series.
pub(super) fn of(series: &[f64]) -> Option<Estimate> {
    let points: Vec<(f64, f64)> = levels(SHORTEST, series.len() / FEWEST)
        .into_iter()
        .filter_map(|length| Some((number(length).ln(), mean_of(series, length)?.ln())))
        .collect();
    line::through(&points).map(|line| Estimate {
        h: line.slope,
        standard_error: line.standard_error,
    })
}

/// The mean of R/S over the blocks of a length that are not all alike.
fn mean_of(series: &[f64], length: usize) -> Option<f64> {
    let ranges = series.chunks_exact(length).filter_map(rescaled);
    let (count, sum) = ranges.fold((0_u32, 0.0), |(count, sum), range| (count + 1, sum + range));
    (count > 0).then(|| sum / f64::from(count))
}

fn rescaled(block: &[f64]) -> Option<f64> {
    let n = number(block.len());
    let mean = block.iter().sum::<f64>() / n;
    let (mut sum, mut low, mut high, mut squares) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0);
    for value in block {
        let off = value - mean;
        sum += off;
        low = low.min(sum);
        high = high.max(sum);
        squares += off * off;
    }
    let deviation = (squares / n).sqrt();
    (deviation > 0.0).then(|| (high - low) / deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_block() {
        // Sums from the mean of 2: -1, -1, 0 and 0; deviation sqrt(1/2).
        let found = rescaled(&[1.0, 2.0, 3.0, 2.0]).unwrap();
        assert!((found - 1.0 / 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(rescaled(&[3.0; 4]), None);
    }
}
