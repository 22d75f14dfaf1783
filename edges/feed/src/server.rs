//! The thread of a feeder that lets consumers in and notices when they go.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use linkweir_sys::shm::RingKeeper;

use crate::producer::notes;
use crate::socket::{BYE, Heard, accept_one, hear, parse_request, peer, say, say_with, wait_any};

/// Whether the thread is to end is looked at this often.
const LOOK_EVERY_MS: u32 = 50;
/// How long nobody is let in after that could not be done.
const REFUSED_BREAK: std::time::Duration = std::time::Duration::from_millis(100);
/// Connections that have not said what they want, at most.
const MOST_STRANGERS: usize = 64;

/// Where a consumer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nobody has asked for it yet.
    NotYet,
    /// It reads.
    Attached,
    /// It ended or was killed, and nobody has taken its place yet.
    Left,
}

/// What the feeding thread and the server know of one consumer.
#[derive(Debug)]
pub(crate) struct Slot {
    presence: AtomicU32,
    /// Process of the consumer that reads now, or read last.
    pub(crate) pid: AtomicU32,
    /// Consumers that were let in.
    pub(crate) attached: AtomicU64,
    /// Consumers that ended without saying so.
    pub(crate) killed: AtomicU64,
    /// Packets those had done with.
    pub(crate) taken_by_killed: AtomicU64,
    /// Of those, the ones whose records were perhaps not written.
    pub(crate) unwritten_by_killed: AtomicU64,
    keeper: Mutex<RingKeeper>,
    /// The ring was replaced: whoever reads the old one is to be cut off.
    cut_off: AtomicBool,
}

impl Slot {
    pub(crate) fn new(keeper: RingKeeper) -> Self {
        Self {
            presence: AtomicU32::new(0),
            pid: AtomicU32::new(0),
            attached: AtomicU64::new(0),
            killed: AtomicU64::new(0),
            taken_by_killed: AtomicU64::new(0),
            unwritten_by_killed: AtomicU64::new(0),
            keeper: Mutex::new(keeper),
            cut_off: AtomicBool::new(false),
        }
    }

    pub(crate) fn presence(&self) -> Presence {
        match self.presence.load(Acquire) {
            0 => Presence::NotYet,
            1 => Presence::Attached,
            _ => Presence::Left,
        }
    }

    /// Gives the next consumer another ring, and ends the one that reads now.
    pub(crate) fn replace(&self, keeper: RingKeeper) {
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = keeper;
        self.cut_off.store(true, Release);
    }

    fn with_keeper<R>(&self, then: impl FnOnce(&RingKeeper) -> R) -> R {
        then(&self.keeper.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A consumer's connection.
struct Guest {
    connection: OwnedFd,
    /// Which consumer it is, once it said so, and what its ring had given when it came.
    consumer: Option<(usize, u64)>,
}

/// The listening thread; ends when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(listener: OwnedFd, slots: Arc<[Slot]>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("feed-server".to_owned())
            .spawn(move || serve(&listener, &slots, &stopped))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Server {
    /// Ends it. What became of the consumers until now is noted in their slots.
    pub(crate) fn end(&mut self) {
        self.stop.store(true, Release);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            // It has ended, which is what was wanted.
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn serve(listener: &OwnedFd, slots: &[Slot], stop: &AtomicBool) {
    // What this process may be asked by: its own user, and the one who may do everything.
    let user = rustix::process::geteuid().as_raw();
    let mut guests: Vec<Guest> = Vec::new();
    while !stop.load(Acquire) {
        let sockets = std::iter::once(listener).chain(guests.iter().map(|guest| &guest.connection));
        if wait_any(sockets, LOOK_EVERY_MS).is_err() {
            return;
        }
        loop {
            match accept_one(listener) {
                Ok(Some(connection)) => guests.extend(welcome(connection, user, &guests)),
                Ok(None) => break,
                Err(_) => {
                    // Out of descriptors, say: whoever waits stays in line, and nothing spins.
                    linkweir_sys::wait::pause(REFUSED_BREAK);
                    break;
                }
            }
        }
        guests.retain_mut(|guest| attend(guest, slots));
        for (number, slot) in slots.iter().enumerate() {
            if slot.cut_off.swap(false, Acquire) {
                guests.retain(|guest| {
                    let is_it = guest
                        .consumer
                        .is_some_and(|(consumer, _)| consumer == number);
                    if is_it {
                        slot.killed.fetch_add(1, Relaxed);
                        slot.presence.store(2, Release);
                    }
                    !is_it
                });
            }
        }
    }
    // One that was killed since the last look is to be told of.
    guests.retain_mut(|guest| attend(guest, slots));
}

fn welcome(connection: OwnedFd, user: u32, guests: &[Guest]) -> Option<Guest> {
    let refuse = |text: &str| {
        if say(&connection, format!("no {text}").as_bytes()).is_err() {
            // It has gone already.
        }
    };
    match peer(&connection) {
        Ok((uid, _)) if uid == user || uid == 0 => {}
        _ => {
            refuse("the feeder runs for another user");
            return None;
        }
    }
    let strangers = guests.iter().filter(|guest| guest.consumer.is_none());
    if strangers.count() >= MOST_STRANGERS {
        refuse("too many connections");
        return None;
    }
    Some(Guest {
        connection,
        consumer: None,
    })
}

/// Hears what a guest says; whether it stays.
fn attend(guest: &mut Guest, slots: &[Slot]) -> bool {
    let said_bye = match hear(&guest.connection) {
        Heard::Nothing => return true,
        Heard::Gone => false,
        Heard::Text(text) => match guest.consumer {
            None => match let_in(&guest.connection, &text, slots) {
                Ok(consumer) => {
                    guest.consumer = Some(consumer);
                    return true;
                }
                Err(reason) => {
                    if say(&guest.connection, format!("no {reason}").as_bytes()).is_err() {
                        // It has gone already.
                    }
                    return false;
                }
            },
            Some(_) => text == BYE,
        },
    };
    if let Some((slot, before)) = guest
        .consumer
        .and_then(|(number, before)| Some((slots.get(number)?, before)))
    {
        slot.with_keeper(|keeper| {
            keeper.forget_reader();
            if !said_bye {
                let taken = keeper.reader_note(notes::TAKEN);
                // What those before it wrote says nothing of this one.
                let written = keeper.reader_note(notes::WRITTEN).max(before);
                slot.killed.fetch_add(1, Relaxed);
                slot.taken_by_killed
                    .fetch_add(taken.saturating_sub(before), Relaxed);
                slot.unwritten_by_killed
                    .fetch_add(taken.saturating_sub(written), Relaxed);
            }
        });
        slot.presence.store(2, Release);
    }
    false
}

/// Gives a guest its ring; the consumer's number and what its ring had given before.
fn let_in(connection: &OwnedFd, text: &[u8], slots: &[Slot]) -> Result<(usize, u64), String> {
    let asked = parse_request(text)? as usize;
    let count = slots.len();
    // Who counts from 1 to N is right too.
    let number = if asked == count { 0 } else { asked };
    let slot = slots.get(number).ok_or_else(|| {
        format!(
            "the feed has {count} consumers, 0 to {}: there is no {asked}",
            count - 1
        )
    })?;
    if slot.presence() == Presence::Attached {
        return Err(format!(
            "consumer {number} is attached already: process {}",
            slot.pid.load(Relaxed)
        ));
    }
    let pid = peer(connection).map_or(0, |(_, pid)| pid.unsigned_abs());
    let before = slot.with_keeper(|keeper| {
        let answer = format!("ok {count}");
        say_with(connection, &answer, keeper.files())
            .map(|()| keeper.reader_note(notes::TAKEN))
            .map_err(|error| error.to_string())
    })?;
    slot.pid.store(pid, Relaxed);
    slot.attached.fetch_add(1, Relaxed);
    slot.presence.store(1, Release);
    Ok((number, before))
}
