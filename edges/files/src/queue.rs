//! The queue of steps that wait for the disk, its limits, and the client that fills it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use linkweir_engine::effect::{FileEnd, FileId, FileOp, FileOrigin};

use crate::status::{FileStoreStatus, LossCause, Losses};

/// What a file costs in the queue by itself, bytes: its beginning and its end. Paid at the beginning,
/// so that there is always room for the end.
const FILE_COST: usize = 512;
/// What a piece of a file costs by itself.
const PIECE_COST: usize = 64;

/// A file, among those of all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) client: u64,
    pub(crate) id: FileId,
}

/// A step, as far as it was let in.
#[derive(Debug)]
pub(crate) enum Step {
    Begin(Box<FileOrigin>),
    Data(Vec<u8>),
    /// `is_cut` where pieces before it were not let in.
    End {
        end: FileEnd,
        is_cut: bool,
    },
}

/// A step in the queue, and what it frees when it is done.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) step: Step,
    pub(crate) cost: usize,
}

/// A file that has not ended for its client.
#[derive(Debug)]
struct Open {
    is_cut: bool,
    /// What its beginning has cost.
    cost: usize,
}

/// Steps in their order, bounded in bytes and open files.
#[derive(Debug)]
pub(crate) struct Queue {
    entries: VecDeque<Entry>,
    open: HashMap<Key, Open>,
    /// Costs of what waits, and of the files that are open.
    waiting: usize,
    /// The second part of that.
    reserved: usize,
    /// Steps that wait or are being done.
    steps: usize,
    buffer_bytes: usize,
    max_open: usize,
    pub(crate) lost: Losses,
}

impl Queue {
    pub(crate) fn new(buffer_bytes: usize, max_open: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            open: HashMap::new(),
            waiting: 0,
            reserved: 0,
            steps: 0,
            buffer_bytes,
            max_open,
            lost: Losses::default(),
        }
    }

    /// Bytes that wait.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting.saturating_sub(self.reserved)
    }

    /// Steps that wait.
    pub(crate) const fn steps(&self) -> usize {
        self.steps
    }

    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// Lets a step in or not; says whether the queue has grown.
    pub(crate) fn add(&mut self, client: u64, op: FileOp) -> bool {
        let key = |id| Key { client, id };
        match op {
            FileOp::Begin { id, origin } => self.begin(key(id), origin),
            FileOp::Data { id, bytes } => self.data(key(id), bytes),
            FileOp::End { id, end } => self.end(key(id), end),
        }
    }

    fn begin(&mut self, key: Key, origin: Box<FileOrigin>) -> bool {
        let texts = origin.name.len() + origin.application.len() + origin.stored_name.len();
        let cost = FILE_COST + texts;
        if self.open.contains_key(&key) {
            // An id is never used twice; a stage that does it loses the second file.
            self.lost.add(LossCause::NotBegun, 1, 0);
            return false;
        }
        if self.open.len() >= self.max_open {
            self.lost.add(LossCause::OpenLimit, 1, 0);
            return false;
        }
        if self.waiting + cost > self.buffer_bytes {
            self.lost.add(LossCause::Buffer, 1, 0);
            return false;
        }
        self.open.insert(
            key,
            Open {
                is_cut: false,
                cost,
            },
        );
        self.waiting += cost;
        self.reserved += cost;
        self.push(key, Step::Begin(origin), 0)
    }

    fn data(&mut self, key: Key, bytes: Vec<u8>) -> bool {
        let length = bytes.len() as u64;
        let Some(open) = self.open.get_mut(&key) else {
            self.lost.add(LossCause::NotBegun, 0, length);
            return false;
        };
        let cost = PIECE_COST + bytes.len();
        if open.is_cut || self.waiting + cost > self.buffer_bytes {
            let is_first = !std::mem::replace(&mut open.is_cut, true);
            self.lost.add(LossCause::Buffer, is_first.into(), length);
            return false;
        }
        if bytes.is_empty() {
            return false;
        }
        self.waiting += cost;
        self.push(key, Step::Data(bytes), cost)
    }

    fn end(&mut self, key: Key, end: FileEnd) -> bool {
        let Some(Open { is_cut, cost }) = self.open.remove(&key) else {
            return false;
        };
        self.reserved -= cost;
        self.push(key, Step::End { end, is_cut }, cost)
    }

    fn push(&mut self, key: Key, step: Step, cost: usize) -> bool {
        self.steps += 1;
        self.entries.push_back(Entry { key, step, cost });
        true
    }

    /// A client is gone: what it has not ended is a part.
    pub(crate) fn end_all(&mut self, client: u64) {
        let keys = self.open.keys().filter(|key| key.client == client);
        let keys: Vec<Key> = keys.copied().collect();
        for key in keys {
            self.end(key, FileEnd::KeepPart);
        }
    }

    /// All steps that wait, in their order.
    pub(crate) fn take(&mut self) -> VecDeque<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Steps are done, with these costs.
    pub(crate) const fn free(&mut self, steps: usize, cost: usize) {
        self.steps = self.steps.saturating_sub(steps);
        self.waiting = self.waiting.saturating_sub(cost);
    }
}

/// What the thread and the clients have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: Mutex<Queue>,
    /// Steps wait, or the end has come.
    pub(crate) work: Condvar,
    pub(crate) is_stopped: AtomicBool,
    /// As the thread last said.
    pub(crate) status: Mutex<FileStoreStatus>,
    pub(crate) notices: Mutex<Vec<String>>,
}

/// The lock, also after a thread has panicked with it: every state behind one is whole between calls.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands steps in; one for each thread that has a stage. Dropping it ends its files as parts.
#[derive(Debug)]
pub struct FileStoreClient {
    shared: Arc<Shared>,
    number: u64,
}

impl FileStoreClient {
    pub(crate) const fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self { shared, number }
    }

    /// Takes a step in without waiting for the disk. What breaks a bound is counted: a file that
    /// cannot begin is not recorded, one that cannot go on is cut and ends as a part.
    pub fn submit(&self, op: FileOp) {
        let mut queue = locked(&self.shared.queue);
        let has_grown = queue.add(self.number, op);
        drop(queue);
        if has_grown {
            self.shared.work.notify_one();
        }
    }
}

impl Drop for FileStoreClient {
    fn drop(&mut self) {
        locked(&self.shared.queue).end_all(self.number);
        self.shared.work.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_wire::Timestamp;
    use proptest::prelude::*;

    fn begin(id: u64) -> FileOp {
        let nobody = "0.0.0.0:0".parse().expect("an address");
        FileOp::Begin {
            id: FileId(id),
            origin: Box::new(FileOrigin {
                time: Timestamp::ZERO,
                sender: nobody,
                receiver: nobody,
                application: String::new(),
                name: Vec::new(),
                stored_name: "a".to_owned(),
            }),
        }
    }

    fn data(id: u64, length: usize) -> FileOp {
        FileOp::Data {
            id: FileId(id),
            bytes: vec![0; length],
        }
    }

    fn end(id: u64) -> FileOp {
        FileOp::End {
            id: FileId(id),
            end: FileEnd::Keep,
        }
    }

    #[test]
    fn over_the_bound_a_file_is_cut_and_stays_so() {
        let mut queue = Queue::new(2000, 10);
        assert!(queue.add(1, begin(1)) && queue.add(1, data(1, 1000)));
        assert!(!queue.add(1, data(1, 1000)));
        assert_eq!(queue.steps(), 2);
        let cost = queue.take().into_iter().map(|entry| entry.cost).sum();
        queue.free(2, cost);
        assert_eq!(
            (queue.steps(), queue.waiting()),
            (0, 0),
            "what an open file holds does not wait"
        );
        assert!(
            !queue.add(1, data(1, 10)),
            "there is room, but a hole before it"
        );
        assert!(queue.add(1, end(1)));
        let entries = queue.take();
        assert!(matches!(entries[0].step, Step::End { is_cut: true, .. }));
        queue.free(1, entries[0].cost);
        assert_eq!((queue.waiting, queue.open()), (0, 0));
        let lost = queue.lost.of(LossCause::Buffer);
        assert_eq!((lost.files, lost.bytes), (1, 1010));
    }

    #[test]
    fn too_many_are_refused_and_their_bytes_counted() {
        let mut queue = Queue::new(100_000, 1);
        assert!(queue.add(1, begin(1)));
        assert!(!queue.add(2, begin(1)));
        assert!(!queue.add(2, data(1, 7)) && !queue.add(2, end(1)));
        assert_eq!(queue.lost.of(LossCause::OpenLimit).files, 1);
        assert_eq!(queue.lost.of(LossCause::NotBegun).bytes, 7);
        queue.end_all(1);
        assert!(queue.add(2, begin(2)), "there is room again");
    }

    proptest! {
        #[test]
        fn the_bound_holds_and_ends_always_fit(steps in prop::collection::vec((0_u64..3, 0_u64..4, 0_usize..900, 0_u8..9), 1..200)) {
            let mut queue = Queue::new(4000, 3);
            for (client, id, length, what) in steps {
                match what {
                    0 | 1 => { queue.add(client, begin(id)); }
                    2..=5 => { queue.add(client, data(id, length)); }
                    6 => {
                        let before = queue.open();
                        let is_in = queue.add(client, end(id));
                        prop_assert_eq!(is_in, queue.open() < before);
                    }
                    7 => queue.end_all(client),
                    _ => for entry in queue.take() { queue.free(1, entry.cost); },
                }
                prop_assert!(queue.waiting <= 4000 && queue.open() <= 3);
            }
            for client in 0..3 { queue.end_all(client); }
            for entry in queue.take() { queue.free(1, entry.cost); }
            prop_assert_eq!((queue.waiting, queue.reserved, queue.steps()), (0, 0, 0));
        }
    }
}
