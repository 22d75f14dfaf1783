//! The last records, for those who want to see what happens and not only how often.
//!
//! Memory: at most twice [`MAX_LAST`] lines.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::api::Numbered;
use crate::kind::Kind;

/// Records of a list.
pub(super) const MAX_LAST: usize = 100;

/// A list of records, oldest first.
type List<K> = VecDeque<Arc<Numbered<<K as Kind>::Event>>>;

/// The last records of a run: the rare ones, and the routine ones in a list of their own.
#[derive(Debug)]
pub(super) struct Last<K: Kind> {
    rare: List<K>,
    routine: List<K>,
    /// How many there have been.
    count: u64,
}

impl<K: Kind> Default for Last<K> {
    fn default() -> Self {
        Self {
            rare: VecDeque::new(),
            routine: VecDeque::new(),
            count: 0,
        }
    }
}

impl<K: Kind> Last<K> {
    /// Takes the next record.
    pub(super) fn push(&mut self, event: K::Event) {
        self.count += 1;
        let id = self.count;
        let list = if K::is_routine(&event) {
            &mut self.routine
        } else {
            &mut self.rare
        };
        if list.len() >= MAX_LAST {
            list.pop_front();
        }
        list.push_back(Arc::new(Numbered { id, event }));
    }

    /// Both lists in the order in which the records came.
    pub(super) fn all(&self) -> Vec<Arc<Numbered<K::Event>>> {
        let mut all: Vec<_> = self.rare.iter().chain(&self.routine).cloned().collect();
        all.sort_unstable_by_key(|one| one.id);
        all
    }
}
