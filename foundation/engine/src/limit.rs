//! How many packets may be taken, by one worker or by several together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Batch;

/// A number of packets that several threads take from.
#[derive(Debug, Clone, Default)]
pub struct Limit(Option<Arc<AtomicU64>>);

impl Limit {
    /// At most `packets`, or any number.
    #[must_use]
    pub fn new(packets: Option<u64>) -> Self {
        Self(packets.map(|packets| Arc::new(AtomicU64::new(packets))))
    }

    /// Whether nothing more may be taken.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }

    /// The part of `batch` that may still be taken; it then is.
    #[must_use]
    pub fn apply<'a>(&self, batch: Batch<'a>) -> Batch<'a> {
        let Some(left) = &self.0 else { return batch };
        let wanted = batch.len() as u64;
        let before = left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(wanted))
            })
            .unwrap_or_default();
        batch.first(usize::try_from(before).unwrap_or(usize::MAX))
    }
}
