//! The highest rate that a generator with a schedule of its own can keep.
//!
//! A program that waits for each answer finds the server's limit by itself. One that starts sessions on
//! a schedule is asked for a rate: we go up until it or the server does not follow any more, and then
//! back by halves.

use anyhow::Result;

/// How far a search goes at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Steps {
    /// From one rate to the next while it goes up, and while it goes down to one that is kept.
    factor: f64,
    /// Halvings of the last step.
    halvings: u32,
}

impl Steps {
    /// Where little is known: 1.3, and in the end 1.07.
    pub(super) const WIDE: Self = Self {
        factor: 1.3,
        halvings: 2,
    };
    /// Where the rate is nearly known: 1.07 at once.
    pub(super) const NARROW: Self = Self {
        factor: 1.07,
        halvings: 0,
    };
    /// Most in one direction: a factor of 190.
    const MOST: u32 = 20;
}

/// Looks for the highest rate at which `run` gives something; gives that with the rate. `None` where
/// no rate is kept.
///
/// What else the machine does may spoil a run, so a rate is given up when two runs fail.
pub(super) fn highest<T>(
    start: f64,
    steps: Steps,
    mut run: impl FnMut(f64) -> Result<Option<T>>,
) -> Result<Option<(f64, T)>> {
    let mut kept = |rate: f64| -> Result<Option<T>> {
        match run(rate)? {
            None => run(rate),
            some => Ok(some),
        }
    };
    let mut best: Option<(f64, T)> = None;
    let mut rate = start;
    for _ in 0..Steps::MOST {
        match (kept(rate)?, &best) {
            (Some(figures), _) => {
                let was_going_down = best.is_none() && rate < start;
                best = Some((rate, figures));
                if was_going_down {
                    // The rate above it has failed already.
                    break;
                }
                rate *= steps.factor;
            }
            (None, Some(_)) => break,
            (None, None) => rate /= steps.factor,
        }
    }
    let Some(mut best) = best else {
        return Ok(None);
    };
    let mut step = steps.factor;
    for _ in 0..steps.halvings {
        step = step.sqrt();
        let rate = best.0 * step;
        if let Some(figures) = kept(rate)? {
            best = (rate, figures);
        }
    }
    Ok(Some(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(start: f64, limit: f64, steps: Steps) -> Option<f64> {
        let run = |rate: f64| Ok((rate <= limit).then_some(()));
        highest(start, steps, run).unwrap().map(|(rate, ())| rate)
    }

    #[test]
    fn the_limit_is_found_from_below_and_from_above() {
        for start in [100.0, 900.0, 1000.0, 1100.0, 20_000.0] {
            let rate = found(start, 1000.0, Steps::WIDE).unwrap();
            assert!((930.0..=1000.0).contains(&rate), "{rate} from {start}");
        }
        for start in [800.0, 990.0, 1100.0] {
            let rate = found(start, 1000.0, Steps::NARROW).unwrap();
            assert!((930.0..=1000.0).contains(&rate), "{rate} from {start}");
        }
        assert_eq!(found(1000.0, 1e-9, Steps::WIDE), None);
    }

    #[test]
    fn one_bad_run_is_not_the_limit() {
        let mut runs = 0;
        let run = |rate: f64| {
            runs += 1;
            Ok((rate <= 1000.0 && runs != 2).then_some(()))
        };
        let (rate, ()) = highest(500.0, Steps::WIDE, run).unwrap().unwrap();
        assert!(rate >= 930.0, "{rate}");
    }

    #[test]
    fn what_cannot_be_run_is_an_error() {
        let run = |_| -> Result<Option<()>> { anyhow::bail!("no such program") };
        assert!(highest(1.0, Steps::WIDE, run).is_err());
    }
}
