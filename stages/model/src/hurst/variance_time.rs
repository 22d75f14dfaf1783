//! The variance of the mean of joined bins against how many are joined.
//!
//! For level m the series is cut into blocks of m bins; `V(m)` is the variance of their means. With long-range
//! dependence `V(m) ~ m^(2H-2)`: a line of slope `2H - 2` in logarithms of both, and of slope -1 without.
//! The variance around the mean of the series itself misses what moves all of it, so that strong dependence is
//! estimated too low; the model's side has the same fault, for it is the expectation of the same figure.
//!
//! Source: Beran 1994, *Statistics for Long-Memory Processes*, sec. 4.4; Taqqu, Teverovsky, Willinger 1995,
//! sec. 3.1 (aggregated variance).

use super::{Estimate, levels, line};
use crate::number::number;

/// The curve, and what its slope says.
#[derive(Debug, Clone, PartialEq)]
pub struct VarianceTime {
    /// How many bins are joined, from 1 to a tenth of the series, and the variance of the means.
    pub curve: Vec<(usize, f64)>,
    /// Slope of the line through the logarithms, over the scales of the estimate; -1 without dependence.
    pub slope: Option<f64>,
    /// H = 1 + slope / 2.
    pub estimate: Option<Estimate>,
}

impl VarianceTime {
    /// Of a series.
    pub(super) fn of(series: &[f64], scales: (usize, usize)) -> Self {
        // Sums of all that came before: the sum of a block is a difference.
        let mean = series.iter().sum::<f64>() / number(series.len());
        let mut sums = Vec::with_capacity(series.len() + 1);
        let mut sum = 0.0;
        sums.push(sum);
        for value in series {
            sum += value - mean;
            sums.push(sum);
        }
        let variance = |level: usize| {
            let edges = sums.iter().step_by(level);
            let blocks = edges.clone().zip(edges.skip(1));
            let means = blocks.map(|(before, after)| (after - before) / number(level));
            let count = number(series.len() / level);
            let middle = means.clone().sum::<f64>() / count;
            means.map(|mean| (mean - middle).powi(2)).sum::<f64>() / (count - 1.0)
        };
        Self::with(series.len(), scales, variance)
    }

    /// What is expected of a series of as many bins as `together` has entries: the sums of the covariances of all
    /// pairs at each lag, over the number of bins.
    pub(super) fn expected(together: &[f64], scales: (usize, usize)) -> Self {
        let bins = together.len();
        let n = number(bins);
        // The covariance of two bins at each lag.
        let covariance = |lag: usize, sum: f64| sum / (1.0 - number(lag) / n);
        let of_mean = |level: usize| {
            let m = number(level);
            let pairs = together.iter().enumerate().take(level).skip(1);
            let pairs = pairs.map(|(lag, sum)| (1.0 - number(lag) / m) * covariance(lag, *sum));
            (together.first().unwrap_or(&0.0) + 2.0 * pairs.sum::<f64>()) / m
        };
        // Around the mean of all whole blocks, and by one degree of freedom less.
        let variance = |level: usize| {
            let blocks = bins / level;
            let count = number(blocks);
            (of_mean(level) - of_mean(blocks * level)) * count / (count - 1.0)
        };
        Self::with(bins, scales, variance)
    }

    fn with(bins: usize, scales: (usize, usize), variance: impl Fn(usize) -> f64) -> Self {
        let curve: Vec<(usize, f64)> = levels(1, bins / 10)
            .into_iter()
            .map(|level| (level, variance(level)))
            .collect();
        let used = curve
            .iter()
            .filter(|(level, _)| (scales.0..=scales.1).contains(level));
        let points: Vec<(f64, f64)> = used.map(|(m, v)| (number(*m).ln(), v.ln())).collect();
        let line = line::through(&points);
        Self {
            curve,
            slope: line.map(|line| line.slope),
            estimate: line.map(|line| Estimate {
                h: 1.0 + line.slope / 2.0,
                standard_error: line.standard_error / 2.0,
            }),
        }
    }
}
