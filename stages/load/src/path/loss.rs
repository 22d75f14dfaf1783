//! Which frames are lost.
//!
//! Source: Gilbert 1960, "Capacity of a burst-noise channel": a good state in which all come through
//! and a bad one in which none does, changed at each frame. The bad state lasts `burst` frames in the
//! mean; the good one as long as makes the share of `loss`. A `burst` of 1 is no state at all: each
//! frame is lost or not by itself.

use linkweir_model::Random;

/// The losses of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Loss {
    /// Share of the frames that are lost.
    share: f64,
    /// Probabilities to go to the bad state and to leave it; `None` without bursts.
    bursts: Option<(f64, f64)>,
}

impl Loss {
    pub(super) fn new(share: f64, burst: f64) -> Self {
        let has_bursts = burst > 1.0 && share > 0.0 && share < 1.0;
        Self {
            share,
            bursts: has_bursts.then(|| (share / (burst * (1.0 - share)), 1.0 / burst)),
        }
    }

    /// Whether a frame can be lost at all.
    pub(super) fn is_none(&self) -> bool {
        self.share == 0.0
    }

    /// Whether frames of a client depend on those before.
    pub(super) const fn has_bursts(&self) -> bool {
        self.bursts.is_some()
    }

    /// Whether the next frame is lost. `was_bad` is the state of its line after the last frame, where
    /// that is known.
    pub(super) fn draw(&self, was_bad: Option<bool>, random: &mut Random) -> bool {
        let probability = match (self.bursts, was_bad) {
            (Some((_, leave)), Some(true)) => 1.0 - leave,
            (Some((enter, _)), Some(false)) => enter,
            // Nothing is known of it: as at any time.
            (Some(_), None) | (None, _) => self.share,
        };
        random.uniform() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the losses, and their mean number in a row, of a million frames.
    fn measured(share: f64, burst: f64) -> (f64, f64) {
        let loss = Loss::new(share, burst);
        let mut random = Random::new(5);
        let (mut lost, mut rows) = (0_u32, 0_u32);
        let mut state = None;
        for _ in 0..1_000_000 {
            let is_lost = loss.draw(state, &mut random);
            rows += u32::from(is_lost && state != Some(true));
            lost += u32::from(is_lost);
            state = Some(is_lost);
        }
        (f64::from(lost) / 1e6, f64::from(lost) / f64::from(rows))
    }

    #[test]
    fn share_and_bursts_are_those_asked_for() {
        let (share, burst) = measured(0.02, 1.0);
        assert!((share - 0.02).abs() < 0.001, "{share}");
        assert!(
            (burst - 1.0 / 0.98).abs() < 0.01,
            "{burst}: as chance makes them"
        );
        let (share, burst) = measured(0.05, 4.0);
        assert!((share - 0.05).abs() < 0.003, "{share}");
        assert!((burst - 4.0).abs() < 0.1, "{burst}");
        let (share, burst) = measured(0.5, 20.0);
        assert!((share - 0.5).abs() < 0.02, "{share}");
        assert!((burst - 20.0).abs() < 0.6, "{burst}");
        assert_eq!(measured(1.0, 1.0).0, 1.0);
        assert!(Loss::new(0.0, 1.0).is_none());
    }
}
