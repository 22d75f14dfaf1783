//! The scans that gather or wait, and the bounds on them. No threads here: what happens is reported to
//! whoever holds the lock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linkweir_engine::effect::{ScanChunk, Ticket};

use crate::status::{Failure, FailureCause};

/// What a scan costs by itself, bytes: nothing that the network sends is free.
const SCAN_COST: usize = 256;
/// Bytes of a scan in memory above which they go to the spool directory.
pub(crate) const SPOOL_ABOVE: usize = 1 << 20;
/// A chunk below this is appended to the one before it, up to [`JOINED`].
const SMALL: usize = 16 << 10;
const JOINED: usize = 64 << 10;

/// The bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) scan_bytes: u64,
    pub(crate) memory_bytes: usize,
    pub(crate) spool_bytes: u64,
    /// Whether there is a spool directory.
    pub(crate) is_spooling: bool,
}

/// A scan, among those of all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) client: u64,
    pub(crate) ticket: Ticket,
}

/// Bytes of a scan in a file without a name.
#[derive(Debug)]
pub(crate) struct Spooled {
    pub(crate) file: File,
    pub(crate) length: u64,
}

/// What is to be scanned: first what is in the file, then the parts.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) spooled: Option<Spooled>,
    pub(crate) parts: Vec<Vec<u8>>,
    abandoned: Arc<AtomicBool>,
}

impl Body {
    /// Whether nobody waits for it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    fn push(&mut self, bytes: Vec<u8>) {
        match self.parts.last_mut() {
            _ if bytes.is_empty() => {}
            Some(last) if bytes.len() < SMALL && last.len() < JOINED => {
                last.extend_from_slice(&bytes);
            }
            _ => self.parts.push(bytes),
        }
    }
}

/// Where a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its last chunk has not come.
    Gathering,
    /// In the queue, at this place.
    Ready(u64),
    /// With a worker.
    Running,
}

#[derive(Debug)]
struct Scan {
    stage: Stage,
    body: Body,
    length: u64,
    /// Bytes in memory that count as its own.
    memory: usize,
    /// Bytes in its file.
    spooled: u64,
    /// When its last chunk came.
    last_ns: Option<u64>,
    /// Why it will not be scanned; its bytes are gone.
    refused: Option<Failure>,
    /// Its file is with the spooler, who will bring it back.
    is_with_spooler: bool,
    is_spool_wanted: bool,
}

/// A scan for a worker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: Key,
    pub(crate) body: Body,
    pub(crate) length: u64,
    pub(crate) last_ns: u64,
}

/// Parts for the spooler to append to a file.
#[derive(Debug)]
pub(crate) struct SpoolJob {
    pub(crate) key: Key,
    pub(crate) file: Option<Spooled>,
    pub(crate) parts: Vec<Vec<u8>>,
    memory: usize,
}

/// What is to be done after a step, outside of the lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// A worker has work.
    Work,
    /// The spooler has work.
    Spool,
    /// The scan has failed: last chunk at this time.
    Report(Failure, u64),
}

/// All scans.
#[derive(Debug)]
pub(crate) struct Queue {
    limits: Limits,
    scans: HashMap<Key, Scan>,
    ready: BTreeMap<u64, Key>,
    next_place: u64,
    to_spool: VecDeque<Key>,
    memory: usize,
    spooled: u64,
}

impl Queue {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            scans: HashMap::new(),
            ready: BTreeMap::new(),
            next_place: 0,
            to_spool: VecDeque::new(),
            memory: 0,
            spooled: 0,
        }
    }

    /// Scans that gather, wait or run.
    pub(crate) fn len(&self) -> usize {
        self.scans.len()
    }

    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    pub(crate) const fn spooled(&self) -> u64 {
        self.spooled
    }

    /// Takes a chunk in. A scan that breaks a bound loses its bytes at once and fails with its last
    /// chunk, because a report before it is not an answer to anything.
    pub(crate) fn add(&mut self, client: u64, chunk: ScanChunk, now_ns: u64) -> Next {
        let key = Key {
            client,
            ticket: chunk.ticket,
        };
        let is_new = !self.scans.contains_key(&key);
        let cost = chunk.bytes.len() + if is_new { SCAN_COST } else { 0 };
        let is_full = self.memory + cost > self.limits.memory_bytes;
        let limits = self.limits;
        let scan = self.scans.entry(key).or_insert_with(|| Scan {
            stage: Stage::Gathering,
            body: Body::default(),
            length: 0,
            memory: 0,
            spooled: 0,
            last_ns: None,
            refused: None,
            is_with_spooler: false,
            is_spool_wanted: false,
        });
        if scan.stage != Stage::Gathering || scan.last_ns.is_some() {
            // A chunk after the last one: a fault of the stage that must not change a verdict.
            return Next::Nothing;
        }
        scan.length += chunk.bytes.len() as u64;
        let refusal = if scan.length > limits.scan_bytes {
            let text = format!("longer than {} bytes, the longest scan", limits.scan_bytes);
            Some(Failure::new(FailureCause::TooLong, text))
        } else if is_full {
            let text = format!(
                "no room for it in the {} bytes that wait for the scanner (`memory`)",
                limits.memory_bytes
            );
            Some(Failure::new(FailureCause::QueueFull, text))
        } else {
            None
        };
        if chunk.is_last {
            scan.last_ns = Some(now_ns);
        }
        if scan.refused.is_none() {
            match refusal {
                Some(failure) => self.refuse(key, failure),
                None => {
                    scan.memory += cost;
                    self.memory += cost;
                    scan.body.push(chunk.bytes);
                }
            }
        }
        self.settle(key)
    }

    /// What a scan that has changed asks for.
    fn settle(&mut self, key: Key) -> Next {
        let Some(scan) = self.scans.get_mut(&key) else {
            return Next::Nothing;
        };
        match (scan.last_ns, &scan.refused) {
            (Some(last_ns), Some(_)) => {
                let failure = self.scans.remove(&key).and_then(|scan| scan.refused);
                failure.map_or(Next::Nothing, |failure| Next::Report(failure, last_ns))
            }
            (Some(_), None) if !scan.is_with_spooler => {
                scan.stage = Stage::Ready(self.next_place);
                self.ready.insert(self.next_place, key);
                self.next_place += 1;
                Next::Work
            }
            (None, None)
                if self.limits.is_spooling
                    && !scan.is_with_spooler
                    && !scan.is_spool_wanted
                    && scan.memory > SPOOL_ABOVE =>
            {
                scan.is_spool_wanted = true;
                self.to_spool.push_back(key);
                Next::Spool
            }
            _ => Next::Nothing,
        }
    }

    /// Lets the bytes of a scan go, and remembers why.
    fn refuse(&mut self, key: Key, failure: Failure) {
        if let Some(scan) = self.scans.get_mut(&key) {
            self.memory = self.memory.saturating_sub(scan.memory);
            self.spooled = self.spooled.saturating_sub(scan.spooled);
            scan.memory = 0;
            scan.spooled = 0;
            scan.body.parts = Vec::new();
            scan.body.spooled = None;
            scan.refused = Some(failure);
        }
    }

    /// Nobody waits for a scan any more; says whether there was one.
    pub(crate) fn abandon(&mut self, key: Key) -> bool {
        let Some(scan) = self.scans.get(&key) else {
            return false;
        };
        scan.body.abandoned.store(true, Ordering::Relaxed);
        match scan.stage {
            // Its worker takes it out, and with it its bytes.
            Stage::Running => {}
            Stage::Ready(place) => {
                self.ready.remove(&place);
                self.remove(key);
            }
            Stage::Gathering => self.remove(key),
        }
        true
    }

    /// A client is gone.
    pub(crate) fn abandon_all(&mut self, client: u64) {
        let of_client = |key: &&Key| key.client == client;
        let keys: Vec<Key> = self.scans.keys().filter(of_client).copied().collect();
        for key in keys {
            self.abandon(key);
        }
    }

    /// Every scan whose report is still owed, when the scanner ends.
    pub(crate) fn drain(&mut self) -> Vec<Key> {
        self.ready.clear();
        self.to_spool.clear();
        self.memory = 0;
        self.spooled = 0;
        let scans = self.scans.drain();
        scans
            .filter(|(_, scan)| !scan.body.is_abandoned())
            .map(|(key, _)| key)
            .collect()
    }

    fn remove(&mut self, key: Key) {
        if let Some(scan) = self.scans.remove(&key) {
            // Saturating: after `drain` the spooler and the workers still bring back what they had.
            self.memory = self.memory.saturating_sub(scan.memory);
            self.spooled = self.spooled.saturating_sub(scan.spooled);
        }
    }

    /// The scan that has waited longest.
    pub(crate) fn take(&mut self) -> Option<Job> {
        let (_, key) = self.ready.pop_first()?;
        let scan = self.scans.get_mut(&key)?;
        scan.stage = Stage::Running;
        let abandoned = Arc::clone(&scan.body.abandoned);
        let left = Body {
            abandoned,
            ..Body::default()
        };
        Some(Job {
            key,
            body: std::mem::replace(&mut scan.body, left),
            length: scan.length,
            last_ns: scan.last_ns.unwrap_or_default(),
        })
    }

    /// A worker is done with a scan; says whether somebody waits for its report.
    pub(crate) fn done(&mut self, key: Key) -> bool {
        let is_awaited = self
            .scans
            .get(&key)
            .is_some_and(|scan| !scan.body.is_abandoned());
        self.remove(key);
        is_awaited
    }

    /// Bytes for the spooler to write.
    pub(crate) fn take_spool(&mut self) -> Option<SpoolJob> {
        while let Some(key) = self.to_spool.pop_front() {
            let Some(scan) = self.scans.get_mut(&key) else {
                continue;
            };
            scan.is_spool_wanted = false;
            if scan.stage != Stage::Gathering || scan.last_ns.is_some() || scan.refused.is_some() {
                continue;
            }
            let memory = scan.memory.saturating_sub(SCAN_COST);
            if self.spooled + memory as u64 > self.limits.spool_bytes {
                self.refuse(
                    key,
                    Failure::new(FailureCause::Spool, "the spool directory is full"),
                );
                continue;
            }
            // The memory is in use until it is written, whatever becomes of the scan; the room in the
            // directory is taken now.
            scan.memory -= memory;
            scan.spooled += memory as u64;
            self.spooled += memory as u64;
            scan.is_with_spooler = true;
            return Some(SpoolJob {
                key,
                file: scan.body.spooled.take(),
                parts: std::mem::take(&mut scan.body.parts),
                memory,
            });
        }
        None
    }

    /// The spooler brings a scan's file back, or says why it cannot.
    pub(crate) fn spooled_back(
        &mut self,
        key: Key,
        memory: SpoolMemory,
        file: Result<Spooled, Failure>,
    ) -> Next {
        self.memory = self.memory.saturating_sub(memory.0);
        let Some(scan) = self.scans.get_mut(&key) else {
            return Next::Nothing;
        };
        scan.is_with_spooler = false;
        match file {
            _ if scan.refused.is_some() => {}
            Ok(file) => scan.body.spooled = Some(file),
            Err(failure) => self.refuse(key, failure),
        }
        self.settle(key)
    }
}

/// What a [`SpoolJob`] held in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpoolMemory(usize);

impl SpoolJob {
    pub(crate) const fn memory(&self) -> SpoolMemory {
        SpoolMemory(self.memory)
    }
}

#[cfg(test)]
mod tests;
