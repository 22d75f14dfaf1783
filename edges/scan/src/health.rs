//! Whether clamd is there, as far as anybody knows.

use std::net::SocketAddr;
use std::time::Duration;

use crate::icap::Offer;

/// First break between two attempts; the very first attempt has none before it.
const FIRST_BREAK: Duration = Duration::from_millis(50);
/// Longest break.
const LONGEST_BREAK: Duration = Duration::from_secs(2);

/// What is known of clamd. While it is down scans fail at once: traffic is not held for nothing.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Why it is down; `None` while it is up, or before anybody has tried.
    down: Option<String>,
    /// It has answered at least once since it was down.
    is_reachable: bool,
    /// Attempts in a row that failed.
    failures: u32,
    /// Somebody asks for a check now.
    is_check_wanted: bool,
    /// When a scan was last answered, monotonic nanoseconds.
    answered_ns: u64,
    /// What it says it is.
    pub(crate) version: String,
    /// What an ICAP service supports, as it said last.
    pub(crate) offer: Offer,
    /// The addresses of its name, as last looked up.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Health {
    pub(crate) const fn is_reachable(&self) -> bool {
        self.is_reachable
    }

    /// Why scans fail at once; `None` where they may try.
    pub(crate) fn why_down(&self) -> Option<&str> {
        self.down.as_deref()
    }

    /// A scan was answered.
    pub(crate) fn answered(&mut self, now_ns: u64) {
        self.answered_ns = now_ns;
        self.up();
    }

    /// It answers.
    pub(crate) fn up(&mut self) {
        self.down = None;
        self.is_reachable = true;
        self.failures = 0;
    }

    /// A scan found it away; says whether that is news.
    pub(crate) fn lost(&mut self, why: String) -> bool {
        let is_news = self.down.is_none();
        self.down = Some(why);
        self.is_reachable = false;
        self.is_check_wanted |= is_news;
        is_news
    }

    /// A scan took too long: somebody should see how it is.
    pub(crate) const fn suspect(&mut self) {
        self.is_check_wanted = true;
    }

    /// A check that began at `began_ns` failed. A scan answered meanwhile counts more: a busy clamd
    /// may let the question wait.
    pub(crate) fn check_failed(&mut self, why: String, began_ns: u64) {
        if self.answered_ns >= began_ns {
            return;
        }
        self.down = Some(why);
        self.is_reachable = false;
        self.failures = self.failures.saturating_add(1);
    }

    /// Takes the wish for a check.
    pub(crate) const fn take_check(&mut self) -> bool {
        std::mem::replace(&mut self.is_check_wanted, false)
    }

    /// Time until the next check if nobody asks for one.
    pub(crate) fn next_check(&self, interval: Duration) -> Duration {
        match self.failures {
            _ if self.down.is_none() => interval,
            0 => Duration::ZERO,
            failures => FIRST_BREAK
                .saturating_mul(1 << (failures - 1).min(10))
                .min(LONGEST_BREAK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_double_from_none_to_two_seconds() {
        let mut health = Health::default();
        let interval = Duration::from_secs(10);
        assert_eq!(health.next_check(interval), interval);
        assert!(health.lost("away".to_owned()));
        assert!(!health.lost("away".to_owned()), "no news");
        assert!(health.take_check() && !health.take_check());
        let mut breaks = Vec::new();
        for _ in 0..9 {
            breaks.push(health.next_check(interval).as_millis());
            health.check_failed("away".to_owned(), 1);
        }
        assert_eq!(breaks, [0, 50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(health.why_down(), Some("away"));
        health.up();
        assert!(health.is_reachable() && health.why_down().is_none());
        assert_eq!(health.next_check(interval), interval);
    }

    #[test]
    fn a_scan_answered_during_a_check_counts_more() {
        let mut health = Health::default();
        health.answered(20);
        health.check_failed("slow".to_owned(), 10);
        assert!(health.is_reachable());
        health.check_failed("slow".to_owned(), 21);
        assert_eq!(health.why_down(), Some("slow"));
    }
}
