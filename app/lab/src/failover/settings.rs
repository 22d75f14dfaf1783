//! What a scenario of this kind says.

use std::time::Duration;

use serde::Deserialize;

use crate::settings::duration;

/// Parts killed while sessions go on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Mean sessions per second, at the times of a Poisson process.
    pub rate: f64,
    /// How long all goes well before something is killed.
    #[serde(deserialize_with = "duration")]
    pub before: Duration,
    /// How long it stays dead.
    #[serde(deserialize_with = "duration")]
    pub dead: Duration,
    /// How long sessions go on to begin after it was started again.
    #[serde(deserialize_with = "duration")]
    pub after: Duration,
    /// Transfers with a keyword, and as many with the EICAR string, each second; some of them while
    /// nobody looks.
    pub planted: f64,
}

impl Settings {
    /// Sessions of one failure begin during this time.
    pub(super) fn duration(&self) -> Duration {
        self.before + self.dead + self.after
    }

    /// Makes one failure last so long, in the same proportions.
    pub(crate) fn set_duration(&mut self, duration: Duration) {
        let part = duration.as_secs_f64() / self.duration().as_secs_f64();
        for span in [&mut self.before, &mut self.dead, &mut self.after] {
            *span = span.mul_f64(part);
        }
    }
}
