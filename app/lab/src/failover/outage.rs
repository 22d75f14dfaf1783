//! Something is killed, is away, and comes back.

use std::time::Duration;

use linkweir_testkit::netns::{until, wall_clock_ns};

use super::Settings;
use crate::error::LabError;
use crate::testbed::Testbed;

/// Timestamps of an outage, nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    /// It is about to be killed.
    pub(super) killed: u64,
    /// It is dead: its process is gone.
    pub(super) gone: u64,
    /// It is started again.
    pub(super) started: u64,
    /// It says that it serves.
    pub(super) serving: u64,
}

impl Outage {
    /// Kills something when all has gone well for a while, and has it started again.
    pub(super) fn of<T, U>(
        testbed: &Testbed<'_>,
        settings: &Settings,
        victim: T,
        kill: impl FnOnce(T),
        again: impl FnOnce() -> Result<U, LabError>,
    ) -> Result<(Self, U), LabError> {
        pause(testbed, settings.before)?;
        let killed = wall_clock_ns();
        kill(victim);
        let gone = wall_clock_ns();
        pause(testbed, settings.dead)?;
        let started = wall_clock_ns();
        let again = again()?;
        let outage = Self {
            killed,
            gone,
            started,
            serving: wall_clock_ns(),
        };
        Ok((outage, again))
    }

    /// The same, serving from now on.
    pub(super) fn until_now(self) -> Self {
        Self {
            serving: wall_clock_ns(),
            ..self
        }
    }

    /// Whether this timestamp lies in the time in which it was surely dead.
    pub(super) const fn covers(&self, timestamp: u64) -> bool {
        self.gone <= timestamp && timestamp < self.started
    }

    /// Whether this span of time has nothing of the outage in it.
    pub(super) const fn spares(&self, from: u64, to: u64) -> bool {
        to < self.killed || self.serving < from
    }

    /// Seconds for which there was no process.
    pub(super) fn dead_s(&self) -> f64 {
        seconds(self.started.saturating_sub(self.gone))
    }
}

/// Nanoseconds as seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "spans of seconds, shown with three digits"
)]
pub(super) const fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn pause(testbed: &Testbed<'_>, span: Duration) -> Result<(), LabError> {
    if until(span, || testbed.is_stopped()) {
        return Err(LabError::Stopped);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_inside_or_outside() {
        let outage = Outage {
            killed: 8,
            gone: 10,
            started: 20,
            serving: 25,
        };
        assert!(!outage.covers(9) && outage.covers(10) && outage.covers(19) && !outage.covers(20));
        assert!(outage.spares(1, 7) && outage.spares(26, 30));
        assert!(!outage.spares(1, 8) && !outage.spares(25, 26) && !outage.spares(1, 30));
    }
}
