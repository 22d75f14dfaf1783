//! The server's processor time, as the kernel's scheduler counts it.

use std::fs;
use std::time::Duration;

/// What a process has had of the processors, and what it has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Core {
    /// How long it ran.
    pub(super) ran: Duration,
    /// How long it could have run, but others did.
    pub(super) denied: Duration,
}

impl Core {
    /// Until now; `None` where the kernel does not count (`CONFIG_SCHED_INFO`).
    pub(super) fn of(process: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        Self::read(&text)
    }

    /// Nanoseconds on a processor, nanoseconds of waiting for one, time slices.
    fn read(text: &str) -> Option<Self> {
        let mut figures = text.split_whitespace().map(str::parse);
        let core = Self {
            ran: Duration::from_nanos(figures.next()?.ok()?),
            denied: Duration::from_nanos(figures.next()?.ok()?),
        };
        // A process that was never on a processor could not be asked for.
        (!core.ran.is_zero()).then_some(core)
    }

    /// Since an earlier moment.
    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(before.ran),
            denied: self.denied.saturating_sub(before.denied),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_figures_count() {
        let core = Core::read("303449 88200 2\n").unwrap();
        assert_eq!(core.ran, Duration::from_nanos(303_449));
        assert_eq!(core.denied, Duration::from_nanos(88_200));
        assert_eq!(Core::read("0 0 0\n"), None);
        assert_eq!(Core::read("12"), None);
    }

    #[test]
    fn work_takes_time_of_a_core() {
        let own = std::process::id();
        let before = Core::of(own).unwrap();
        let mut sum = 0_u64;
        while Core::of(own).unwrap().since(before).ran.is_zero() {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(Core::of(own).unwrap().ran > before.ran);
    }
}
