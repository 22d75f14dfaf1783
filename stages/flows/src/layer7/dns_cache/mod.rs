//! The names of servers, from what their clients asked DNS before (DN-Hunter; Bermudez et al., "DNS
//! to the Rescue", IMC 2012).
//!
//! An answer tells a client the addresses of a name; the flow that it then opens to one of them is to
//! that name. So the last answer for each pair of client and server is kept, and the time of its
//! question. An alias (CNAME) is followed from the name that was asked, which is the one that is kept:
//! it is what the user meant.
//!
//! Bounded: the oldest pairs leave, counted. An entry is 96 bytes; names stand one behind the other
//! in a ring of [`NAME_BYTES`] bytes for each entry, and what the ring overwrote is no longer known.
//! With 100,000 entries that is 12 MB when full; memory that was never used is never touched.
//! Cost: two cache misses for a look-up.

use std::net::IpAddr;

use linkweir_engine::hash::mix;
use linkweir_proto::dns::{Data, Message, Name};
use linkweir_table::Table;

/// Entries by default; Tstat has as many for IPv4.
pub const ENTRIES: usize = 100_000;
/// Bytes of names for each entry: the addresses of one answer share theirs.
const NAME_BYTES: usize = 24;
/// Questions without answer that are remembered at once.
const QUESTIONS: usize = 4096;
/// Addresses of one answer that are kept; more do not fit in an answer over UDP.
const ADDRESSES: usize = 64;
/// Records of one answer that are looked at.
const RECORDS: usize = 256;
/// A question that is asked again within this time is the same: the wait began with the first.
const REPEATED_NS: u64 = 10_000_000_000;

/// An address as 128 bits in two halves, IPv4 mapped (RFC 4291 section 2.5.5.2).
type Address = [u64; 2];

#[expect(clippy::cast_possible_truncation, reason = "halves")]
const fn bits(address: IpAddr) -> Address {
    let bits = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    [(bits >> 64) as u64, bits as u64]
}

fn address([high, low]: Address) -> IpAddr {
    IpAddr::V6((u128::from(high) << 64 | u128::from(low)).into()).to_canonical()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "folding is what a hash does"
)]
const fn hash(seed: u64, parts: [u64; 4]) -> u32 {
    let [a, b, c, d] = parts;
    let first = mix(a ^ seed).wrapping_add(b);
    let hash = mix(mix(first).wrapping_add(c.rotate_left(29)) ^ d);
    (hash ^ hash >> 32) as u32
}

/// What a client learned of a server.
#[derive(Debug, Clone)]
struct Entry {
    client: Address,
    server: Address,
    resolver: Address,
    /// 0: the question was not seen.
    request_ns: u64,
    response_ns: u64,
    name: NameId,
}

/// A question that waits for its answer.
#[derive(Debug, Clone)]
struct Question {
    client: Address,
    resolver: Address,
    port: u16,
    id: u16,
    time_ns: u64,
}

/// The name of a server, as its client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    /// The name that was asked, in lower case.
    pub name: &'a [u8],
    /// Who answered.
    pub resolver: IpAddr,
    /// When it was asked, nanoseconds since the epoch; `None`: the question was not seen.
    pub request_ns: Option<u64>,
    /// When the answer came, nanoseconds since the epoch.
    pub response_ns: u64,
}

/// What the cache did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DnsCounters {
    /// Questions seen.
    pub questions: u64,
    /// Answers that named at least one address.
    pub answers: u64,
    /// Messages of the port of DNS that are none, or whose question is broken.
    pub malformed: u64,
    /// Pairs that left for newer ones.
    pub evicted: u64,
    /// Questions that left for newer ones before their answer.
    pub questions_evicted: u64,
}

/// Which name each client knows for each server.
#[derive(Debug)]
pub struct DnsCache {
    entries: Table<Entry>,
    questions: Table<Question>,
    names: NameRing,
    seed: u64,
    asked: Name,
    alias: Name,
    owner: Name,
    counters: DnsCounters,
}

impl DnsCache {
    /// A cache for `entries` pairs of client and server; `seed` hides where they stand from who
    /// chooses them.
    #[must_use]
    pub fn new(entries: usize, seed: u64) -> Self {
        let entries = entries.clamp(1, 1 << 24);
        Self {
            entries: Table::with_capacity(entries),
            questions: Table::with_capacity(QUESTIONS.min(entries)),
            names: NameRing::new(entries * NAME_BYTES),
            seed,
            asked: Name::default(),
            alias: Name::default(),
            owner: Name::default(),
            counters: DnsCounters::default(),
        }
    }

    /// What it did so far.
    #[must_use]
    pub const fn counters(&self) -> DnsCounters {
        self.counters
    }

    /// Pairs in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was heard yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A message of DNS between a client and a resolver, in either direction (without the length
    /// that TCP has in front).
    pub fn hear(
        &mut self,
        client: IpAddr,
        client_port: u16,
        resolver: IpAddr,
        message: &[u8],
        ts_ns: u64,
    ) {
        let Some(message) = Message::parse(message) else {
            self.counters.malformed += 1;
            return;
        };
        if message.opcode() != 0 {
            return;
        }
        if message.is_response() {
            self.answer(client, client_port, resolver, &message, ts_ns);
        } else {
            self.question(client, client_port, resolver, &message, ts_ns);
        }
    }

    fn question(
        &mut self,
        client: IpAddr,
        port: u16,
        resolver: IpAddr,
        message: &Message<'_>,
        time_ns: u64,
    ) {
        self.counters.questions += 1;
        let question = Question {
            client: bits(client),
            resolver: bits(resolver),
            port,
            id: message.id(),
            time_ns,
        };
        let hash = self.hash_of_question(&question);
        if let Some(id) = self.find_question(hash, &question) {
            if let Some(known) = self.questions.get_mut(id)
                && time_ns.saturating_sub(known.time_ns) > REPEATED_NS
            {
                known.time_ns = time_ns;
                self.questions.refresh(id);
            }
            return;
        }
        if self.questions.is_full()
            && let Some((oldest, _)) = self.questions.oldest()
        {
            self.questions.remove(oldest);
            self.counters.questions_evicted += 1;
        }
        // There is room: one left if there was none.
        drop(self.questions.insert(hash, question));
    }

    fn answer(
        &mut self,
        client: IpAddr,
        port: u16,
        resolver: IpAddr,
        message: &Message<'_>,
        response_ns: u64,
    ) {
        let wanted = Question {
            client: bits(client),
            resolver: bits(resolver),
            port,
            id: message.id(),
            time_ns: 0,
        };
        let hash = self.hash_of_question(&wanted);
        let request_ns = self
            .find_question(hash, &wanted)
            .and_then(|id| self.questions.remove(id))
            .map(|question| question.time_ns)
            // An answer long after the question is that of another with the same identifier.
            .filter(|time_ns| response_ns.saturating_sub(*time_ns) <= REPEATED_NS * 3);
        let mut asked = std::mem::take(&mut self.asked);
        if message.question(&mut asked).is_none() {
            self.counters.malformed += 1;
        } else if message.response_code() == 0 && !asked.as_bytes().is_empty() {
            let entry = Entry {
                client: wanted.client,
                server: [0; 2],
                resolver: wanted.resolver,
                request_ns: request_ns.unwrap_or(0),
                response_ns,
                name: NameId::default(),
            };
            self.take_addresses(message, &asked, entry);
        }
        self.asked = asked;
    }

    /// Files the addresses of an answer: those of the name that was asked, and of what it is an alias
    /// of. Aliases stand before what they lead to (RFC 1034 section 4.3.2).
    fn take_addresses(&mut self, message: &Message<'_>, asked: &Name, entry: Entry) {
        let mut entry = entry;
        let mut alias = std::mem::take(&mut self.alias);
        let mut owner = std::mem::take(&mut self.owner);
        alias.clone_from(asked);
        let mut left = ADDRESSES;
        for record in message.answers().take(RECORDS).filter(|r| r.class == 1) {
            let server = match record.data {
                Data::A(v4) => IpAddr::V4(v4),
                Data::Aaaa(v6) => IpAddr::V6(v6),
                Data::Cname(target) => {
                    if message.read_name(record.owner, &mut owner) && owner == alias {
                        // A broken target leads nowhere: it is then empty.
                        let is_whole = message.read_name(target, &mut alias);
                        debug_assert!(is_whole || alias.as_bytes().is_empty());
                    }
                    continue;
                }
                Data::Name(..) | Data::Txt(_) | Data::Other(_) => continue,
            };
            // Names that are blocked lead to no address.
            if server.is_unspecified()
                || !message.read_name(record.owner, &mut owner)
                || owner != alias
            {
                continue;
            }
            if entry.name == NameId::default() {
                entry.name = self.names.push(asked.as_bytes());
                self.counters.answers += 1;
            }
            entry.server = bits(server);
            self.file(entry.clone());
            left -= 1;
            if left == 0 {
                break;
            }
        }
        self.alias = alias;
        self.owner = owner;
    }

    /// Puts a pair in, as the newest.
    fn file(&mut self, entry: Entry) {
        let hash = self.hash_of_pair(entry.client, entry.server);
        let known = self.entries.find(hash, |known| {
            known.server == entry.server && known.client == entry.client
        });
        if let Some(id) = known {
            if let Some(known) = self.entries.get_mut(id) {
                *known = entry;
            }
            self.entries.refresh(id);
            return;
        }
        if self.entries.is_full()
            && let Some((oldest, _)) = self.entries.oldest()
        {
            self.entries.remove(oldest);
            self.counters.evicted += 1;
        }
        // There is room: one left if there was none.
        drop(self.entries.insert(hash, entry));
    }

    /// The name that `client` was reported for `server`, last of all.
    #[inline]
    #[must_use]
    pub fn lookup(&self, client: IpAddr, server: IpAddr) -> Option<Named<'_>> {
        if self.entries.is_empty() {
            return None;
        }
        let (client, server) = (bits(client), bits(server));
        let hash = self.hash_of_pair(client, server);
        let id = self.entries.find(hash, |known| {
            known.server == server && known.client == client
        })?;
        let entry = self.entries.get(id)?;
        Some(Named {
            name: self.names.get(entry.name)?,
            resolver: address(entry.resolver),
            request_ns: Some(entry.request_ns).filter(|time| *time != 0),
            response_ns: entry.response_ns,
        })
    }

    #[inline]
    const fn hash_of_pair(&self, client: Address, server: Address) -> u32 {
        let ([a, b], [c, d]) = (client, server);
        hash(self.seed, [a, b, c, d])
    }

    const fn hash_of_question(&self, question: &Question) -> u32 {
        let ([a, b], [c, d]) = (question.client, question.resolver);
        let tag = (question.port as u64) << 16 | question.id as u64;
        hash(self.seed ^ tag, [a, b, c, d])
    }

    fn find_question(&self, hash: u32, wanted: &Question) -> Option<linkweir_table::Id> {
        self.questions.find(hash, |known| {
            known.id == wanted.id
                && known.port == wanted.port
                && known.client == wanted.client
                && known.resolver == wanted.resolver
        })
    }
}

// Names one behind the other in a ring that overwrites the oldest.

/// Bytes in front of a name: its length.
const LENGTH: usize = 1;
/// The longest name, and its length.
const MAX_BYTES: usize = 255 + LENGTH;

/// Names a name in a [`NameRing`], also when it is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct NameId(
    /// How many bytes had ever been written when it began, plus one; 0 is no name.
    u64,
);

/// Names in the order in which they came; the newest stand where the oldest stood.
///
/// Shape: `capacity` bytes, untouched until they are used.
#[derive(Debug)]
struct NameRing {
    bytes: Vec<u8>,
    /// Bytes ever written, gaps at the end of a round included.
    written: u64,
}

impl NameRing {
    fn new(capacity: usize) -> Self {
        Self {
            bytes: vec![0; capacity.max(2 * MAX_BYTES)],
            written: 0,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "smaller than the length of a vector"
    )]
    const fn place(&self, at: u64) -> usize {
        (at % self.bytes.len() as u64) as usize
    }

    /// Writes a name (its first 255 bytes).
    fn push(&mut self, name: &[u8]) -> NameId {
        let name = name.get(..MAX_BYTES - LENGTH).unwrap_or(name);
        let place = self.place(self.written);
        let left = self.bytes.len() - place;
        let mut at = self.written;
        if left < name.len() + LENGTH {
            // A name stands in one piece.
            at += left as u64;
        }
        let place = self.place(at);
        if let Some(room) = self.bytes.get_mut(place..)
            && let Some((length, room)) = room.split_first_mut()
            && let Some(room) = room.get_mut(..name.len())
        {
            *length = u8::try_from(name.len()).unwrap_or(u8::MAX);
            room.copy_from_slice(name);
        }
        self.written = at + (name.len() + LENGTH) as u64;
        NameId(at + 1)
    }

    /// The name, if it was not overwritten.
    #[inline]
    fn get(&self, id: NameId) -> Option<&[u8]> {
        let at = id.0.checked_sub(1)?;
        if self.written.checked_sub(at)? > self.bytes.len() as u64 {
            return None;
        }
        let (length, rest) = self.bytes.get(self.place(at)..)?.split_first()?;
        rest.get(..usize::from(*length))
    }
}

#[cfg(test)]
mod tests;
