//! The streams of an HTTP/3 connection (RFC 9114): in order each, frame by frame.

use std::collections::VecDeque;

use linkweir_keys::StreamPart;
use linkweir_proto::http2::direction::{Headers, Listener as _, MAX_BLOCK};
use linkweir_proto::http2::hpack::Strings;
use linkweir_proto::http3::frame::{FrameHeader, Kind, Purpose, purpose, table_capacity};
use linkweir_proto::http3::qpack::{Decoder, Section};
use linkweir_stream::{InOrder, Piece, Segment};
use linkweir_wire::{SeqNumber, Side};

use super::Late;
use super::streams::{Ear, Listening, MAX_STREAMS, Streams};

/// Streams of a side that go in one direction and are read: control, encoder, and some that come to nothing.
const MAX_ONE_WAY: usize = 16;
/// Bytes of a stream that wait behind a field section which names entries that are not inserted yet.
const MAX_BEHIND: usize = 64 << 10;

/// Bytes of a stream in the order of their offsets, of which the lower half counts: no two in one window are so far
/// apart.
#[derive(Debug)]
struct Bytes {
    order: InOrder,
    /// Behind the last byte, where that is known.
    end: Option<SeqNumber>,
}

impl Bytes {
    const fn new() -> Self {
        Self {
            order: InOrder::new(SeqNumber(0)),
            end: None,
        }
    }

    fn take(&mut self, part: &StreamPart<'_>, late: &mut Late, deliver: impl FnMut(Piece<'_>)) {
        let len = u32::try_from(part.bytes.len()).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "the lower half counts")]
        let seq = SeqNumber(part.offset as u32);
        if part.is_last {
            self.end = Some(SeqNumber(seq.0.wrapping_add(len)));
        }
        let segment = Segment {
            seq,
            bytes: part.bytes,
            len,
            ts_ns: part.ts_ns,
        };
        let Late { pool, scratch } = late;
        self.order.take(&segment, pool, scratch, deliver);
    }

    /// Whether all was read.
    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| !self.order.next().before(end))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The header of a frame is due.
    Header,
    /// So many bytes of a field section follow.
    Section(u64),
    /// So many bytes of content follow.
    Content(u64),
    /// So many bytes follow that nobody needs.
    Passed(u64),
    /// Where frames begin is not known any more.
    Lost,
}

/// A field section that waits for entries.
#[derive(Debug)]
struct Waiting {
    section: Vec<u8>,
    times: [u64; 2],
    /// What came behind it.
    behind: VecDeque<(Vec<u8>, u64)>,
    held: usize,
}

/// What one side sends on a stream of a request.
#[derive(Debug)]
struct Half {
    bytes: Bytes,
    state: State,
    /// Of a header of a frame or a section that is not complete.
    gathered: Vec<u8>,
    /// When its first byte was seen.
    from_ns: u64,
    waiting: Option<Box<Waiting>>,
    /// Whether the end of the stream was told.
    is_told: bool,
}

impl Half {
    const fn new() -> Self {
        Self {
            bytes: Bytes::new(),
            state: State::Header,
            gathered: Vec::new(),
            from_ns: 0,
            waiting: None,
            is_told: false,
        }
    }

    fn held(&self) -> usize {
        let waiting = self.waiting.as_ref();
        let waiting = waiting.map_or(0, |waiting| waiting.section.capacity() + waiting.held);
        self.gathered.capacity() + waiting
    }

    fn piece(
        &mut self,
        id: u32,
        piece: Piece<'_>,
        table: &Decoder,
        strings: &mut Strings,
        ear: &mut Ear<'_>,
    ) {
        match piece {
            Piece::Bytes(bytes, ts_ns) => self.push(id, bytes, ts_ns, table, strings, ear),
            Piece::Gap(missing, ts_ns) => self.gap(id, missing, ts_ns, ear),
        }
    }

    fn gap(&mut self, id: u32, missing: u32, ts_ns: u64, ear: &mut Ear<'_>) {
        self.waiting = None;
        ear.miss(id);
        match &mut self.state {
            State::Content(left) if u64::from(missing) <= *left => {
                *left -= u64::from(missing);
                ear.data(id, &[], missing, false, ts_ns);
            }
            State::Passed(left) if u64::from(missing) <= *left => *left -= u64::from(missing),
            state => *state = State::Lost,
        }
    }

    fn push(
        &mut self,
        id: u32,
        bytes: &[u8],
        ts_ns: u64,
        table: &Decoder,
        strings: &mut Strings,
        ear: &mut Ear<'_>,
    ) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(waiting) = &mut self.waiting {
                if waiting.held + rest.len() > MAX_BEHIND {
                    self.waiting = None;
                    self.state = State::Lost;
                    return;
                }
                waiting.held += rest.len();
                waiting.behind.push_back((rest.to_vec(), ts_ns));
                return;
            }
            let taken = self.step(id, rest, ts_ns, table, strings, ear);
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Takes some of the bytes, at least one.
    fn step(
        &mut self,
        id: u32,
        rest: &[u8],
        ts_ns: u64,
        table: &Decoder,
        strings: &mut Strings,
        ear: &mut Ear<'_>,
    ) -> usize {
        let up_to =
            |left: u64| usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
        match self.state {
            State::Header => {
                if self.gathered.is_empty() {
                    self.from_ns = ts_ns;
                }
                let had = self.gathered.len();
                let room = FrameHeader::MAX.saturating_sub(had).min(rest.len());
                self.gathered.extend(rest.iter().take(room));
                let Some((header, len)) = FrameHeader::parse(&self.gathered) else {
                    return room.max(1);
                };
                self.gathered.clear();
                self.state = match header.kind {
                    Kind::Headers if header.len > MAX_BLOCK as u64 => State::Passed(header.len),
                    Kind::Headers => State::Section(header.len),
                    Kind::Data => State::Content(header.len),
                    _ => State::Passed(header.len),
                };
                if header.len == 0 {
                    self.state = State::Header;
                }
                len.saturating_sub(had).max(1)
            }
            State::Section(left) => {
                let taken = up_to(left);
                let part = rest.get(..taken).unwrap_or_default();
                self.state = State::Section(left - taken as u64);
                if taken as u64 == left {
                    self.state = State::Header;
                    if self.gathered.is_empty() {
                        self.section(id, part, ts_ns, table, strings, ear);
                    } else {
                        self.gathered.extend_from_slice(part);
                        let whole = std::mem::take(&mut self.gathered);
                        self.section(id, &whole, ts_ns, table, strings, ear);
                    }
                } else {
                    self.gathered.extend_from_slice(part);
                }
                taken
            }
            State::Content(left) => {
                let taken = up_to(left);
                let part = rest.get(..taken).unwrap_or_default();
                let len = u32::try_from(taken).unwrap_or(u32::MAX);
                self.state = State::Content(left - taken as u64);
                if taken as u64 == left {
                    self.state = State::Header;
                }
                ear.data(id, part, len, false, ts_ns);
                taken
            }
            State::Passed(left) => {
                let taken = up_to(left);
                self.state = match left - taken as u64 {
                    0 => State::Header,
                    left => State::Passed(left),
                };
                taken
            }
            State::Lost => rest.len(),
        }
    }

    /// A field section that is complete.
    fn section(
        &mut self,
        id: u32,
        section: &[u8],
        ts_ns: u64,
        table: &Decoder,
        strings: &mut Strings,
        ear: &mut Ear<'_>,
    ) {
        let times = [self.from_ns, ts_ns];
        if !read_section(id, section, times, table, strings, ear) {
            self.waiting = Some(Box::new(Waiting {
                section: section.to_vec(),
                times,
                behind: VecDeque::new(),
                held: 0,
            }));
        }
    }

    /// Entries were inserted: what waited for them may be read.
    fn retry(&mut self, id: u32, table: &Decoder, strings: &mut Strings, ear: &mut Ear<'_>) {
        let Some(waiting) = self.waiting.take() else {
            return;
        };
        if !read_section(id, &waiting.section, waiting.times, table, strings, ear) {
            self.waiting = Some(waiting);
            return;
        }
        for (bytes, ts_ns) in waiting.behind {
            self.push(id, &bytes, ts_ns, table, strings, ear);
        }
    }

    /// Tells once that all was read.
    fn tell_end(&mut self, id: u32, ts_ns: u64, ear: &mut Ear<'_>) {
        if self.bytes.is_over() && self.waiting.is_none() && !self.is_told {
            self.is_told = true;
            ear.data(id, &[], 0, true, ts_ns);
        }
    }
}

/// Reads a section; `false` where it waits for entries.
fn read_section(
    id: u32,
    section: &[u8],
    [from_ns, to_ns]: [u64; 2],
    table: &Decoder,
    strings: &mut Strings,
    ear: &mut Ear<'_>,
) -> bool {
    let fields = match table.decode(section, strings, |field| ear.field(field)) {
        Ok(Section::Waits) => return false,
        Ok(Section::Read(decoded)) => Ok(decoded),
        Err(fault) => Err(fault),
    };
    ear.headers(&Headers {
        stream: id,
        promised: None,
        ends_stream: false,
        len: u32::try_from(section.len()).unwrap_or(u32::MAX),
        from_ns,
        to_ns,
        fields,
    });
    true
}

/// A stream that only one side sends on.
#[derive(Debug)]
struct OneWay {
    id: u64,
    bytes: Bytes,
    purpose: Option<Purpose>,
    gathered: Vec<u8>,
}

/// What is known of what one side sends.
#[derive(Debug, Default)]
struct Sender {
    table: Decoder,
    streams: Vec<OneWay>,
}

/// A request and its response.
#[derive(Debug)]
struct Exchange {
    id: u64,
    client: Half,
    server: Half,
}

/// A connection whose packets are opened.
#[derive(Debug, Default)]
pub(super) struct Http3 {
    client: Sender,
    server: Sender,
    exchanges: VecDeque<Exchange>,
    over: Over,
    pub(super) streams: Streams,
}

/// Streams of requests that are over.
#[derive(Debug, Default)]
struct Over {
    /// All before this one.
    below: u64,
    /// And these.
    others: Vec<u64>,
}

impl Over {
    fn has(&self, id: u64) -> bool {
        id < self.below || self.others.contains(&id)
    }

    fn note(&mut self, id: u64) {
        self.others.push(id);
        while let Some(at) = self.others.iter().position(|over| *over == self.below) {
            self.others.swap_remove(at);
            // Requests have every fourth number (RFC 9000 sec. 2.1).
            self.below += 4;
        }
        if self.others.len() > MAX_STREAMS {
            // What is that far behind is given up.
            self.below = self.others.iter().max().map_or(self.below, |last| last + 4);
            self.others.clear();
        }
    }
}

impl Http3 {
    pub(super) fn new() -> Self {
        Self {
            streams: Streams::in_any_order(),
            ..Self::default()
        }
    }

    /// Bytes that it keeps.
    pub(super) fn held(&self) -> usize {
        let tables = self.client.table.held() + self.server.table.held();
        let halves = self.exchanges.iter();
        let halves = halves.map(|one| one.client.held() + one.server.held());
        let exchanges = self.exchanges.capacity() * size_of::<Exchange>();
        tables + halves.sum::<usize>() + exchanges + self.streams.held()
    }

    /// Lets go of the oldest exchanges beyond the bound.
    fn make_room(&mut self, late: &mut Late) {
        while self.exchanges.len() >= MAX_STREAMS {
            if let Some(mut first) = self.exchanges.pop_front() {
                first.client.bytes.order.release(&mut late.pool);
                first.server.bytes.order.release(&mut late.pool);
                self.over.note(first.id);
            }
        }
    }
}

/// Bytes of a stream of a connection.
pub(super) fn take<'a>(
    http3: &'a mut Http3,
    part: &StreamPart<'_>,
    late: &mut Late,
    strings: &mut Strings,
    listening: Listening<'a>,
) {
    let side = listening.side;
    // RFC 9000 sec. 2.1: the last bit says who opened it, the one before whether both send.
    if part.id & 2 != 0 {
        let opener = if part.id & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        };
        if opener == side {
            one_way(http3, part, late, strings, listening);
        }
        return;
    }
    if part.id & 1 != 0 || http3.over.has(part.id) {
        return;
    }
    let Ok(id) = u32::try_from(part.id) else {
        return;
    };
    let at = match http3.exchanges.binary_search_by_key(&part.id, |one| one.id) {
        Ok(at) => at,
        Err(_) => {
            http3.make_room(late);
            let at = http3.exchanges.partition_point(|one| one.id < part.id);
            let exchange = Exchange {
                id: part.id,
                client: Half::new(),
                server: Half::new(),
            };
            http3.exchanges.insert(at, exchange);
            at
        }
    };
    let Http3 {
        client,
        server,
        exchanges,
        streams,
        over,
    } = http3;
    let mut ear = listening.ear(streams);
    let Some(exchange) = exchanges.get_mut(at) else {
        return;
    };
    let (half, table) = match side {
        Side::Client => (&mut exchange.client, &client.table),
        Side::Server => (&mut exchange.server, &server.table),
    };
    let mut bytes = std::mem::replace(&mut half.bytes, Bytes::new());
    bytes.take(part, late, |piece| {
        half.piece(id, piece, table, strings, &mut ear);
    });
    half.bytes = bytes;
    half.tell_end(id, part.ts_ns, &mut ear);
    let is_over = exchange.client.is_told && exchange.server.is_told;
    if is_over {
        exchanges.remove(at);
        over.note(part.id);
    }
}

/// Bytes of a stream that only `side` sends on.
fn one_way<'a>(
    http3: &'a mut Http3,
    part: &StreamPart<'_>,
    late: &mut Late,
    strings: &mut Strings,
    listening: Listening<'a>,
) {
    let side = listening.side;
    let (sender, receiver) = match side {
        Side::Client => (&mut http3.client, &mut http3.server),
        Side::Server => (&mut http3.server, &mut http3.client),
    };
    let Sender { table, streams } = sender;
    let at = streams.iter().position(|one| one.id == part.id);
    let at = match at {
        Some(at) => at,
        None if streams.len() >= MAX_ONE_WAY => return,
        None => {
            streams.push(OneWay {
                id: part.id,
                bytes: Bytes::new(),
                purpose: None,
                gathered: Vec::new(),
            });
            streams.len() - 1
        }
    };
    let Some(stream) = streams.get_mut(at) else {
        return;
    };
    let OneWay {
        bytes,
        purpose: known,
        gathered,
        ..
    } = stream;
    let mut has_inserted = false;
    bytes.take(part, late, |piece| match piece {
        Piece::Gap(..) => {
            if matches!(known, None | Some(Purpose::Encoder)) {
                table.lose();
                has_inserted = true;
            }
            *known = Some(Purpose::Other);
            gathered.clear();
        }
        Piece::Bytes(bytes, _) => {
            if matches!(
                known,
                Some(Purpose::Other | Purpose::Decoder | Purpose::Push)
            ) {
                return;
            }
            gathered.extend_from_slice(bytes);
            if known.is_none() {
                let Some((purpose, len)) = purpose(gathered) else {
                    return;
                };
                *known = Some(purpose);
                gathered.drain(..len.min(gathered.len()));
            }
            match known {
                Some(Purpose::Encoder) => {
                    let read = table.instructions(gathered, strings);
                    has_inserted = true;
                    let read = read.unwrap_or(gathered.len()).min(gathered.len());
                    gathered.drain(..read);
                }
                Some(Purpose::Control) => {
                    read_settings(gathered, &mut receiver.table);
                    if gathered.len() > MAX_BEHIND {
                        *known = Some(Purpose::Other);
                    }
                }
                _ => gathered.clear(),
            }
            if gathered.len() > MAX_BLOCK {
                table.lose();
                *known = Some(Purpose::Other);
                gathered.clear();
            }
        }
    });
    if has_inserted {
        let Http3 {
            client,
            server,
            exchanges,
            streams,
            ..
        } = http3;
        let mut ear = listening.ear(streams);
        for exchange in exchanges {
            let Ok(id) = u32::try_from(exchange.id) else {
                continue;
            };
            let (half, table) = match side {
                Side::Client => (&mut exchange.client, &client.table),
                Side::Server => (&mut exchange.server, &server.table),
            };
            half.retry(id, table, strings, &mut ear);
            half.tell_end(id, part.ts_ns, &mut ear);
        }
    }
}

/// Takes whole frames of a control stream off what is gathered of it; settings of one side are about the table of the
/// other.
fn read_settings(gathered: &mut Vec<u8>, table: &mut Decoder) {
    while let Some((header, len)) = FrameHeader::parse(gathered) {
        let Ok(content) = usize::try_from(header.len) else {
            return;
        };
        let Some(frame) = gathered.get(len..len.saturating_add(content)) else {
            return;
        };
        if header.kind == Kind::Settings {
            table.allow(table_capacity(frame));
        }
        gathered.drain(..len + content);
    }
}
