//! Handoffs between the shards of a stage, one thread each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use linkweir_record::RecordKind;

use crate::Stage;

/// How long a worker that has nothing to read waits for a handoff at a time.
const PATIENCE: Duration = Duration::from_millis(2);

/// Handoffs under way at most; with more, a shard keeps its own, where no counterpart finds them.
const MAX_UNDER_WAY: usize = 1 << 16;

type Batch<T> = <<T as Stage>::Record as RecordKind>::Batch;

/// One shard's mailbox: what it sends and gets.
#[derive(Debug)]
pub(crate) struct Mailbox<P> {
    inbox: Receiver<P>,
    outboxes: Vec<Sender<P>>,
    common: Arc<Common>,
    is_reading: bool,
}

#[derive(Debug)]
struct Common {
    /// Handoffs sent and not yet accepted with all that follows from them.
    under_way: AtomicUsize,
    /// Shards that still read input.
    reading: AtomicUsize,
    /// Whether a shard ended before its time: what was sent to it will never be accepted.
    is_short: AtomicBool,
}

impl<P> Mailbox<P> {
    /// The mailboxes of `shards` shards.
    pub(crate) fn all(shards: usize) -> Vec<Self> {
        let common = Arc::new(Common {
            under_way: AtomicUsize::new(0),
            reading: AtomicUsize::new(shards),
            is_short: AtomicBool::new(false),
        });
        let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..shards).map(|_| channel()).unzip();
        inboxes
            .into_iter()
            .map(|inbox| Self {
                inbox,
                outboxes: outboxes.clone(),
                common: Arc::clone(&common),
                is_reading: true,
            })
            .collect()
    }

    /// Sends what `stage` has for others, accepts what others have for it.
    pub(crate) fn exchange<T: Stage<Handoff = P>>(&self, stage: &mut T, out: &mut Batch<T>) {
        self.send(stage, out);
        while let Ok(handoff) = self.inbox.try_recv() {
            self.take(handoff, stage, out);
        }
    }

    /// No more input: goes on exchanging until no shard has anything for another.
    pub(crate) fn settle<T: Stage<Handoff = P>>(&mut self, stage: &mut T, out: &mut Batch<T>) {
        self.exchange(stage, out);
        self.leave();
        while self.common.reading.load(Ordering::Acquire) > 0
            || (self.common.under_way.load(Ordering::Acquire) > 0
                && !self.common.is_short.load(Ordering::Acquire))
        {
            if let Ok(handoff) = self.inbox.recv_timeout(PATIENCE) {
                self.take(handoff, stage, out);
            }
        }
    }

    fn take<T: Stage<Handoff = P>>(&self, handoff: P, stage: &mut T, out: &mut Batch<T>) {
        stage.accept(handoff, out);
        self.send(stage, out);
        self.common.under_way.fetch_sub(1, Ordering::AcqRel);
    }

    fn send<T: Stage<Handoff = P>>(&self, stage: &mut T, out: &mut Batch<T>) {
        while let Some((shard, handoff)) = stage.take_handoff() {
            let before = self.common.under_way.fetch_add(1, Ordering::AcqRel);
            let refused = match self.outboxes.get(shard).filter(|_| before < MAX_UNDER_WAY) {
                Some(outbox) => outbox.send(handoff).err().map(|error| error.0),
                None => Some(handoff),
            };
            if let Some(handoff) = refused {
                self.common.under_way.fetch_sub(1, Ordering::AcqRel);
                stage.accept(handoff, out);
            }
        }
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.is_reading) {
            self.common.reading.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl<P> Drop for Mailbox<P> {
    /// A shard that ends early must not keep the others waiting for it.
    fn drop(&mut self) {
        if self.is_reading {
            self.common.is_short.store(true, Ordering::Release);
            self.leave();
        }
    }
}
