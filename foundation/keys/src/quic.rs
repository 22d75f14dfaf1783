//! A connection of QUIC, both directions: which keys hold for which packet, and what its streams carry.

use linkweir_proto::quic::{CryptoStream, Frame, Frames, InitialKeys, Kind, LongHeader, Version};
use linkweir_proto::tls::{
    Alpn, Carrier, Ja4, MessageHeader, client_random, parse_client_hello,
    parse_encrypted_extensions, parse_server_hello,
};
use linkweir_wire::Side;

use crate::log::{Label, LiveLog, Secret};
use crate::packet::{PacketKeys, Phases};
use crate::suite::Suite;
use crate::{About, ConnectionCounters};

/// Suites in which a client may send data before it has an answer: it alone knows which.
const OF_THIRTEEN: [u16; 3] = [0x1301, 0x1302, 0x1303];
/// Packets of a datagram: one for each level.
const MAX_PACKETS: usize = 4;
/// Datagrams that came before their keys could be known, and bytes of them.
const MAX_EARLY: usize = 16;

/// Bytes of a stream as a packet has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamPart<'a> {
    /// Number of the stream.
    pub id: u64,
    /// Where in the stream they stand.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether none follow.
    pub is_last: bool,
    /// When the packet was seen, nanoseconds since the epoch.
    pub ts_ns: u64,
}

/// What the streams carry.
pub trait StreamListener {
    /// Bytes of a stream; some may come twice, and in any order.
    fn stream(&mut self, about: &About, side: Side, part: &StreamPart<'_>);
    /// A side gives up what it sends on a stream.
    fn reset(&mut self, side: Side, id: u64, error: u64, ts_ns: u64);
}

/// What is known of one side.
#[derive(Debug, Default)]
struct End {
    /// By which it wants to be called: the destination of what the other one sends.
    id: Vec<u8>,
    initial: Option<InitialKeys>,
    handshake: Option<PacketKeys>,
    data: Option<Phases>,
    /// Messages of the first two levels, until the handshake is over.
    messages: Option<Box<[CryptoStream; 2]>>,
}

impl End {
    fn new() -> Self {
        Self {
            messages: Some(Box::default()),
            ..Self::default()
        }
    }

    /// The messages of Initial packets, or of those behind them.
    fn messages(&mut self, level: usize) -> Option<&mut CryptoStream> {
        self.messages.as_mut()?.get_mut(level)
    }

    /// What is there of them without a hole.
    fn said(&self, level: usize) -> &[u8] {
        let stream = self.messages.as_ref().and_then(|levels| levels.get(level));
        stream.map_or(&[], CryptoStream::prefix)
    }
}

/// Levels of messages.
const HELLO: usize = 0;
const BEHIND: usize = 1;

/// A datagram that came before its keys.
#[derive(Debug)]
struct Waiting {
    side: Side,
    bytes: Vec<u8>,
    ts_ns: u64,
}

/// A connection of QUIC 1 or 2.
///
/// Shape: 2 KiB, and 32 for handshake messages until there is data. Cost: the cipher's, and a copy of each packet; look-ups in
/// the log until the keys are there.
#[derive(Debug)]
pub struct QuicConnection {
    version: Option<Version>,
    client: End,
    server: End,
    early: Option<PacketKeys>,
    client_random: Option<[u8; 32]>,
    suite: Option<Suite>,
    about: About,
    waiting: Vec<Waiting>,
    counters: ConnectionCounters,
    /// Whether a side has closed it.
    pub is_closed: bool,
}

impl Default for QuicConnection {
    fn default() -> Self {
        Self::new()
    }
}

impl QuicConnection {
    /// From its first datagram on: what joins later cannot be opened, since the random is not known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            version: None,
            client: End::new(),
            server: End::new(),
            early: None,
            client_random: None,
            suite: None,
            about: About::default(),
            waiting: Vec::new(),
            counters: ConnectionCounters::default(),
            is_closed: false,
        }
    }

    /// What became of its packets.
    #[must_use]
    pub const fn counters(&self) -> ConnectionCounters {
        self.counters
    }

    /// What the two ends agreed on so far.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn held(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(|one| one.bytes.len()).sum();
        let levels = [&self.client, &self.server].map(|end| end.messages.is_some());
        let levels = levels.into_iter().filter(|is_there| *is_there).count();
        waiting + levels * size_of::<[CryptoStream; 2]>()
    }

    const fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// A datagram of a side.
    pub fn datagram(
        &mut self,
        side: Side,
        bytes: &[u8],
        ts_ns: u64,
        log: &LiveLog,
        scratch: &mut Vec<u8>,
        listener: &mut impl StreamListener,
    ) {
        let had_keys = self.has_keys();
        self.packets(side, bytes, ts_ns, log, scratch, listener);
        // What came before the keys may be read now.
        if self.has_keys() && !had_keys {
            for one in std::mem::take(&mut self.waiting) {
                self.packets(one.side, &one.bytes, one.ts_ns, log, scratch, listener);
            }
        }
    }

    /// Whether the keys of data are there, of both sides.
    const fn has_keys(&self) -> bool {
        self.client.data.is_some() && self.server.data.is_some()
    }

    fn packets(
        &mut self,
        side: Side,
        bytes: &[u8],
        ts_ns: u64,
        log: &LiveLog,
        scratch: &mut Vec<u8>,
        listener: &mut impl StreamListener,
    ) {
        let mut rest = bytes;
        for _ in 0..MAX_PACKETS {
            if rest.first().is_none_or(|first| first & 0x80 == 0) {
                break;
            }
            let Some(header) = LongHeader::parse(rest) else {
                return;
            };
            let len = header.len.min(rest.len());
            let (packet, behind) = rest.split_at(len);
            self.long(side, packet, &header, ts_ns, log, scratch, listener);
            rest = behind;
        }
        // The second bit may be either (RFC 9287 sec. 3); behind other packets, where padding may stand too, it is set.
        let may_be_padding = rest.len() < bytes.len();
        let is_short = |first: &u8| first & 0x80 == 0 && (first & 0x40 != 0 || !may_be_padding);
        if rest.first().is_some_and(is_short) {
            self.short(side, rest, ts_ns, log, scratch, listener);
        }
    }

    /// A packet with a long header.
    #[expect(
        clippy::too_many_arguments,
        reason = "a packet, and what all packets share"
    )]
    fn long(
        &mut self,
        side: Side,
        packet: &[u8],
        header: &LongHeader<'_>,
        ts_ns: u64,
        log: &LiveLog,
        scratch: &mut Vec<u8>,
        listener: &mut impl StreamListener,
    ) {
        match header.kind {
            Kind::Initial => self.initial(side, packet, header),
            Kind::Handshake => {
                self.learn_keys(log);
                let Some(mut keys) = self.end(side).handshake.take() else {
                    return self.keep(side, packet, ts_ns);
                };
                scratch.clear();
                scratch.extend_from_slice(packet);
                if let Some(opened) = keys.open(scratch, header.number_at) {
                    self.counters.opened += 1;
                    for frame in Frames::of(opened.frames) {
                        if let Frame::Crypto { offset, bytes } = frame
                            && let Some(stream) = self.end(side).messages(BEHIND)
                        {
                            stream.insert(offset, bytes);
                        }
                    }
                } else {
                    self.counters.refused += 1;
                }
                self.end(side).handshake = Some(keys);
                self.read_extensions();
            }
            Kind::ZeroRtt if side == Side::Client => {
                self.zero_rtt(packet, header, ts_ns, log, scratch, listener);
            }
            Kind::Retry if side == Side::Server => {
                // RFC 9001 sec. 5.2: the keys follow from the id that the server chose.
                for one in [Side::Client, Side::Server] {
                    self.end(one).initial = None;
                }
            }
            _ => {}
        }
    }

    /// An Initial packet: the hellos.
    fn initial(&mut self, side: Side, packet: &[u8], header: &LongHeader<'_>) {
        let Some(version) = Version::of(header.version) else {
            return;
        };
        if side == Side::Client && self.client.initial.is_none() {
            self.client.initial = InitialKeys::client(version, header.destination_id);
            self.server.initial = InitialKeys::server(version, header.destination_id);
        }
        let end = self.end(side);
        let initial = end.initial.take();
        let opened = initial.as_ref().and_then(|keys| {
            keys.open(packet, header, |frames| {
                for frame in Frames::of(frames) {
                    if let Frame::Crypto { offset, bytes } = frame
                        && let Some(stream) = end.messages(HELLO)
                    {
                        stream.insert(offset, bytes);
                    }
                }
            })
        });
        end.initial = initial;
        if opened.is_none() {
            return;
        }
        end.id.clear();
        end.id.extend_from_slice(header.source_id);
        // RFC 9369 sec. 4.1: the two may agree on another version than that of the first packet.
        self.version = Some(version);
        // Some clients send the pieces of their hello in any order: its end may be there later than its random.
        let said = self.client.said(HELLO);
        if side == Side::Client
            && let Some(random) = client_random(said)
            && let Some(hello) = parse_client_hello(said).seen()
        {
            self.client_random = Some(random);
            self.about.server_name = hello.server_name.into();
            if self.about.ja4.is_none() {
                self.about.ja4 = Ja4::of(Carrier::Quic, said);
            }
        }
        if let Some(hello) = parse_server_hello(self.server.said(HELLO)).seen()
            && !hello.is_retry
        {
            self.suite = Suite::of(hello.suite);
            self.about.suite = hello.suite;
            self.about.version = hello.version;
        }
    }

    /// Takes the secrets out of the log that it has by now.
    fn learn_keys(&mut self, log: &LiveLog) {
        let (Some(random), Some(suite), Some(version)) =
            (self.client_random, self.suite, self.version)
        else {
            return;
        };
        for (side, handshake, traffic) in [
            (Side::Client, Label::ClientHandshake, Label::ClientTraffic),
            (Side::Server, Label::ServerHandshake, Label::ServerTraffic),
        ] {
            let end = self.end(side);
            if end.handshake.is_none() {
                let secret = log.secret(&random, handshake);
                let keys = |secret: &Secret| PacketKeys::new(version, suite, secret);
                end.handshake = secret.as_ref().and_then(keys);
            }
            if end.data.is_none() {
                let secret = log.secret(&random, traffic);
                let keys = |secret: &Secret| Phases::new(version, suite, secret);
                end.data = secret.as_ref().and_then(keys);
            }
        }
    }

    /// The protocol that the server chose.
    fn read_extensions(&mut self) {
        if !self.about.alpn.is_empty() {
            return;
        }
        let message = self.server.said(BEHIND);
        let Some(header) = message.first_chunk() else {
            return;
        };
        let len = MessageHeader::LEN + MessageHeader::parse(*header).len as usize;
        let alpn = message
            .get(..len)
            .and_then(|whole| parse_encrypted_extensions(whole).seen());
        let chosen = alpn.and_then(|mut alpn: Alpn<'_>| alpn.next());
        self.about.alpn = chosen.unwrap_or_default().into();
    }

    /// A packet with data that the client sent before it had an answer.
    fn zero_rtt(
        &mut self,
        packet: &[u8],
        header: &LongHeader<'_>,
        ts_ns: u64,
        log: &LiveLog,
        scratch: &mut Vec<u8>,
        listener: &mut impl StreamListener,
    ) {
        let (Some(random), Some(version)) = (self.client_random, self.version) else {
            return self.keep(Side::Client, packet, ts_ns);
        };
        if self.early.is_none() {
            let Some(secret) = log.secret(&random, Label::ClientEarly) else {
                self.counters.without_secret += 1;
                return;
            };
            self.early = OF_THIRTEEN.into_iter().find_map(|suite| {
                let mut keys = PacketKeys::new(version, Suite::of(suite)?, &secret)?;
                let mut copy = packet.to_vec();
                keys.open(&mut copy, header.number_at).map(|_| keys)
            });
        }
        let Some(mut keys) = self.early.take() else {
            self.counters.refused += 1;
            return;
        };
        scratch.clear();
        scratch.extend_from_slice(packet);
        let opened = keys
            .open(scratch, header.number_at)
            .map(|opened| opened.frames);
        self.tell(Side::Client, opened, ts_ns, listener);
        self.early = Some(keys);
    }

    /// A packet behind the handshake.
    fn short(
        &mut self,
        side: Side,
        packet: &[u8],
        ts_ns: u64,
        log: &LiveLog,
        scratch: &mut Vec<u8>,
        listener: &mut impl StreamListener,
    ) {
        if !self.has_keys() {
            self.learn_keys(log);
        }
        // All ids of an end are as long as its first one, as senders make them.
        let id_len = self.end(side.other()).id.len();
        let Some(mut keys) = self.end(side).data.take() else {
            self.counters.without_secret += 1;
            return self.keep(side, packet, ts_ns);
        };
        scratch.clear();
        scratch.extend_from_slice(packet);
        let opened = keys.open(scratch, 1 + id_len).map(|opened| opened.frames);
        self.tell(side, opened, ts_ns, listener);
        self.end(side).data = Some(keys);
    }

    /// What a packet of data carries; nothing where it could not be opened.
    fn tell(
        &mut self,
        side: Side,
        frames: Option<&[u8]>,
        ts_ns: u64,
        listener: &mut impl StreamListener,
    ) {
        let Some(frames) = frames else {
            self.counters.refused += 1;
            return;
        };
        self.counters.opened += 1;
        if self.has_keys() && !self.about.alpn.is_empty() {
            for end in [&mut self.client, &mut self.server] {
                end.messages = None;
            }
        }
        for frame in Frames::of(frames) {
            match frame {
                Frame::Stream {
                    id,
                    offset,
                    bytes,
                    is_last,
                } => {
                    let part = StreamPart {
                        id,
                        offset,
                        bytes,
                        is_last,
                        ts_ns,
                    };
                    listener.stream(&self.about, side, &part);
                }
                Frame::Reset { id, error } => listener.reset(side, id, error, ts_ns),
                Frame::Close => self.is_closed = true,
                Frame::Crypto { .. } | Frame::NewId(_) => {}
            }
        }
    }

    /// Keeps a packet whose keys are not there yet; with too many the oldest goes.
    fn keep(&mut self, side: Side, packet: &[u8], ts_ns: u64) {
        if self.has_keys() {
            return;
        }
        if self.waiting.len() >= MAX_EARLY {
            self.waiting.remove(0);
            self.counters.spoiled += 1;
        }
        self.waiting.push(Waiting {
            side,
            bytes: packet.to_vec(),
            ts_ns,
        });
    }
}
