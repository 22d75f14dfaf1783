//! A slow trend: how the rate goes up and down in a way that is not chance, such as over a day.

use crate::number::number;

/// Most points of a profile.
pub const MAX_POINTS: usize = 1 << 20;
/// Longest period in bins.
const MAX_PERIOD: u32 = 1 << 30;
/// Largest factor.
const MAX_FACTOR: f64 = 1e6;

/// By what the rate is multiplied, bin by bin; its mean over a period is 1.
///
/// Given by points `every` bins apart and straight lines between them. After `bins` bins it begins
/// again; the last line leads back to the first point.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    bins: u32,
    every: u32,
    factors: Vec<f64>,
}

/// Why there is no profile.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// The period or the distance of the points is 0 or too long.
    #[error(
        "a period of {bins} bins with a point every {every}: neither may be 0, the period at most {MAX_PERIOD}"
    )]
    Period {
        /// Length of the period.
        bins: u32,
        /// From point to point.
        every: u32,
    },
    /// Not as many points as the period has places for them.
    #[error(
        "{points} points where the period has places for {places}, and at most {MAX_POINTS} are possible"
    )]
    Points {
        /// How many.
        points: usize,
        /// How many there should be.
        places: usize,
    },
    /// A factor is negative, no number or too large.
    #[error("factor {factor} of point {point}: 0 to {MAX_FACTOR} are possible")]
    Factor {
        /// Which, from 0 on.
        point: usize,
        /// What it has.
        factor: f64,
    },
    /// All factors are 0.
    #[error("all factors are 0")]
    Zero,
}

impl Profile {
    /// A period of `bins` bins with points at 0, `every`, twice that and so on. The factors are
    /// scaled so that their mean over the period is 1.
    ///
    /// # Errors
    /// Sizes that do not fit or are too large, factors that are none.
    pub fn new(bins: u32, every: u32, factors: Vec<f64>) -> Result<Self, ProfileError> {
        if bins == 0 || every == 0 || bins > MAX_PERIOD {
            return Err(ProfileError::Period { bins, every });
        }
        let places = usize::try_from(bins.div_ceil(every)).unwrap_or(usize::MAX);
        if factors.len() != places || places > MAX_POINTS {
            return Err(ProfileError::Points {
                points: factors.len(),
                places,
            });
        }
        let is_factor = |factor: f64| (0.0..=MAX_FACTOR).contains(&factor);
        let wrong = factors.iter().enumerate().find(|(_, f)| !is_factor(**f));
        if let Some((point, &factor)) = wrong {
            return Err(ProfileError::Factor { point, factor });
        }
        let mut result = Self {
            bins,
            every,
            factors,
        };
        let mean = result.mean();
        if mean <= 0.0 {
            return Err(ProfileError::Zero);
        }
        // A profile that was scaled before stays as it is, digit by digit.
        if (mean - 1.0).abs() > 1e-12 {
            result.factors.iter_mut().for_each(|f| *f /= mean);
        }
        Ok(result)
    }

    /// Length of the period in bins.
    #[must_use]
    pub const fn bins(&self) -> u32 {
        self.bins
    }

    /// Bins from point to point.
    #[must_use]
    pub const fn every(&self) -> u32 {
        self.every
    }

    /// The factors at the points.
    #[must_use]
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// The factor of a bin, counted from the beginning of a period.
    #[must_use]
    #[inline]
    pub fn factor(&self, bin: u64) -> f64 {
        let bin = u32::try_from(bin % u64::from(self.bins)).unwrap_or(0);
        let point = bin / self.every;
        let begin = point * self.every;
        let length = self.every.min(self.bins - begin);
        let part = f64::from(bin - begin) / f64::from(length);
        let at = usize::try_from(point).unwrap_or(0);
        let from = self.factors.get(at).copied().unwrap_or(1.0);
        let first = self.factors.first().copied();
        let to = self.factors.get(at + 1).copied().or(first).unwrap_or(from);
        from + (to - from) * part
    }

    /// The factors of the first `bins` bins.
    #[must_use]
    pub fn first(&self, bins: usize) -> Vec<f64> {
        (0_u64..).map(|bin| self.factor(bin)).take(bins).collect()
    }

    /// Mean of the factor over a period: each line by the sum of its arithmetic series.
    fn mean(&self) -> f64 {
        let first = self.factors.first().copied().unwrap_or(0.0);
        let nexts = self.factors.iter().skip(1).copied().chain([first]);
        let last = self.factors.len().saturating_sub(1);
        let lines = self.factors.iter().zip(nexts).enumerate();
        let sum: f64 = lines
            .map(|(at, (from, to))| {
                let length = if at == last {
                    f64::from(self.bins) - number(at) * f64::from(self.every)
                } else {
                    f64::from(self.every)
                };
                length * from + (to - from) * (length - 1.0) / 2.0
            })
            .sum();
        sum / f64::from(self.bins)
    }

    /// The trend of a series: its moving average over `window` bins around each point, four points
    /// to a window. At the ends the average is over what is there of the window. `None` for a series
    /// without arrivals.
    #[must_use]
    pub(crate) fn moving_average(values: &[u32], window: usize) -> Option<Self> {
        let n = values.len();
        let window = window.clamp(1, n.max(1));
        let every = (window / 4).max(1).max(n.div_ceil(MAX_POINTS));
        let mut sums = Vec::with_capacity(n + 1);
        let mut sum = 0.0;
        sums.push(sum);
        for &value in values {
            sum += f64::from(value);
            sums.push(sum);
        }
        let before = window / 2;
        let factors = (0..n).step_by(every).map(|at| {
            let begin = at.saturating_sub(before);
            let end = (at + window - before).min(n);
            let sum = |at: usize| sums.get(at).copied().unwrap_or(0.0);
            (sum(end) - sum(begin)) / number(end.saturating_sub(begin).max(1))
        });
        let factors: Vec<f64> = factors.collect();
        let top = factors.iter().copied().fold(0.0, f64::max);
        let factors = factors.iter().map(|factor| factor / top).collect();
        let (bins, every) = (u32::try_from(n).ok()?, u32::try_from(every).ok()?);
        Self::new(bins, every, factors).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_between_points_and_around() {
        let profile = Profile::new(10, 4, vec![1.0, 3.0, 2.0]).unwrap();
        let shape = [1.0, 1.5, 2.0, 2.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.5];
        let mean = shape.iter().sum::<f64>() / 10.0;
        for (bin, factor) in (0..).zip(shape) {
            assert!((profile.factor(bin) - factor / mean).abs() < 1e-15, "{bin}");
            assert_eq!(profile.factor(bin), profile.factor(bin + 30));
        }
    }

    #[test]
    fn a_scaled_profile_stays_as_it_is() {
        let once = Profile::new(17, 3, vec![0.1, 0.7, 3.0, 1.1, 0.2, 0.9]).unwrap();
        let again = Profile::new(17, 3, once.factors().to_vec()).unwrap();
        assert_eq!(once, again);
        let mean = once.first(17).iter().sum::<f64>() / 17.0;
        assert!((mean - 1.0).abs() < 1e-14);
    }

    #[test]
    fn the_trend_of_a_step() {
        let values: Vec<u32> = (0..2000).map(|i| if i < 1000 { 10 } else { 30 }).collect();
        let profile = Profile::moving_average(&values, 100).unwrap();
        assert_eq!((profile.bins(), profile.every()), (2000, 25));
        assert!((profile.factor(500) - 0.5).abs() < 0.01);
        assert!((profile.factor(1000) - 1.0).abs() < 0.02);
        assert!((profile.factor(1500) - 1.5).abs() < 0.02);
        assert!(Profile::moving_average(&[0; 50], 10).is_none());
        assert!(Profile::moving_average(&[], 10).is_none());
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        assert!(matches!(
            Profile::new(0, 1, Vec::new()),
            Err(ProfileError::Period { .. })
        ));
        assert!(matches!(
            Profile::new(10, 0, Vec::new()),
            Err(ProfileError::Period { .. })
        ));
        assert!(matches!(
            Profile::new(10, 4, vec![1.0; 2]),
            Err(ProfileError::Points { .. })
        ));
        assert!(matches!(
            Profile::new(2, 1, vec![1.0, f64::NAN]),
            Err(ProfileError::Factor { point: 1, .. })
        ));
        assert!(matches!(
            Profile::new(2, 1, vec![-1.0, 1.0]),
            Err(ProfileError::Factor { point: 0, .. })
        ));
        assert_eq!(Profile::new(2, 1, vec![0.0; 2]), Err(ProfileError::Zero));
    }
}
