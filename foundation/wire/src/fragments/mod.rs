//! Reassembly of IP fragments: bounded in memory and time, whatever the network sends.
//!
//! [`Fragments`] takes frames of which [`Packet::is_fragment`](crate::Packet::is_fragment) says that they are a part of an IP packet,
//! and gives packets. The first bytes win where fragments overlap, in both versions of IP: a receiver of
//! version 6 would drop such a packet (RFC 5722), an observer must not lose it, and counts it.
//!
//! A packet of which a part never comes is given up after a while, or when memory is needed: what is
//! there from its start on is given then, as the first fragment it is.
//!
//! Memory: at most [`MAX_PACKETS`] packets and [`MAX_BYTES`] bytes. Source: RFC 791 sec. 3.2, RFC 815,
//! RFC 8200 sec. 4.5.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::decode;
use crate::decode::Fragment;
use crate::{LinkType, Timestamp};

mod whole;

pub use whole::Joined;
use whole::{HEAD, Head, Whole};

/// Packets that wait for parts at most.
pub const MAX_PACKETS: usize = 1024;
/// Bytes of waiting packets at most, as the kernel of Linux has it.
pub const MAX_BYTES: usize = 4 << 20;
/// How long a packet waits for its parts, from the first that came, as the kernel of Linux has it.
pub const TIMEOUT_NS: u64 = 30_000_000_000;
/// Separate runs of bytes of one packet; more come only from an attack.
pub const MAX_RUNS: usize = 32;

/// Packets in packets that are fragments again.
const MAX_NESTING: u8 = 4;
/// Longest packet (RFC 791 sec. 3.1).
const MAX_LEN: u32 = 65_535;
/// Buffers kept for the next packets.
const SPARE: usize = 8;

/// What became of fragments; merges by addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FragmentStats {
    /// Fragments of the packets that are whole or given up by now.
    pub fragments: u64,
    /// Packets reassembled.
    pub packets: u64,
    /// Fragments that had bytes of another one, which won.
    pub overlapping: u64,
    /// Fragments that no packet can have: beyond its end, of an impossible length.
    pub malformed: u64,
    /// Fragments that were left out because their packet was in [`MAX_RUNS`] separate runs already.
    pub scattered: u64,
    /// Packets given up because a part did not come in time, or before the end.
    pub incomplete: u64,
    /// Packets given up because there was no room for all.
    pub evicted: u64,
    /// Fragments of packets given up that are in no packet that was given.
    pub lost: u64,
}

impl FragmentStats {
    /// The counters by their names in summaries.
    #[must_use]
    pub const fn counters(&self) -> [(&'static str, u64); 8] {
        [
            ("fragments", self.fragments),
            ("packets", self.packets),
            ("overlapping", self.overlapping),
            ("malformed", self.malformed),
            ("scattered", self.scattered),
            ("incomplete", self.incomplete),
            ("evicted", self.evicted),
            ("lost", self.lost),
        ]
    }
}

impl std::ops::AddAssign for FragmentStats {
    fn add_assign(&mut self, other: Self) {
        self.fragments += other.fragments;
        self.packets += other.packets;
        self.overlapping += other.overlapping;
        self.malformed += other.malformed;
        self.scattered += other.scattered;
        self.incomplete += other.incomplete;
        self.evicted += other.evicted;
        self.lost += other.lost;
    }
}

/// What distinguishes the fragments of a packet from those of others (RFC 791 sec. 3.2, RFC 8200 sec. 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    src: IpAddr,
    dst: IpAddr,
    identification: u32,
    /// Of version 4 alone.
    protocol: u8,
}

/// A packet that waits for parts.
#[derive(Debug)]
struct Waiting {
    serial: u64,
    latest: Timestamp,
    vlan: Option<u16>,
    tunnels: u8,
    /// Room for the headers, then the data.
    buffer: Vec<u8>,
    /// The header of the first fragment, with its protocol.
    head: Option<(Head, u8)>,
    /// In order, not touching one another.
    runs: Vec<Run>,
    /// Length of the data, once the last fragment is there.
    total: Option<u32>,
    /// Up to here all that came was captured too.
    captured_to: u32,
    /// Fragments in it.
    parts: u64,
    /// Of these, those that had bytes of another one.
    overlapping: u64,
}

/// Bytes of data that are there without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    from: u32,
    to: u32,
    /// Fragments in it.
    parts: u64,
}

/// Whether a packet took a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    Impossible,
    Scattered,
}

/// When a packet began to wait.
#[derive(Debug, Clone, Copy)]
struct Turn {
    since: u64,
    serial: u64,
    key: Key,
}

/// IP packets in parts, on their way to be whole.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: HashMap<Key, Waiting>,
    /// In the order in which they began to wait.
    order: VecDeque<Turn>,
    /// Number of the packet that began last.
    serial: u64,
    /// Bytes of all buffers.
    bytes: usize,
    spare: Vec<Vec<u8>>,
    stats: FragmentStats,
}

impl Fragments {
    /// What was counted so far.
    #[must_use]
    pub const fn stats(&self) -> FragmentStats {
        self.stats
    }

    /// Takes a frame that is a fragment, captured at `now`; `each` gets the packets that this makes
    /// whole or gives up, and when their last part came.
    ///
    /// Units: `wire_len` as in [`decode()`].
    pub fn on_frame(
        &mut self,
        (link, frame, wire_len): (LinkType, &[u8], u32),
        now: Timestamp,
        mut each: impl FnMut(Joined<'_>),
    ) {
        self.expire(now, &mut each);
        let Some(fragment) = decode::fragment(link, frame, wire_len) else {
            return;
        };
        let mut whole = self.put(&fragment, now, &mut each);
        for _ in 1..MAX_NESTING {
            let Some(packet) = whole.take() else { return };
            let (start, len) = packet.place();
            let bytes = packet.buffer.get(start..).unwrap_or_default();
            let inner = decode::fragment(LinkType::RAW, bytes, len);
            match inner {
                Some(inner) => {
                    let inner = Fragment {
                        vlan: packet.vlan,
                        tunnels: packet.tunnels.saturating_add(inner.tunnels),
                        ..inner
                    };
                    whole = self.put(&inner, now, &mut each);
                }
                None => packet.give(&mut each),
            }
            self.give_back(packet.buffer);
        }
        if let Some(packet) = whole {
            packet.give(&mut each);
            self.give_back(packet.buffer);
        }
    }

    /// Time has come to `now`: gives up what has waited too long.
    pub fn expire(&mut self, now: Timestamp, mut each: impl FnMut(Joined<'_>)) {
        while let Some(&turn) = self.order.front()
            && turn.since.saturating_add(TIMEOUT_NS) < now.as_nanos()
        {
            self.order.pop_front();
            self.stats.incomplete += self.give_up(&turn, &mut each);
        }
    }

    /// Nothing more will come: gives up all that waits.
    pub fn finish(&mut self, mut each: impl FnMut(Joined<'_>)) {
        while let Some(turn) = self.order.pop_front() {
            self.stats.incomplete += self.give_up(&turn, &mut each);
        }
    }

    /// Gives what there is of a packet; 1 where it still waited.
    fn give_up(&mut self, turn: &Turn, each: &mut impl FnMut(Joined<'_>)) -> u64 {
        if !turn.is_live(&self.waiting) {
            return 0;
        }
        let Some(one) = self.waiting.remove(&turn.key) else {
            return 0;
        };
        self.bytes = self.bytes.saturating_sub(one.buffer.len());
        self.settle(&one);
        let parts = one.parts;
        match one.into_start() {
            Ok((start, given)) => {
                self.stats.lost += parts.saturating_sub(given);
                start.give(each);
                self.give_back(start.buffer);
            }
            Err(buffer) => {
                self.stats.lost += parts;
                self.give_back(buffer);
            }
        }
        1
    }

    /// Counts the fragments of a packet that leaves.
    fn settle(&mut self, one: &Waiting) {
        self.stats.fragments += one.parts;
        self.stats.overlapping += one.overlapping;
    }

    fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Files a fragment; gives the packet that is whole with it.
    fn put(
        &mut self,
        fragment: &Fragment<'_>,
        now: Timestamp,
        each: &mut impl FnMut(Joined<'_>),
    ) -> Option<Whole> {
        let end = fragment.offset.saturating_add(fragment.len);
        // All parts but the last are whole units of 8 bytes (RFC 791 sec. 3.1).
        let is_odd = fragment.has_more && (fragment.len == 0 || !fragment.len.is_multiple_of(8));
        let is_v4 = fragment.network.version() == 4;
        let header_len = if is_v4 { 20 } else { 0 };
        if is_odd || end.saturating_add(header_len) > MAX_LEN {
            self.stats.malformed += 1;
            return None;
        }
        let key = Key {
            src: fragment.network.src(),
            dst: fragment.network.dst(),
            identification: fragment.identification,
            protocol: if is_v4 { fragment.protocol } else { 0 },
        };
        if !self.waiting.contains_key(&key) {
            self.begin(key, fragment, now, each);
        }
        let one = self.waiting.get_mut(&key)?;
        let before = one.buffer.len();
        let taken = one.add(fragment, now);
        let grown = one.buffer.len().saturating_sub(before);
        let is_whole = one.is_whole();
        self.bytes = self.bytes.saturating_add(grown);
        self.stats.malformed += u64::from(taken == Taken::Impossible);
        self.stats.scattered += u64::from(taken == Taken::Scattered);
        if is_whole {
            let one = self.waiting.remove(&key)?;
            self.bytes = self.bytes.saturating_sub(one.buffer.len());
            self.settle(&one);
            self.stats.packets += 1;
            return one.into_whole();
        }
        while self.bytes > MAX_BYTES {
            let turn = self.order.pop_front()?;
            self.stats.evicted += self.give_up(&turn, each);
        }
        None
    }

    fn begin(
        &mut self,
        key: Key,
        first: &Fragment<'_>,
        now: Timestamp,
        each: &mut impl FnMut(Joined<'_>),
    ) {
        while self.waiting.len() >= MAX_PACKETS
            && let Some(turn) = self.order.pop_front()
        {
            self.stats.evicted += self.give_up(&turn, each);
        }
        // Packets that are whole have left their turns behind.
        if self.order.len() >= 2 * MAX_PACKETS {
            self.order.retain(|turn| turn.is_live(&self.waiting));
        }
        self.serial += 1;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(HEAD, 0);
        self.bytes += HEAD;
        self.order.push_back(Turn {
            since: now.as_nanos(),
            serial: self.serial,
            key,
        });
        let one = Waiting {
            serial: self.serial,
            latest: now,
            vlan: first.vlan,
            tunnels: first.tunnels,
            buffer,
            head: None,
            runs: Vec::new(),
            total: None,
            captured_to: MAX_LEN,
            parts: 0,
            overlapping: 0,
        };
        self.waiting.insert(key, one);
    }
}

impl Turn {
    /// Whether the packet still waits, and not another of the same key.
    fn is_live(&self, waiting: &HashMap<Key, Waiting>) -> bool {
        let one = waiting.get(&self.key);
        one.is_some_and(|one| one.serial == self.serial)
    }
}

impl Waiting {
    /// Adds a fragment.
    fn add(&mut self, fragment: &Fragment<'_>, now: Timestamp) -> Taken {
        let (start, end) = (fragment.offset, fragment.offset + fragment.len);
        let known_end = self.runs.last().map_or(0, |run| run.to);
        let is_beyond = match (self.total, fragment.has_more) {
            (Some(total), true) => end > total,
            (Some(total), false) => end != total,
            (None, true) => false,
            (None, false) => end < known_end,
        };
        if is_beyond {
            return Taken::Impossible;
        }
        let added = Run {
            from: start,
            to: end,
            parts: 1,
        };
        if self.runs.len() >= MAX_RUNS && !self.runs.iter().any(|run| run.touches(&added)) {
            return Taken::Scattered;
        }
        self.parts += 1;
        self.latest = self.latest.max(now);
        if !fragment.has_more {
            self.total = Some(end);
        }
        if start == 0 && self.head.is_none() {
            self.head = Head::of(&fragment.network).map(|head| (head, fragment.protocol));
        }
        let captured = u32::try_from(fragment.data.len()).unwrap_or(MAX_LEN);
        if captured < fragment.len {
            self.captured_to = self.captured_to.min(start.saturating_add(captured));
        }
        let needed = HEAD + end as usize;
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        let mut is_overlapping = false;
        let mut at = start;
        for run in &self.runs {
            if run.to <= at {
                continue;
            }
            if run.from >= end {
                break;
            }
            is_overlapping = true;
            copy(&mut self.buffer, fragment, at, run.from);
            at = at.max(run.to);
        }
        copy(&mut self.buffer, fragment, at, end);
        join(&mut self.runs, added);
        self.overlapping += u64::from(is_overlapping);
        Taken::Yes
    }

    fn is_whole(&self) -> bool {
        let total = self.total.unwrap_or(u32::MAX);
        let is_there = |run: &Run| (run.from, run.to) == (0, total);
        self.head.is_some() && self.runs.first().is_some_and(is_there)
    }

    fn into_whole(self) -> Option<Whole> {
        let (head, protocol) = self.head?;
        let len = self.total?;
        Some(self.headed(head, protocol, len, false))
    }

    /// The first `len` bytes of data as a packet, which may say that more follow.
    fn headed(mut self, head: Head, protocol: u8, len: u32, has_more: bool) -> Whole {
        let captured = HEAD + len.min(self.captured_to) as usize;
        self.buffer.truncate(captured);
        let (start, len) = head.write(&mut self.buffer, protocol, len, has_more);
        if let Some(vlan) = self.vlan {
            head.tag(&mut self.buffer, start, vlan);
        }
        Whole {
            buffer: self.buffer,
            start,
            len,
            vlan: self.vlan,
            tunnels: self.tunnels,
            at: self.latest,
        }
    }

    /// What is there from the start on, and of how many fragments; else the buffer.
    fn into_start(self) -> Result<(Whole, u64), Vec<u8>> {
        let run = self.runs.first().filter(|run| run.from == 0).copied();
        match (self.head, run) {
            (Some((head, protocol)), Some(run)) => {
                Ok((self.headed(head, protocol, run.to, true), run.parts))
            }
            _ => Err(self.buffer),
        }
    }
}

/// Writes the bytes of a fragment from `from` to `to`, places in the packet.
fn copy(buffer: &mut [u8], fragment: &Fragment<'_>, from: u32, to: u32) {
    let (first, last) = (
        from.saturating_sub(fragment.offset) as usize,
        to.saturating_sub(fragment.offset) as usize,
    );
    let data = fragment
        .data
        .get(first..last.min(fragment.data.len()))
        .unwrap_or_default();
    let place = HEAD + from as usize;
    if let Some(room) = buffer.get_mut(place..place + data.len()) {
        room.copy_from_slice(data);
    }
}

impl Run {
    const fn touches(&self, other: &Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

/// Adds a run; those it touches become one with it.
fn join(runs: &mut Vec<Run>, mut added: Run) {
    runs.retain(|run| {
        let touches = run.touches(&added);
        if touches {
            added = Run {
                from: added.from.min(run.from),
                to: added.to.max(run.to),
                parts: added.parts + run.parts,
            };
        }
        !touches
    });
    let place = runs.partition_point(|run| run.from < added.from);
    runs.insert(place, added);
}

#[cfg(test)]
mod tests;
