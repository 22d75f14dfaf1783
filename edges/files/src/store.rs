//! The file store: its thread, from start to end.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use thiserror::Error;

use crate::directory::Directory;
use crate::options::FileStoreOptions;
use crate::queue::{Entry, FileStoreClient, Queue, Shared, locked};
use crate::recover::{At, recover};
use crate::status::{FileStoreStatus, LossCause};
use crate::writer::Writer;

/// Bytes written after which their room in the queue is freed.
const FREE_AFTER: usize = 256 << 10;
/// Maximum number of notices kept. Each is given once, so more would be a fault of ours.
const MAX_NOTICES: usize = 64;

/// Why a file store did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// A directory cannot be made, opened or read.
    #[error("directory {path}: {source}")]
    Directory {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another run records into a directory.
    #[error("directory {0} is in use by another run")]
    InUse(PathBuf),
    /// The thread could not be started.
    #[error("file store: {0}")]
    System(io::Error),
}

/// Records files on a thread of its own, `store`. It is bound by what the thread that starts it has
/// given up; it writes to the two directories alone.
#[derive(Debug)]
pub struct FileStore {
    shared: Arc<Shared>,
    next_client: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl FileStore {
    /// Opens the directories, completes or deletes what an earlier run left, and starts the thread.
    ///
    /// # Errors
    /// A directory cannot be used, or another run uses it.
    pub fn start(options: FileStoreOptions) -> Result<Self, FileStoreError> {
        let mut directory = open(&options.directory)?;
        let quarantine = open(&options.quarantine)?;
        let at = |source| FileStoreError::Directory {
            path: options.directory.clone(),
            source,
        };
        let is_one = directory.is_same(&quarantine).map_err(at)?;
        let mut quarantine = (!is_one).then_some(quarantine);
        let here = lock(&mut directory)?;
        let there = quarantine.as_mut().map(lock).transpose()?;
        let interrupted = recover(
            At {
                dir: &here,
                path: directory.path(),
            },
            quarantine
                .as_ref()
                .zip(there.as_deref())
                .map(|(directory, dir)| At {
                    dir,
                    path: directory.path(),
                }),
            options.stale,
        )
        .map_err(at)?;
        let queue = Queue::new(options.buffer_bytes, options.max_open);
        let writer = Writer::new(options, directory, quarantine, interrupted);
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            is_stopped: AtomicBool::new(false),
            status: Mutex::new(writer.status.clone()),
            notices: Mutex::default(),
        });
        let ours = Arc::clone(&shared);
        let thread = Builder::new()
            .name("vault".to_owned())
            .spawn(move || run(&ours, writer))
            .map_err(FileStoreError::System)?;
        Ok(Self {
            shared,
            next_client: AtomicU64::new(0),
            thread: Some(thread),
        })
    }

    /// A client for one thread.
    #[must_use]
    pub fn client(&self) -> FileStoreClient {
        let number = self.next_client.fetch_add(1, Ordering::Relaxed);
        FileStoreClient::new(Arc::clone(&self.shared), number)
    }

    /// Counters, and what waits.
    #[must_use]
    pub fn status(&self) -> FileStoreStatus {
        // The steps first: then the counters are at least as new.
        let queue = locked(&self.shared.queue);
        let mut status = locked(&self.shared.status).clone();
        status.waiting_steps = queue.steps();
        status.open = queue.open();
        status.waiting_bytes = queue.waiting();
        for (cause, loss) in queue.lost.iter() {
            status.lost.add(cause, loss.files, loss.bytes);
        }
        status
    }

    /// Messages for the user: the first loss of each cause, and the end of trouble with the disk. Each
    /// is given once.
    #[must_use]
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.shared.notices))
    }

    /// Writes what waits, ends open files as parts, and ends the thread; so does dropping the store.
    /// What is submitted later is lost; the counters stay.
    pub fn finish(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        // The lock makes sure that the thread waits, or has yet to look.
        drop(locked(&self.shared.queue));
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread must not become one of the run.
            thread.join().ok();
        }
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.finish();
    }
}

fn open(path: &Path) -> Result<Directory, FileStoreError> {
    Directory::open(path).map_err(|source| FileStoreError::Directory {
        path: path.to_owned(),
        source,
    })
}

fn lock(directory: &mut Directory) -> Result<Arc<crate::directory::Dir>, FileStoreError> {
    let path = directory.path().to_owned();
    match directory.now().and_then(|dir| dir.lock().map(|()| dir)) {
        Ok(dir) => Ok(dir),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(FileStoreError::InUse(path)),
        Err(source) => Err(FileStoreError::Directory { path, source }),
    }
}

/// Does the steps that wait, until the store stops; then ends the open files.
fn run(shared: &Shared, mut writer: Writer) {
    while let Some(entries) = next(shared, &mut writer) {
        let (mut steps, mut cost) = (0, 0);
        for entry in entries {
            writer.step(entry.key, entry.step);
            steps += 1;
            cost += entry.cost;
            if cost >= FREE_AFTER {
                show(shared, &mut writer, steps, cost);
                (steps, cost) = (0, 0);
            }
        }
        show(shared, &mut writer, steps, cost);
    }
    writer.finish();
    show(shared, &mut writer, 0, 0);
}

/// Waits for steps; `None` at the end, when there are none left.
fn next(shared: &Shared, writer: &mut Writer) -> Option<VecDeque<Entry>> {
    let mut queue = locked(&shared.queue);
    loop {
        let entries = queue.take();
        if !entries.is_empty() {
            let bounds = [
                (
                    LossCause::Buffer,
                    "the disk does not keep up, and files are cut",
                ),
                (LossCause::OpenLimit, "too many are open at the same time"),
            ];
            for (cause, text) in bounds {
                if queue.lost.of(cause).files > 0 {
                    writer.notify(cause, text);
                }
            }
            return Some(entries);
        }
        if shared.is_stopped.load(Ordering::Acquire) {
            return None;
        }
        queue = shared
            .work
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Publishes counters and notices, and frees the room of `steps`.
fn show(shared: &Shared, writer: &mut Writer, steps: usize, cost: usize) {
    locked(&shared.status).clone_from(&writer.status);
    if !writer.notices.is_empty() {
        let mut notices = locked(&shared.notices);
        notices.append(&mut writer.notices);
        notices.truncate(MAX_NOTICES);
    }
    locked(&shared.queue).free(steps, cost);
}
