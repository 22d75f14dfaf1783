//! What became of the alerts that a webhook was to deliver.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

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
    pub(super) fn losses(&self) -> (u64, Option<&str>) {
        let lost = [&self.failed, &self.missed].map(|count| count.load(Ordering::Relaxed));
        (
            lost.iter().sum(),
            self.first_failure.get().map(String::as_str),
        )
    }
}
