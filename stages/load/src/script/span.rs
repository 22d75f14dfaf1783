//! Spans of time: think times and pauses.

use linkweir_model::Random;

use crate::arrivals::whole_nanos;

/// Draws beyond the cap after which the cap itself is taken.
const MAX_DRAWS: u32 = 64;

/// A span of time, fixed or drawn. All are in seconds.
///
/// What is drawn has a cap: a draw beyond it is drawn again, so that the distribution is the truncated
/// one. Without it the mean of a run of a heavy tail would be that of its largest draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Span {
    /// Always the same, nanoseconds.
    Constant(u64),
    /// P(X > x) = exp(-x / mean).
    Exponential {
        /// Mean without the cap.
        mean: f64,
        /// Largest value.
        cap: f64,
    },
    /// P(X > x) = (scale / x)^shape for x at or above `scale`.
    Pareto {
        /// Smallest value.
        scale: f64,
        /// Exponent; the mean is infinite without a cap up to 1, the variance up to 2.
        shape: f64,
        /// Largest value.
        cap: f64,
    },
    /// P(X > x) = exp(-(x / scale)^shape).
    Weibull {
        /// Scale.
        scale: f64,
        /// Exponent.
        shape: f64,
        /// Largest value.
        cap: f64,
    },
    /// Logarithm normal.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Largest value.
        cap: f64,
    },
}

impl Default for Span {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self::Constant(0);

    /// Draws one, nanoseconds.
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let cap = match *self {
            Self::Constant(nanos) => return nanos,
            Self::Exponential { cap, .. }
            | Self::Pareto { cap, .. }
            | Self::Weibull { cap, .. }
            | Self::Lognormal { cap, .. } => cap,
        };
        for _ in 0..MAX_DRAWS {
            let seconds = self.draw_without_cap(random);
            if seconds <= cap {
                return whole_nanos(seconds * 1e9);
            }
        }
        whole_nanos(cap * 1e9)
    }

    /// By the inverse of the distribution, seconds.
    fn draw_without_cap(&self, random: &mut Random) -> f64 {
        match *self {
            Self::Constant(_) => 0.0,
            Self::Exponential { mean, .. } => random.exponential() * mean,
            Self::Pareto { scale, shape, .. } => scale * (random.exponential() / shape).exp(),
            Self::Weibull { scale, shape, .. } => scale * random.exponential().powf(1.0 / shape),
            Self::Lognormal { mu, sigma, .. } => sigma.mul_add(normal(random), mu).exp(),
        }
    }

    /// Whether it is a fixed span of no time: nothing is drawn for it.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        matches!(self, Self::Constant(0))
    }

    /// What is wrong with its numbers; `None` where it can be drawn.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        let (numbers, least, cap) = match *self {
            Self::Constant(_) => return None,
            Self::Exponential { mean, cap } => ([mean, mean], 0.0, cap),
            Self::Pareto { scale, shape, cap } => ([scale, shape], scale, cap),
            Self::Weibull { scale, shape, cap } => ([scale, shape], 0.0, cap),
            Self::Lognormal { mu, sigma, cap } => {
                if !mu.is_finite() {
                    return Some("`mu` is not a number");
                }
                ([sigma, sigma], 0.0, cap)
            }
        };
        if !numbers.into_iter().all(is_positive) {
            return Some("its mean, scale, shape or sigma is not above 0");
        }
        if !(is_positive(cap) && cap > least && cap <= MAX_SECONDS) {
            return Some("its cap is not above its smallest value, or beyond a year");
        }
        None
    }
}

/// A year.
pub(super) const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// Standard normal, by the method of Box and Muller (1958); its second value is not used.
fn normal(random: &mut Random) -> f64 {
    let radius = (2.0 * random.exponential()).sqrt();
    radius * (std::f64::consts::TAU * random.uniform()).cos()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Mean and share of draws above `at`, seconds.
    fn moments(span: Span, at: f64) -> (f64, f64) {
        let mut random = Random::new(17);
        let n = 200_000_u32;
        let (mut sum, mut above) = (0.0, 0.0);
        for _ in 0..n {
            #[expect(clippy::cast_precision_loss, reason = "seconds")]
            let seconds = span.draw(&mut random) as f64 / 1e9;
            sum += seconds;
            above += f64::from(u8::from(seconds > at));
        }
        (sum / f64::from(n), above / f64::from(n))
    }

    #[test]
    fn draws_have_the_moments_of_their_truncated_distributions() {
        // Each mean and tail worked out from the truncated distribution function.
        let pareto_mean = 3.0 * (1.0 - 0.1) / (1.0 - 0.001);
        let pareto_above = (4.0_f64.powf(-1.5) - 0.001) / (1.0 - 0.001);
        let cut = (-2.0_f64).exp();
        for (span, mean, at, above) in [
            (Span::Constant(2_500_000_000), 2.5, 2.4, 1.0),
            (
                Span::Exponential {
                    mean: 3.0,
                    cap: 300.0,
                },
                3.0,
                3.0,
                (-1.0_f64).exp(),
            ),
            (
                Span::Exponential {
                    mean: 1.0,
                    cap: 2.0,
                },
                1.0 - 2.0 * cut / (1.0 - cut),
                1.0,
                ((-1.0_f64).exp() - cut) / (1.0 - cut),
            ),
            (
                Span::Pareto {
                    scale: 1.0,
                    shape: 1.5,
                    cap: 100.0,
                },
                pareto_mean,
                4.0,
                pareto_above,
            ),
            // Gamma(1 + 1/2) = sqrt(pi)/2.
            (
                Span::Weibull {
                    scale: 2.0,
                    shape: 2.0,
                    cap: 1e3,
                },
                std::f64::consts::PI.sqrt(),
                2.0,
                (-1.0_f64).exp(),
            ),
            (
                Span::Lognormal {
                    mu: 0.5,
                    sigma: 0.4,
                    cap: 1e3,
                },
                (0.5_f64 + 0.08).exp(),
                0.5_f64.exp(),
                0.5,
            ),
        ] {
            let (got_mean, got_above) = moments(span, at);
            assert!(
                (got_mean / mean - 1.0).abs() < 0.02,
                "{span:?}: {got_mean} for {mean}"
            );
            assert!(
                (got_above - above).abs() < 0.006,
                "{span:?}: {got_above} for {above}"
            );
            assert_eq!(span.fault(), None);
        }
    }

    #[test]
    fn numbers_that_cannot_be_drawn() {
        for span in [
            Span::Exponential {
                mean: 0.0,
                cap: 1.0,
            },
            Span::Exponential {
                mean: 1.0,
                cap: f64::INFINITY,
            },
            Span::Pareto {
                scale: 1.0,
                shape: 1.5,
                cap: 1.0,
            },
            Span::Pareto {
                scale: 1.0,
                shape: -1.0,
                cap: 2.0,
            },
            Span::Weibull {
                scale: f64::NAN,
                shape: 1.0,
                cap: 2.0,
            },
            Span::Lognormal {
                mu: f64::NAN,
                sigma: 1.0,
                cap: 2.0,
            },
        ] {
            assert!(span.fault().is_some(), "{span:?}");
        }
    }

    proptest! {
        #[test]
        fn no_draw_is_beyond_its_cap(a: f64, b: f64, cap in 1e-6..1e6_f64, seed: u64) {
            let mut random = Random::new(seed);
            let bound = whole_nanos(cap * 1e9);
            for span in [
                Span::Exponential { mean: a, cap },
                Span::Pareto { scale: a, shape: b, cap },
                Span::Weibull { scale: a, shape: b, cap },
                Span::Lognormal { mu: a, sigma: b, cap },
            ] {
                prop_assert!(span.draw(&mut random) <= bound, "{:?}", span);
            }
        }
    }
}
