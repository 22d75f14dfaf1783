//! A connection: its groups of packets, and what the stage would still know of it.
//!
//! The queue of unanswered requests is followed as [`crate::HttpStage`] follows it: by the match number at
//! which the next response would be looked for. What cannot be followed makes the connection
//! *unclear* until a request begins a new match number that no earlier one can come to; after that request
//! has been answered in order, groups begin again.

mod messages;

use linkweir_proto::http1::{Start, classify, empty_lines};
use linkweir_table::Chunks;
use linkweir_wire::{Tcp, TcpFlags};

use super::stream::{Bytes, End, Stream, ahead};
use super::{Balance, GroupCounts};
use crate::key::Connection;

/// Groups that are remembered of a connection, for packets that come late.
const GROUPS: usize = 8;

/// Further than this from what was expected (more than a window) is another connection.
const JUMP: u32 = 1 << 26;

/// Unanswered requests that are followed.
const MAX_OWED: u8 = 31;

/// Which end of the connection sent a segment: by the order of addresses and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Low,
    High,
}

/// Packets from these numbers on go to one shard, until the next group begins.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    low: u32,
    high: u32,
    hash: u32,
}

/// What a segment was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) hash: u32,
    pub(super) is_request: bool,
}

/// A segment with payload.
#[derive(Debug, Clone, Copy)]
struct Data<'a> {
    side: Side,
    seq: u32,
    end: u32,
    ack: u32,
    has_ack: bool,
    payload: &'a [u8],
    is_cut: bool,
    /// Whether it is the next of its stream.
    is_next: bool,
}

impl Data<'_> {
    fn at(&self, offset: usize) -> u32 {
        self.seq
            .wrapping_add(u32::try_from(offset).unwrap_or(u32::MAX))
    }

    const fn len(&self) -> usize {
        self.end.wrapping_sub(self.seq) as usize
    }
}

/// A connection that is followed.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) key: Connection,
    low: Stream,
    high: Stream,
    /// The newest first.
    groups: [Group; GROUPS],
    count: u8,
    /// Whether there were more groups than are remembered.
    has_forgotten: bool,
    client: Option<Side>,
    /// The number after the last opening SYN.
    opening: Option<u32>,
    /// Requests that wait for their responses in one queue, and the methods that are `HEAD`, the
    /// first in the lowest bit.
    owed: u8,
    heads: u32,
    /// The match number at which that queue waits.
    match_seq: u32,
    /// Where the first and the last request of the queue begin.
    first: u32,
    last: u32,
    /// Whether something since the queue began was not seen in order, or not understood.
    is_unclear: bool,
    /// Whether requests may wait at an unknown match number.
    is_tangled: bool,
    /// Whether segments may be missing from a stream.
    has_hole: bool,
    /// Where the stage may look for a request, and for a response, though none begins there.
    watched: Option<u32>,
    watched_answer: Option<u32>,
    was_request: bool,
}

impl Flow {
    pub(super) fn new(key: Connection) -> Self {
        Self {
            key,
            low: Stream::new(),
            high: Stream::new(),
            groups: [Group::default(); GROUPS],
            count: 0,
            has_forgotten: false,
            client: None,
            opening: None,
            owed: 0,
            heads: 0,
            match_seq: 0,
            first: 0,
            last: 0,
            is_unclear: true,
            is_tangled: false,
            has_hole: false,
            watched: None,
            watched_answer: None,
            was_request: false,
        }
    }

    pub(super) fn release(mut self, texts: &mut Chunks) {
        self.low.drop_head(texts);
        self.high.drop_head(texts);
    }

    /// Whether requests wait for their responses.
    pub(super) const fn owes(&self) -> bool {
        self.owed > 0
    }

    #[inline]
    const fn stream(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Low => &mut self.low,
            Side::High => &mut self.high,
        }
    }

    const fn other(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Low => &mut self.high,
            Side::High => &mut self.low,
        }
    }

    /// The hash of the group that is being sent.
    #[inline]
    pub(super) fn current(&self) -> Option<u32> {
        self.groups
            .first()
            .filter(|_| self.count > 0)
            .map(|group| group.hash)
    }

    /// The hash of the group that the byte at `seq` belongs to.
    #[inline]
    pub(super) fn route(&self, side: Side, seq: u32) -> u32 {
        let mut hash = 0;
        for group in self.groups.iter().take(usize::from(self.count)) {
            hash = group.hash;
            let begin = match side {
                Side::Low => group.low,
                Side::High => group.high,
            };
            if ahead(seq, begin) >= 0 {
                break;
            }
        }
        hash
    }

    /// Whether the byte at `seq` belongs to a group that is no longer remembered.
    fn is_forgotten(&self, side: Side, seq: u32) -> bool {
        self.has_forgotten
            && self.groups.last().is_some_and(|oldest| {
                let begin = match side {
                    Side::Low => oldest.low,
                    Side::High => oldest.high,
                };
                ahead(seq, begin) < 0
            })
    }

    /// The hash that a forgotten group had if the message in `data` was its first: both halves of a
    /// transaction that comes again much later meet, and where the first time was.
    fn recalled(&self, data: &Data<'_>, balance: Balance) -> u32 {
        let by_ack = match classify(data.payload) {
            Start::Request => true,
            Start::Response => false,
            Start::Unsure | Start::Neither => self.client == Some(data.side),
        };
        let match_seq = if by_ack { data.ack } else { data.seq };
        balance.hash(self.key.client, self.key.server, match_seq)
    }

    /// An opening SYN: unless it is an old one, what comes is another connection.
    pub(super) fn on_syn(&mut self, side: Side, seq: u32, texts: &mut Chunks) {
        let opening = Some(seq.wrapping_add(1));
        if self.opening != opening {
            self.restart(texts);
            self.opening = opening;
            self.client = Some(side);
        }
    }

    /// All that is known is void, but for the shard.
    fn restart(&mut self, texts: &mut Chunks) {
        self.low.drop_head(texts);
        self.high.drop_head(texts);
        let count = self.count.min(1);
        *self = Self {
            groups: self.groups,
            count,
            ..Self::new(self.key)
        };
    }

    /// Whether a segment only goes on with a body, as most do; takes note of it then.
    #[inline]
    pub(super) fn passes(&mut self, side: Side, tcp: &Tcp<'_>) -> bool {
        let stream = self.stream(side);
        let seq = tcp.seq().0;
        let end = seq.wrapping_add(tcp.payload_len);
        if seq != stream.next || !stream.is_known || tcp.flags().contains(TcpFlags::SYN) {
            return false;
        }
        let goes_on = match stream.end {
            End::At(at) => at != seq && ahead(at, end) >= 0,
            End::Chunks(_) => true,
            End::Unknown | End::Head => false,
        };
        if !goes_on || !is_body(tcp.payload) {
            return false;
        }
        if let End::Chunks(is_last) = &mut stream.end {
            *is_last = tcp.payload.len() == tcp.payload_len as usize
                && tcp.payload.ends_with(b"0\r\n\r\n");
        }
        stream.next = end;
        true
    }

    /// A segment with payload that is more than the next part of a body.
    pub(super) fn on_data(
        &mut self,
        side: Side,
        tcp: &Tcp<'_>,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) -> Seen {
        let is_syn = tcp.flags().contains(TcpFlags::SYN);
        let seq = tcp.seq().0.wrapping_add(u32::from(is_syn));
        let mut data = Data {
            side,
            seq,
            end: seq.wrapping_add(tcp.payload_len),
            ack: tcp.ack().0,
            has_ack: tcp.flags().contains(TcpFlags::ACK),
            payload: tcp.payload,
            is_cut: tcp.payload.len() < tcp.payload_len as usize,
            is_next: false,
        };
        let stream = self.stream(side);
        if is_syn || (stream.is_known && ahead(seq, stream.next).unsigned_abs() > JUMP) {
            self.restart(bytes.texts);
            // A request on a SYN has no match number: any response may answer it.
            self.is_tangled = is_syn;
        }
        self.was_request = false;
        self.place(&mut data, balance, bytes, counts);
        if self.count == 0 {
            let is_server = tcp.src_port() < tcp.dst_port();
            let match_seq = if is_server { data.seq } else { data.ack };
            self.open(balance, data.seq, data.seq, match_seq);
        }
        // What begins inside a body and ends behind it (bytes sent again, cut differently) says
        // nothing to the stage, where it knows all of them: so it goes to where the last are known.
        let from = if is_body(data.payload) {
            data.end.wrapping_sub(1)
        } else {
            // The line before a request may be the end of a head before it, cut differently.
            data.at(empty_lines(data.payload))
        };
        let hash = if self.is_forgotten(side, from) {
            self.recalled(&data, balance)
        } else {
            self.route(side, from)
        };
        Seen {
            hash,
            is_request: self.was_request,
        }
    }

    /// Looks where a segment stands in its stream.
    fn place(
        &mut self,
        data: &mut Data<'_>,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        let has_hole = self.has_hole;
        let is_current = self.count == 0 || self.is_current(data);
        let owed = self.owed;
        let stream = self.stream(data.side);
        if !stream.is_known {
            stream.expect(data.seq, bytes.texts);
        }
        let gap = ahead(data.seq, stream.next);
        if gap == 0 {
            data.is_next = true;
            stream.next = data.end;
            return self.on_next(data, balance, bytes, counts);
        }
        if gap < 0 && ahead(data.end, stream.next) <= 0 {
            // Seen before, unless it fills a hole.
            let is_head = !is_body(data.payload);
            let begin = data.at(empty_lines(data.payload));
            let is_again = [self.first, self.last].contains(&begin);
            if is_current && is_head {
                self.is_unclear = true;
                if has_hole && !is_again {
                    self.messages(data, 0, balance, bytes, counts);
                } else if !is_again && self.client != Some(other_side(data.side)) {
                    // To the stage it may be a request of its own.
                    self.is_tangled = true;
                }
            }
            return;
        }
        stream.drop_head(bytes.texts);
        let mut offset = 0;
        match stream.end {
            End::At(at) => {
                let inside = ahead(at, data.seq);
                if inside > 0 && ahead(at, data.end) < 0 {
                    offset = usize::try_from(inside).unwrap_or(0);
                } else if inside <= 0 {
                    stream.end = End::Unknown;
                }
            }
            _ => stream.end = End::Unknown,
        }
        let is_inside_body = matches!(stream.end, End::At(at) if ahead(at, data.end) >= 0);
        stream.next = data.end;
        self.is_unclear = true;
        self.has_hole = true;
        if owed > 1 && self.client != Some(data.side) {
            self.is_tangled = true;
        }
        if offset == 0 && is_body(data.payload) {
            if !is_inside_body {
                self.stream(data.side).end = End::Unknown;
            }
            return;
        }
        self.messages(data, offset, balance, bytes, counts);
    }

    fn is_current(&self, data: &Data<'_>) -> bool {
        self.groups.first().is_some_and(|group| {
            let begin = match data.side {
                Side::Low => group.low,
                Side::High => group.high,
            };
            ahead(data.seq, begin) >= 0
        })
    }

    /// The next segment of its stream.
    fn on_next(
        &mut self,
        data: &Data<'_>,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        let stream = self.stream(data.side);
        match stream.end {
            End::Head => self.go_on_with_head(data, balance, bytes, counts),
            End::At(at) => {
                let offset = usize::try_from(ahead(at, data.seq)).unwrap_or(0);
                let is_body = is_body(data.payload);
                if offset > 0 && !is_body {
                    // A body that looks like a message is one to the stage; and it goes on looking
                    // for one where the body was to end.
                    self.is_unclear = true;
                    if self.client == Some(data.side) {
                        self.watched = Some(later(self.watched, at));
                    } else {
                        self.is_tangled |= self.owed > 1;
                    }
                }
                if offset >= data.len() && offset > 0 {
                    if !is_body {
                        self.messages(data, 0, balance, bytes, counts);
                    }
                    return;
                }
                self.messages(data, offset, balance, bytes, counts);
            }
            End::Unknown | End::Chunks(_) => {
                if is_body(data.payload) {
                    stream.end = End::Unknown;
                } else {
                    self.messages(data, 0, balance, bytes, counts);
                }
            }
        }
    }

    /// Begins a group.
    fn open(&mut self, balance: Balance, low: u32, high: u32, match_seq: u32) {
        self.has_forgotten |= usize::from(self.count) == GROUPS;
        let hash = balance.hash(self.key.client, self.key.server, match_seq);
        self.groups.rotate_right(1);
        if let Some(group) = self.groups.first_mut() {
            *group = Group { low, high, hash };
        }
        self.count = (self.count + 1).min(u8::try_from(GROUPS).unwrap_or(u8::MAX));
    }
}

const fn other_side(side: Side) -> Side {
    match side {
        Side::Low => Side::High,
        Side::High => Side::Low,
    }
}

/// Whether no message begins with `payload`.
#[inline]
fn is_body(payload: &[u8]) -> bool {
    payload.is_empty() || (classify(payload) == Start::Neither && empty_lines(payload) == 0)
}

/// The later of two numbers.
fn later(one: Option<u32>, other: u32) -> u32 {
    one.filter(|one| ahead(*one, other) > 0).unwrap_or(other)
}
