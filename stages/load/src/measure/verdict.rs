//! Whether a run measured the server, or only the generator.

use super::figures::Figures;
use crate::outcome::Failure;

/// What a generator must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The 99th percentile of the schedule lag may be this much, nanoseconds.
    pub lag_p99_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lag_p99_ns: 1_000_000,
        }
    }
}

/// Whether the figures say something about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// They do.
    Valid,
    /// The generator itself was the bottleneck: why, one sentence each.
    Invalid(Vec<String>),
}

impl Verdict {
    /// Whether it is [`Verdict::Valid`].
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }

    /// Why not.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        match self {
            Self::Valid => &[],
            Self::Invalid(reasons) => reasons,
        }
    }
}

impl Figures {
    /// Judges a run.
    #[must_use]
    pub fn verdict(&self, limits: &Limits) -> Verdict {
        let mut reasons = Vec::new();
        let lag = self.stages.lag.quantile(0.99).unwrap_or(0);
        if lag > limits.lag_p99_ns {
            reasons.push(format!(
                "The schedule was not kept: one session in a hundred started {} or more after its time; the limit is {}.",
                millis(lag),
                millis(limits.lag_p99_ns)
            ));
        }
        let generator = &self.generator;
        let counts = [
            (
                self.failed.of(Failure::NoRoom),
                "sessions had no room: all connections or sessions that are allowed at a time were open.",
            ),
            (
                self.failed.of(Failure::NoPort),
                "sessions had no port: all ports of their client were in use; more clients are needed.",
            ),
            (
                generator.emulator_overflow,
                "frames had no room in the emulated lines.",
            ),
            (
                generator.send_stalls,
                "times frames waited because the interface took no more.",
            ),
            (generator.send_errors, "frames could not be sent."),
            (
                generator.receive_drops,
                "frames were dropped by the kernel because they were not fetched in time.",
            ),
        ];
        let broken = counts.iter().filter(|(count, _)| *count > 0);
        reasons.extend(broken.map(|(count, what)| format!("{count} {what}")));
        if reasons.is_empty() {
            Verdict::Valid
        } else {
            Verdict::Invalid(reasons)
        }
    }
}

/// Milliseconds with three decimals.
fn millis(nanos: u64) -> String {
    let micros = nanos / 1000;
    format!("{}.{:03} ms", micros / 1000, micros % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bottleneck_of_the_generator_makes_a_run_invalid() {
        let limits = Limits::default();
        let mut good = Figures::default();
        for lag in 0..200 {
            good.stages.lag.record(lag * 1000);
        }
        // One in two hundred may be late.
        good.stages.lag.record(70_000_000);
        // What the server does is no fault of the generator.
        good.failed.record(Failure::Reset);
        good.failed.record(Failure::ConnectTimeout);
        good.failed.record(Failure::RunEnded);
        assert_eq!(good.verdict(&limits), Verdict::Valid);

        let mut late = good.clone();
        late.stages.lag.record(80_000_000);
        late.stages.lag.record(80_000_000);
        let verdict = late.verdict(&limits);
        assert!(!verdict.is_valid());
        assert!(
            verdict.reasons()[0].ends_with("the limit is 1.000 ms."),
            "{verdict:?}"
        );
        let generous = Limits {
            lag_p99_ns: 100_000_000,
        };
        assert!(late.verdict(&generous).is_valid());

        type Break = fn(&mut Figures);
        let breaks: [Break; 6] = [
            |f| f.failed.record(Failure::NoRoom),
            |f| f.failed.record(Failure::NoPort),
            |f| f.generator.send_stalls = 1,
            |f| f.generator.send_errors = 1,
            |f| f.generator.receive_drops = 1,
            |f| f.generator.emulator_overflow = 1,
        ];
        for one in breaks {
            let mut figures = good.clone();
            one(&mut figures);
            let verdict = figures.verdict(&limits);
            assert_eq!(verdict.reasons().len(), 1, "{verdict:?}");
            assert!(verdict.reasons()[0].starts_with("1 "), "{verdict:?}");
        }
    }
}
