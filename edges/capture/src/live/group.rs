//! The sockets that share an interface, and how they are opened again together.

use std::sync::{Mutex, PoisonError};

use linkweir_engine::SourceError;

use super::LiveOptions;
use super::open::wrong;

/// The members of a capture, and what opens the sockets of all.
///
/// The kernel numbers the sockets of a group in the order in which they joined. One that is opened
/// alone would join last, so who opens again opens for all, and the others find theirs here.
#[derive(Debug)]
pub(super) struct Group<T> {
    options: LiveOptions,
    open: fn(&LiveOptions) -> Result<Vec<T>, SourceError>,
    waiting: Mutex<Vec<Option<T>>>,
}

impl<T> Group<T> {
    pub(super) fn new(
        options: &LiveOptions,
        open: fn(&LiveOptions) -> Result<Vec<T>, SourceError>,
    ) -> Self {
        Self {
            options: options.clone(),
            open,
            waiting: Mutex::default(),
        }
    }

    /// New sockets for a member whose own are of no use any more.
    pub(super) fn reopen(&self, member: usize) -> Result<T, SourceError> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = waiting.get_mut(member).and_then(Option::take) {
            return Ok(opened);
        }
        // What nobody took belongs to an interface that is gone by now, and its memory is needed.
        waiting.clear();
        waiting.extend((self.open)(&self.options)?.into_iter().map(Some));
        waiting
            .get_mut(member)
            .and_then(Option::take)
            .ok_or_else(|| wrong(&self.options.interface, "has no such share".to_owned()))
    }
}
