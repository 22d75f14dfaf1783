//! The sockets that share an interface, and how they are opened again together.

use std::sync::{Arc, Mutex, PoisonError};

use linkweir_engine::SourceError;

use super::LiveOptions;
use super::open::{Opened, open_all, wrong};

/// The members of a capture.
///
/// The kernel numbers the sockets of a group in the order in which they joined. One that is opened
/// alone would join last, so who opens again opens for all, and the others find theirs here.
#[derive(Debug)]
pub(super) struct Group {
    options: LiveOptions,
    waiting: Mutex<Vec<Option<Opened>>>,
}

impl Group {
    /// Opens all sockets for the first time.
    pub(super) fn open(options: &LiveOptions) -> Result<(Arc<Self>, Vec<Opened>), SourceError> {
        let opened = open_all(options)?;
        let group = Self {
            options: options.clone(),
            waiting: Mutex::default(),
        };
        Ok((Arc::new(group), opened))
    }

    /// A new socket for a member whose socket is of no use any more.
    pub(super) fn reopen(&self, member: usize) -> Result<Opened, SourceError> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = waiting.get_mut(member).and_then(Option::take) {
            return Ok(opened);
        }
        // Rings that nobody took belong to an interface that is gone by now, and their memory is
        // needed.
        waiting.clear();
        waiting.extend(open_all(&self.options)?.into_iter().map(Some));
        waiting
            .get_mut(member)
            .and_then(Option::take)
            .ok_or_else(|| wrong(&self.options.interface, "has no such share".to_owned()))
    }
}
