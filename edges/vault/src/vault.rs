//! The vault: its thread, from start to end.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use thiserror::Error;

use crate::client::VaultClient;
use crate::directory::Directory;
use crate::intake::{Entry, Intake};
use crate::keeper::Keeper;
use crate::options::VaultOptions;
use crate::stale::{At, recover};
use crate::status::{LossCause, VaultStatus};

/// Bytes after which the queue is told that they are written.
const FREE_AFTER: usize = 256 << 10;
/// Notices kept for who asks; more would be a fault of ours, for each is said once.
const MAX_NOTICES: usize = 64;

/// Why a vault did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VaultError {
    /// A directory cannot be made, opened or read.
    #[error("directory {path}: {source}")]
    Directory {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another run records into a directory.
    #[error("directory {0} is in use by another run")]
    InUse(PathBuf),
    /// The system gave no thread.
    #[error("vault: {0}")]
    System(io::Error),
}

/// What the thread and the clients have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) intake: Mutex<Intake>,
    /// Steps wait, or the end has come.
    pub(crate) work: Condvar,
    is_stopped: AtomicBool,
    /// As the thread last said.
    status: Mutex<VaultStatus>,
    notices: Mutex<Vec<String>>,
}

/// The lock, also after a thread has panicked with it: every state behind one is whole between calls.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records files on a thread of its own, `vault`. It is bound by what the thread that starts it has
/// given up; it writes to the two directories alone.
#[derive(Debug)]
pub struct Vault {
    shared: Arc<Shared>,
    next_client: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl Vault {
    /// Opens the directories, sees to what an earlier run has left, and starts the thread.
    ///
    /// # Errors
    /// A directory cannot be used, or another run uses it.
    pub fn start(options: VaultOptions) -> Result<Self, VaultError> {
        let mut directory = open(&options.directory)?;
        let quarantine = open(&options.quarantine)?;
        let at = |source| VaultError::Directory {
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
        let intake = Intake::new(options.buffer_bytes, options.max_open);
        let keeper = Keeper::new(options, directory, quarantine, interrupted);
        let shared = Arc::new(Shared {
            intake: Mutex::new(intake),
            work: Condvar::new(),
            is_stopped: AtomicBool::new(false),
            status: Mutex::new(keeper.status.clone()),
            notices: Mutex::default(),
        });
        let ours = Arc::clone(&shared);
        let thread = Builder::new()
            .name("vault".to_owned())
            .spawn(move || run(&ours, keeper))
            .map_err(VaultError::System)?;
        Ok(Self {
            shared,
            next_client: AtomicU64::new(0),
            thread: Some(thread),
        })
    }

    /// A client for one thread.
    #[must_use]
    pub fn client(&self) -> VaultClient {
        let number = self.next_client.fetch_add(1, Ordering::Relaxed);
        VaultClient::new(Arc::clone(&self.shared), number)
    }

    /// Counters, and how it is.
    #[must_use]
    pub fn status(&self) -> VaultStatus {
        // The steps first: then the counters are at least as new.
        let intake = locked(&self.shared.intake);
        let mut status = locked(&self.shared.status).clone();
        status.waiting_steps = intake.steps();
        status.open = intake.open();
        status.waiting_bytes = intake.waiting();
        for (cause, loss) in intake.lost.iter() {
            status.lost.add(cause, loss.files, loss.bytes);
        }
        status
    }

    /// What a person should know: each cause of loss the first time it comes, and that trouble with
    /// the disk is over. Said once.
    #[must_use]
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.shared.notices))
    }

    /// Writes what waits, ends open files as parts, and ends the thread; so does dropping the vault.
    /// What is submitted later is lost; the counters stay.
    pub fn finish(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        // The lock makes sure that the thread waits, or has yet to look.
        drop(locked(&self.shared.intake));
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread must not become one of the run.
            thread.join().ok();
        }
    }
}

impl Drop for Vault {
    fn drop(&mut self) {
        self.finish();
    }
}

fn open(path: &Path) -> Result<Directory, VaultError> {
    Directory::open(path).map_err(|source| VaultError::Directory {
        path: path.to_owned(),
        source,
    })
}

fn lock(directory: &mut Directory) -> Result<Arc<crate::directory::Dir>, VaultError> {
    let path = directory.path().to_owned();
    match directory.now().and_then(|dir| dir.lock().map(|()| dir)) {
        Ok(dir) => Ok(dir),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(VaultError::InUse(path)),
        Err(source) => Err(VaultError::Directory { path, source }),
    }
}

/// Does what waits until the end, and then ends what is open.
fn run(shared: &Shared, mut keeper: Keeper) {
    while let Some(entries) = next(shared, &mut keeper) {
        let (mut steps, mut cost) = (0, 0);
        for entry in entries {
            keeper.step(entry.key, entry.step);
            steps += 1;
            cost += entry.cost;
            if cost >= FREE_AFTER {
                show(shared, &mut keeper, steps, cost);
                (steps, cost) = (0, 0);
            }
        }
        show(shared, &mut keeper, steps, cost);
    }
    keeper.finish();
    show(shared, &mut keeper, 0, 0);
}

/// Waits for steps; `None` at the end, when there are none left.
fn next(shared: &Shared, keeper: &mut Keeper) -> Option<VecDeque<Entry>> {
    let mut intake = locked(&shared.intake);
    loop {
        let entries = intake.take();
        if !entries.is_empty() {
            let bounds = [
                (
                    LossCause::Buffer,
                    "the disk does not keep up, and files are cut",
                ),
                (LossCause::OpenLimit, "too many are open at the same time"),
            ];
            for (cause, text) in bounds {
                if intake.lost.of(cause).files > 0 {
                    keeper.say(cause, text);
                }
            }
            return Some(entries);
        }
        if shared.is_stopped.load(Ordering::Acquire) {
            return None;
        }
        intake = shared
            .work
            .wait(intake)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Lets others see how far it is.
fn show(shared: &Shared, keeper: &mut Keeper, steps: usize, cost: usize) {
    locked(&shared.status).clone_from(&keeper.status);
    if !keeper.notices.is_empty() {
        let mut notices = locked(&shared.notices);
        notices.append(&mut keeper.notices);
        notices.truncate(MAX_NOTICES);
    }
    locked(&shared.intake).free(steps, cost);
}
