//! Recent decisions: packets that were queued before the kernel knew of them still come.

use linkweir_engine::effect::Mark;
use linkweir_table::Table;
use linkweir_wire::Timestamp;

use super::Key;

/// How long a decision is remembered after its last packet.
const MEMORY_NS: u64 = 60_000_000_000;

/// A decided connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recent {
    key: Key,
    pub(crate) mark: Mark,
    last: Timestamp,
}

/// The recent decisions, a bounded number of them.
#[derive(Debug)]
pub(crate) struct RecentDecisions(Table<Recent>);

impl RecentDecisions {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(Table::with_capacity(capacity))
    }

    /// What was decided about a connection.
    pub(crate) fn find(&mut self, key: &Key, hash: u32, now: Timestamp) -> Option<Mark> {
        let id = self.0.find(hash, |recent| recent.key == *key)?;
        let recent = self.0.get_mut(id)?;
        if now.nanos_since(recent.last) > MEMORY_NS {
            self.0.remove(id);
            return None;
        }
        recent.last = now;
        let mark = recent.mark;
        self.0.refresh(id);
        Some(mark)
    }

    /// Remembers a decision; the oldest is evicted when the table is full.
    pub(crate) fn remember(&mut self, key: Key, hash: u32, mark: Mark, now: Timestamp) {
        self.forget(&key, hash);
        if self.0.is_full() {
            self.drop_oldest();
        }
        let recent = Recent {
            key,
            mark,
            last: now,
        };
        if self.0.insert(hash, recent).is_err() {
            // There is room: the oldest has left.
        }
    }

    /// Forgets a decision: the ports begin another connection.
    pub(crate) fn forget(&mut self, key: &Key, hash: u32) {
        if let Some(id) = self.0.find(hash, |recent| recent.key == *key) {
            self.0.remove(id);
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(id) = self.0.oldest().map(|(id, _)| id) {
            self.0.remove(id);
        }
    }

    /// Forgets what is long over.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        while let Some((id, recent)) = self.0.oldest() {
            if now.nanos_since(recent.last) <= MEMORY_NS {
                return;
            }
            self.0.remove(id);
        }
    }
}
