//! Alerts: rules over the numbers of an interval, and where each rule stands.
//!
//! Pure: the caller brings the numbers of every closed interval and gets the changes. A rule fires
//! when its limit is broken in N intervals in a row and is resolved when the limit holds for N in a
//! row (its hysteresis). One slow request at night must not raise an alert, so an interval with too few samples
//! (see [`Rule`]) is judged together with those before it, as few as it takes and at most N of them, or
//! ten; where that is too little, or nothing came, it has no data and changes nothing. After N such
//! intervals in a row, or ten, the rule has no data: one that fired is not resolved by that.
//!
//! ```text
//! p95 of host shop > 500 ms for 3 intervals
//! 5xx share > 2 %
//! requests rate < 10 /s for 5 intervals
//! drops > 0
//! p99 of server 10.0.0.1:80 > 1 s
//! unanswered share of url shop/cart > 5 % min 50 samples
//! ```
//! and of flows
//! ```text
//! retransmissions share > 3 % for 2 intervals
//! p95 of rtt of server 10.0.0.1 > 200 ms
//! resets share of application tls > 10 %
//! active flows > 500000
//! ```
//! and of a gateway
//! ```text
//! infected rate > 0 /s
//! blocked rate of client 10.0.0.7 > 5 /s for 3 intervals
//! ```

mod rule;
mod sample;
mod watch;
mod words;

pub use rule::{Comparison, Metric, Rule, RuleError, Scope};
pub use sample::{Sample, Stat};
pub use watch::{AlertEvent, Numbers, Unjudged, Watch};
pub use words::{Measured, Words};

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of rules of a run: each costs a histogram per interval.
pub const MAX_RULES: usize = 64;

/// What became of the posts of a webhook.
#[derive(Debug, Default)]
pub struct WebhookCounts {
    /// Posts that were taken.
    pub delivered: AtomicU64,
    /// Posts that were given up.
    pub failed: AtomicU64,
    /// Attempts after the first.
    pub retries: AtomicU64,
    /// Events that were not posted: forgotten while the receiver was down, or left at the end.
    pub missed: AtomicU64,
    /// Why the first attempt that failed did.
    pub first_failure: OnceLock<String>,
}

impl WebhookCounts {
    /// Alerts that were not delivered, and why the first attempt that failed did.
    pub(crate) fn losses(&self) -> (u64, Option<&str>) {
        let lost = [&self.failed, &self.missed].map(|count| count.load(Ordering::Relaxed));
        (
            lost.iter().sum(),
            self.first_failure.get().map(String::as_str),
        )
    }
}
