//! A connection: its groups of packets, and what the stage would still know of it.
//!
//! The queue of unanswered requests is followed as [`crate::HttpStage`] follows it: by the link at
//! which the next response would be looked for. What cannot be followed makes the connection
//! *unclear* until a request begins a new link that no earlier one can come to; after that request
//! has been answered in order, groups begin again.

use linkweir_proto::http1::{
    BodyLength, Outcome, RequestHead, ResponseHead, Start, classify, parse_request, parse_response,
    request_body, response_body,
};
use linkweir_table::TextPool;
use linkweir_wire::{Tcp, TcpFlags};

use super::stream::{Bytes, End, Stream, ahead};
use super::{Balance, GroupCounts};
use crate::halves::measured;
use crate::key::Connection;

/// Groups that are remembered of a connection, for packets that come late.
const GROUPS: usize = 4;

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
    client: Option<Side>,
    /// The number after the last opening SYN.
    opening: Option<u32>,
    /// Requests that wait for their responses in one queue, and the methods that are `HEAD`, the
    /// first in the lowest bit.
    owed: u8,
    heads: u32,
    /// The link at which that queue waits.
    link: u32,
    /// Where the first and the last request of the queue begin.
    first: u32,
    last: u32,
    /// Whether something since the queue began was not seen in order, or not understood.
    is_unclear: bool,
    /// Whether requests may wait where nobody can tell.
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
            client: None,
            opening: None,
            owed: 0,
            heads: 0,
            link: 0,
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

    pub(super) fn release(mut self, texts: &mut TextPool) {
        self.low.drop_head(texts);
        self.high.drop_head(texts);
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

    /// An opening SYN: unless it is an old one, what comes is another connection.
    pub(super) fn on_syn(&mut self, side: Side, seq: u32, texts: &mut TextPool) {
        let opening = Some(seq.wrapping_add(1));
        if self.opening != opening {
            self.restart(texts);
            self.opening = opening;
            self.client = Some(side);
        }
    }

    /// All that is known is void, but for the shard.
    fn restart(&mut self, texts: &mut TextPool) {
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
            // A request on a SYN has no link: any response may answer it.
            self.is_tangled = is_syn;
        }
        self.was_request = false;
        self.place(&mut data, balance, bytes, counts);
        if self.count == 0 {
            let is_server = tcp.src_port() < tcp.dst_port();
            let link = if is_server { data.seq } else { data.ack };
            self.open(balance, data.seq, data.seq, link);
        }
        // What begins inside a body and ends behind it (bytes sent again, cut differently) says
        // nothing to the stage, where it knows all of them: so it goes to where the last are known.
        let from = if is_body(data.payload) {
            data.end.wrapping_sub(1)
        } else {
            data.seq
        };
        Seen {
            hash: self.route(side, from),
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
            let is_again = [self.first, self.last].contains(&data.seq);
            if is_current && is_head {
                self.is_unclear = true;
                if has_hole && !is_again {
                    self.messages(data, 0, balance, bytes, counts);
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
                        self.watched = Some(at);
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

    /// More of a head whose beginning was kept.
    fn go_on_with_head(
        &mut self,
        data: &Data<'_>,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        let stream = self.stream(data.side);
        let known = stream.head.len();
        if !stream.gather(data.payload, bytes.texts) {
            self.is_unclear = true;
            return;
        }
        let mut whole = std::mem::take(bytes.scratch);
        whole.clear();
        bytes.texts.copy_to(&stream.head, &mut whole);
        stream.drop_head(bytes.texts);
        let known_len = u32::try_from(known).unwrap_or(0);
        let joined = Data {
            seq: data.seq.wrapping_sub(known_len),
            payload: &whole,
            is_next: false,
            ..*data
        };
        if self.client == Some(data.side) {
            // The request was counted when it began: only its end was missing.
            self.end_of_request(&joined, known, bytes);
        } else {
            self.messages(&joined, 0, balance, bytes, counts);
        }
        *bytes.scratch = whole;
    }

    /// The head of a request that began in an earlier segment, of which `known` bytes were seen.
    fn end_of_request(&mut self, joined: &Data<'_>, known: usize, bytes: &mut Bytes<'_>) {
        match parse_request(joined.payload) {
            Outcome::Complete(head, len) if len > known => {
                let body = joined.payload.get(len..).unwrap_or_default();
                let after = request_end(&head, len, body);
                if head.method == b"CONNECT" {
                    self.is_tangled = true;
                }
                let end = match after {
                    Some(after) if after >= joined.len() => End::At(joined.at(after)),
                    // Another one begins in this segment.
                    _ => End::Unknown,
                };
                if end == End::Unknown {
                    self.is_unclear = true;
                    self.is_tangled |= after.is_some();
                }
                self.stream(joined.side).end = end;
            }
            Outcome::Partial(_) if !joined.is_cut => {
                if !self.stream(joined.side).gather(joined.payload, bytes.texts) {
                    self.is_unclear = true;
                }
            }
            _ => {
                self.is_unclear = true;
                self.stream(joined.side).end = End::Unknown;
            }
        }
    }

    /// Reads message after message from `offset` on, as the stage does.
    fn messages(
        &mut self,
        data: &Data<'_>,
        mut offset: usize,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        while let Some(rest) = data.payload.get(offset..) {
            if rest.is_empty() {
                let end = if data.is_cut {
                    End::Unknown
                } else {
                    End::At(data.end)
                };
                self.is_unclear |= data.is_cut;
                self.set_end(data, end);
                return;
            }
            let after = match classify(rest) {
                Start::Request => self.on_request(data, offset, rest, balance, bytes, counts),
                Start::Response => self.on_response(data, offset, rest, bytes),
                Start::Unsure => {
                    self.is_unclear = true;
                    self.is_tangled = true;
                    None
                }
                Start::Neither => {
                    self.is_unclear = true;
                    self.set_end(data, End::Unknown);
                    None
                }
            };
            let Some(after) = after.and_then(|after| offset.checked_add(after)) else {
                return;
            };
            if after >= data.len() {
                self.set_end(data, End::At(data.at(after)));
                return;
            }
            offset = after;
        }
        // Behind what was captured.
        self.is_unclear = true;
        self.set_end(data, End::Unknown);
    }

    /// Notes where the message ends that a segment at the end of its stream began or went on with.
    fn set_end(&mut self, data: &Data<'_>, end: End) {
        let stream = self.stream(data.side);
        if stream.next == data.end {
            stream.end = end;
        }
    }

    /// A request at `offset`; says how long it is, where that is known and the stage goes on.
    fn on_request(
        &mut self,
        data: &Data<'_>,
        offset: usize,
        rest: &[u8],
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) -> Option<usize> {
        if *self.client.get_or_insert(data.side) != data.side {
            self.is_unclear = true;
            self.is_tangled = true;
            return None;
        }
        let outcome = parse_request(rest);
        let (head, len) = match outcome {
            Outcome::Complete(head, len) => (head, Some(len)),
            Outcome::Partial(head) => (head, None),
            Outcome::Invalid => {
                self.is_unclear = true;
                self.set_end(data, End::Unknown);
                return None;
            }
        };
        self.ask(data, offset, head.method == b"HEAD", balance, bytes, counts);
        if head.method == b"CONNECT" {
            self.is_tangled = true;
        }
        let Some(len) = len else {
            self.set_end(data, End::Unknown);
            let is_last = self.stream(data.side).next == data.end;
            if data.is_cut || !is_last || !self.stream(data.side).gather(rest, bytes.texts) {
                self.is_unclear = true;
            }
            return None;
        };
        let body = rest.get(len..).unwrap_or_default();
        let end = request_end(&head, len, body);
        if end.is_none() {
            // Chunks in segments to come: the next request is known by its place in a segment.
            self.set_end(data, End::Chunks(false));
        }
        end
    }

    /// A request begins at `offset` of a segment: does a group begin with it?
    fn ask(
        &mut self,
        data: &Data<'_>,
        offset: usize,
        is_head: bool,
        balance: Balance,
        bytes: &mut Bytes<'_>,
        counts: &mut GroupCounts,
    ) {
        self.was_request = true;
        counts.requests += 1;
        let at = data.at(offset);
        let is_plain = offset == 0 && data.is_next && data.has_ack;
        let server = self.other(data.side);
        let is_answered_whole = server.is_known && server.next == data.ack && server.is_at_end();
        let is_early = server.is_known && ahead(server.next, data.ack) > 0;
        let is_inside =
            matches!(server.end, End::At(end) if server.is_known && ahead(end, data.ack) > 0);
        if !data.has_ack || self.owed >= MAX_OWED {
            self.is_tangled = true;
        }
        let is_behind = self.owed > 1 || (self.owed == 1 && ahead(data.ack, self.link) <= 0);
        let is_late =
            self.owed == 0 && self.count > 0 && !self.is_unclear && ahead(data.ack, self.link) < 0;
        if is_behind || is_late {
            if self.owed > 1 && ahead(data.ack, self.link) > 0 {
                // Some of those before it may have been moved on to this link.
                self.is_tangled |= self.has_hole || self.is_unclear;
            }
            counts.pipelined += 1;
            self.heads |= u32::from(is_head) << self.owed.min(MAX_OWED);
            self.owed = self.owed.saturating_add(1).min(MAX_OWED);
            self.last = at;
            if is_late {
                (self.heads, self.first) = (u32::from(is_head), at);
                self.is_unclear = true;
            }
            return;
        }
        if self.count == 0 {
            self.open(balance, at, data.ack, data.ack);
        } else if self.is_unclear || self.is_tangled || !is_plain {
            counts.unclear += 1;
        } else if self.owed > 0 || !is_answered_whole {
            counts.unfinished += 1;
        } else {
            counts.groups += 1;
            let (low, high) = match data.side {
                Side::Low => (at, data.ack),
                Side::High => (data.ack, at),
            };
            self.open(balance, low, high, data.ack);
        }
        self.watched = self.watched.filter(|end| ahead(*end, at) > 0);
        self.watched_answer = self.watched_answer.filter(|end| ahead(*end, data.ack) > 0);
        let is_watched = self.watched.or(self.watched_answer).is_some();
        self.is_unclear = is_watched || !is_plain || self.is_tangled || is_early || is_inside;
        self.has_hole &= self.is_unclear;
        (self.owed, self.heads, self.link) = (1, u32::from(is_head), data.ack);
        (self.first, self.last) = (at, at);
        if !self.is_unclear {
            self.other(data.side).expect(data.ack, bytes.texts);
        }
    }

    /// Begins a group.
    fn open(&mut self, balance: Balance, low: u32, high: u32, link: u32) {
        let hash = balance.hash(self.key.client, self.key.server, link);
        self.groups.rotate_right(1);
        if let Some(group) = self.groups.first_mut() {
            *group = Group { low, high, hash };
        }
        self.count = (self.count + 1).min(u8::try_from(GROUPS).unwrap_or(u8::MAX));
    }

    /// A response at `offset`; says how long it is, where that is known.
    fn on_response(
        &mut self,
        data: &Data<'_>,
        offset: usize,
        rest: &[u8],
        bytes: &mut Bytes<'_>,
    ) -> Option<usize> {
        let client = match data.side {
            Side::Low => Side::High,
            Side::High => Side::Low,
        };
        if *self.client.get_or_insert(client) != client {
            self.is_unclear = true;
            self.is_tangled = true;
            return None;
        }
        match parse_response(rest) {
            Outcome::Complete(head, len) => {
                let body = rest.get(len..).unwrap_or_default();
                self.answer(data, data.at(offset), &head, len, body)
            }
            Outcome::Partial(_) => {
                self.set_end(data, End::Unknown);
                let is_last = self.stream(data.side).next == data.end;
                if data.is_cut || !is_last || !self.stream(data.side).gather(rest, bytes.texts) {
                    self.is_unclear = true;
                    self.is_tangled |= self.owed > 1;
                }
                None
            }
            Outcome::Invalid => {
                self.is_unclear = true;
                self.set_end(data, End::Unknown);
                None
            }
        }
    }

    /// A whole response head at `at`: takes the first request of the queue.
    fn answer(
        &mut self,
        data: &Data<'_>,
        at: u32,
        head: &ResponseHead<'_>,
        len: usize,
        body: &[u8],
    ) -> Option<usize> {
        let is_matched =
            self.owed > 0 && at == self.link && (!data.has_ack || ahead(data.ack, self.first) > 0);
        if !is_matched {
            self.is_unclear = true;
        }
        if head.is_interim() {
            if is_matched {
                self.link = at.wrapping_add(u32::try_from(len).unwrap_or(0));
            }
            return Some(len);
        }
        let method: &[u8] = if is_matched && self.heads & 1 == 1 {
            b"HEAD"
        } else {
            b""
        };
        let rule = response_body(head, method);
        let end = measured(rule, body)
            .and_then(|length| usize::try_from(length).ok())
            .and_then(|length| length.checked_add(len));
        if !is_matched && let Some(end) = end {
            self.watched_answer = Some(at.wrapping_add(u32::try_from(end).unwrap_or(0)));
        }
        if is_matched {
            self.owed -= 1;
            self.heads >>= 1;
            match end {
                Some(end) => self.link = at.wrapping_add(u32::try_from(end).unwrap_or(0)),
                // The rest of the queue is never found again.
                None if self.owed > 0 => {
                    self.owed = 0;
                    self.is_unclear = true;
                }
                None => {}
            }
        }
        if end.is_none() {
            let rest = match rule {
                BodyLength::Chunked => End::Chunks(false),
                _ => End::Unknown,
            };
            self.is_unclear |= rest == End::Unknown;
            self.set_end(data, rest);
        }
        end.filter(|end| *end < 1 << 31)
    }
}

/// Whether no message begins with `payload`.
#[inline]
fn is_body(payload: &[u8]) -> bool {
    payload.is_empty() || classify(payload) == Start::Neither
}

/// Bytes of a request whose head has `len`, where they are known.
fn request_end(head: &RequestHead<'_>, len: usize, body: &[u8]) -> Option<usize> {
    let length = usize::try_from(measured(request_body(head), body)?).ok()?;
    len.checked_add(length).filter(|end| *end < 1 << 31)
}
