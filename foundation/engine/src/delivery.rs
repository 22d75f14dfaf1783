//! What outputs over a network have in common: how long they wait, and what they lose, by cause.

use std::time::Duration;

/// For the records of files.
const OF_FILES: Duration = Duration::from_secs(300);

/// At the end of a live run, and once the user has asked to stop.
const OF_USERS: Duration = Duration::from_secs(30);

/// Maximum time to wait for a destination that accepts nothing, counted from the last record that it
/// accepted.
///
/// The records of a file can wait for minutes, in which a broker or collector is started again; at the end of
/// a live run, or once the user has asked to stop, somebody is waiting for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryTimeout {
    usual: Duration,
    stopping: Duration,
}

impl DeliveryTimeout {
    /// The timeout where nothing else is said. `is_live`: the run reads an interface.
    #[must_use]
    pub const fn of_run(is_live: bool) -> Self {
        Self {
            usual: if is_live { OF_USERS } else { OF_FILES },
            stopping: OF_USERS,
        }
    }

    /// The timeout that the user has given.
    #[must_use]
    pub fn given(usual: Duration) -> Self {
        Self {
            usual,
            stopping: usual.min(OF_USERS),
        }
    }

    /// The timeout of a run that `is_stopping` or goes on.
    #[must_use]
    pub const fn of(&self, is_stopping: bool) -> Duration {
        if is_stopping {
            self.stopping
        } else {
            self.usual
        }
    }
}

/// Maximum number of causes kept apart: brokers have about a hundred.
const CAUSES: usize = 64;

/// Messages or records that did not arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// How many by cause, in the order in which the causes turned up; at most 64 causes.
    pub causes: Vec<(String, u64)>,
}

impl Failures {
    /// Counts `count` that did not arrive.
    pub fn fail(&mut self, cause: &str, count: u64) {
        self.count += count;
        if let Some((_, n)) = self.causes.iter_mut().find(|(name, _)| name == cause) {
            *n += count;
        } else if self.causes.len() < CAUSES {
            self.causes.push((cause.to_owned(), count));
        }
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        let named: u64 = other.causes.iter().map(|(_, count)| count).sum();
        for (cause, count) in &other.causes {
            self.fail(cause, *count);
        }
        self.count += other.count.saturating_sub(named);
    }
}

impl std::fmt::Display for Failures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (cause, count)) in self.causes.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{count} {cause}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_cause() {
        let mut failures = Failures::default();
        failures.fail("a", 2);
        failures.fail("b", 1);
        failures.fail("a", 3);
        assert_eq!(failures.count, 6);
        assert_eq!(failures.to_string(), "5 a, 1 b");
        for cause in 0..200 {
            failures.fail(&format!("c{cause}"), 1);
        }
        assert_eq!(failures.count, 206);
        assert_eq!(failures.causes.len(), CAUSES);
        let mut both = Failures::default();
        both.fail("b", 4);
        both.merge(&failures);
        assert_eq!(both.count, 210);
        assert!(both.to_string().starts_with("5 b, 5 a, 1 c0"), "{both}");
    }

    #[test]
    fn who_has_asked_to_stop_waits_less() {
        assert_eq!(DeliveryTimeout::of_run(false).of(false).as_secs(), 300);
        assert_eq!(DeliveryTimeout::of_run(false).of(true).as_secs(), 30);
        assert_eq!(DeliveryTimeout::of_run(true).of(false).as_secs(), 30);
        let given = DeliveryTimeout::given(Duration::from_secs(600));
        assert_eq!(
            (given.of(false).as_secs(), given.of(true).as_secs()),
            (600, 30)
        );
    }
}
