//! A connection of TLS that nobody opens: its handshake as far as it is in clear, and what the lengths of the rest tell.

use linkweir_keys::{Cipher, Hash, Mac, Suite};
use linkweir_proto::tls::{
    Alpn, Carrier, ClientHello, ContentType, JA4_BYTES, Ja4, MessageHeader, RecordHeader,
    message_type, parse_client_hello, parse_server_hello,
};
use linkweir_record::Confidence;
use linkweir_table::{Chain, Chunks};
use linkweir_wire::{SeqNumber, Side, TcpFlags};

use super::quic::Hellos;
use super::tickets::{Server, Servers};
use super::trickle::{Pool, Trickle};
use super::turn::{Data, Estimate, Talk, Version};
use super::walk::{Came, Event, Walk};
use crate::key::Connection;
use crate::segment::Segment;

/// Texts of all connections: names, and hellos that are not whole.
pub(super) type Texts = Chunks<28>;
/// The longest hello that is gathered.
const MAX_HELLO: usize = 4096;
/// TLS 1.3 as on the wire.
pub(super) const TLS_1_3: u16 = 0x0304;
/// Records of a client between its hello and its `Finished`: certificates in pieces.
const MAX_FLIGHT: u8 = 8;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client's hello is not whole.
    Hello,
    Handshake,
    Open,
    /// There is nothing to be told of it.
    Ignored,
}

/// What a connection is, beside where its records are.
#[derive(Debug)]
pub(super) struct State {
    talk: Talk,
    /// The records of the response at hand.
    trickle: Trickle,
    /// The hello while it is gathered, then the fingerprint of the client, where there is one, and the server name.
    text: Chain,
    has_fingerprint: bool,
    pub(super) version: u16,
    suite: u16,
    phase: Phase,
    /// Whether any segment of the server was seen.
    has_server: bool,
    /// Whether the server has sent the record with its extensions.
    has_extensions: bool,
    is_early: bool,
    offers_two: bool,
    /// Whether its port is one of HTTPS.
    is_web_port: bool,
    /// Whether the bytes at hand begin a record.
    is_start: bool,
    flight: u8,
    /// Sides that have sent FIN, as bits.
    closed: u8,
}

/// A connection of which transactions are estimated.
#[derive(Debug)]
pub(super) struct Estimated {
    /// Client first.
    pub(super) connection: Connection,
    /// When it was last heard, in units of 2^20 ns, modulo 2^32.
    changed: u32,
    /// Number of the first byte of the client.
    pub(super) first: SeqNumber,
    client: Walk,
    server: Walk,
    pub(super) state: State,
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) texts: Texts,
    pub(super) scratch: Vec<u8>,
    pub(super) servers: Servers,
    /// Responses that may be streams.
    pub(super) streams: Pool,
    /// Hellos of QUIC that are not whole.
    pub(super) hellos: Hellos,
}

/// The fingerprint of a client, and the server name that it asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Names<'a> {
    pub(super) ja4: Option<[u8; JA4_BYTES]>,
    pub(super) name: &'a [u8],
}

impl<'a> Names<'a> {
    /// What was kept of a hello.
    pub(super) fn of(text: &'a [u8], has_fingerprint: bool) -> Self {
        match text.split_first_chunk() {
            Some((ja4, name)) if has_fingerprint => Self {
                ja4: Some(*ja4),
                name,
            },
            _ => Self {
                ja4: None,
                name: text,
            },
        }
    }
}

/// What is known of a server that may still send what is no response.
fn leading<'a>(
    servers: &'a mut Servers,
    talk: &Talk,
    connection: &Connection,
) -> Option<&'a mut Server> {
    match talk.is_leading() {
        true => servers.of(connection),
        false => None,
    }
}

impl Estimated {
    /// A connection whose client and server go on at these numbers; its first bytes are a hello, or it `is_late`.
    pub(super) fn new(
        connection: Connection,
        ends: [SeqNumber; 2],
        is_late: bool,
        is_web_port: bool,
    ) -> Self {
        let [client, server] = ends;
        let mut talk = Talk::default();
        if is_late {
            talk.best = Confidence::Likely;
            talk.is_hidden = true;
            talk.open(true);
        }
        let state = State {
            talk,
            trickle: Trickle::default(),
            text: Chain::new(),
            has_fingerprint: false,
            version: 0,
            suite: 0,
            phase: if is_late { Phase::Open } else { Phase::Hello },
            has_server: false,
            has_extensions: false,
            is_early: false,
            offers_two: false,
            is_web_port,
            is_start: false,
            flight: 0,
            closed: 0,
        };
        Self {
            connection,
            changed: 0,
            first: client,
            client: Walk::new(client),
            server: Walk::new(server),
            state,
        }
    }

    /// It was heard at this time.
    pub(super) const fn heard(&mut self, ts_ns: u64) {
        let units = units(ts_ns);
        if units.wrapping_sub(self.changed).cast_signed() > 0 || self.changed == 0 {
            self.changed = units;
        }
    }

    /// Whether it was not heard since.
    pub(super) const fn is_silent_since(&self, limit_ns: u64) -> bool {
        units(limit_ns).wrapping_sub(self.changed).cast_signed() >= 0
    }

    /// When it was last heard, in units of 2^20 ns, modulo 2^32.
    pub(super) const fn changed(&self) -> u32 {
        self.changed
    }

    /// Where a side stands.
    pub(super) const fn walk(&self, side: Side) -> &Walk {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// The fingerprint of the client, and the server name that it asked for.
    pub(super) fn names<'a>(&self, texts: &'a Texts, scratch: &'a mut Vec<u8>) -> Names<'a> {
        let text = match self.state.phase {
            Phase::Hello => &[],
            _ => texts.read(&self.state.text, scratch),
        };
        Names::of(text, self.state.has_fingerprint)
    }

    /// What its records say of the version: major and minor.
    pub(super) const fn http_version(&self) -> (u8, u8) {
        match self.state.talk.version {
            Version::Unknown => (0, 0),
            Version::One => (1, 1),
            Version::Two => (2, 0),
        }
    }

    /// A segment with payload.
    pub(super) fn on_segment(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        common: &mut Common,
        mut done: impl FnMut(Estimate),
    ) {
        let (own, other) = match side {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        let state = &mut self.state;
        let ack = SeqNumber(segment.ack);
        state.has_server |= side == Side::Server;
        // What this side has received comes no more, if the capture has missed it. A FIN counts as one.
        if state.is_one_way() {
            state.talk.on_acknowledged(ack, segment.ts_ns, true);
        } else if segment.has_ack && ack - other.next() > 1 && state.phase == Phase::Open {
            other.skip(ack);
            let server = leading(&mut common.servers, &state.talk, &self.connection);
            let (trickle, streams) = (&mut state.trickle, &mut common.streams);
            if side == Side::Client {
                trickle.miss(streams);
            }
            state
                .talk
                .on_missed(side.other(), segment.ts_ns, server, |estimate| {
                    done(trickle.finish(estimate, streams));
                });
        }
        let due = other.due();
        let came = own.on_segment(segment, |event| match event {
            Event::Begin(header, seq) => {
                let at = Data {
                    content: 0,
                    len: header.len,
                    seq,
                    ack,
                    ts_ns: segment.ts_ns,
                };
                state.on_record(side, header, at, due, &self.connection, common, &mut done);
            }
            Event::Bytes(bytes) => state.on_handshake(side, bytes, common),
            Event::End => {
                if side == Side::Server
                    && let Some((before_ns, has_begun)) = state.talk.on_server_end(segment.ts_ns)
                {
                    let streams = &mut common.streams;
                    state
                        .trickle
                        .end(before_ns, segment.ts_ns, has_begun, streams);
                }
            }
        });
        match (came, side) {
            (Came::Repeated, Side::Client) => state.talk.on_repeated(segment.seq),
            (Came::Unknown, Side::Server) if !is_alert(segment.payload) => {
                let bytes = segment.payload_len;
                state.trickle.miss(&mut common.streams);
                state.talk.on_server_bytes(bytes, segment.ts_ns);
            }
            _ => {}
        }
        if came != Came::Repeated && state.phase == Phase::Hello && side == Side::Server {
            // The hello was not seen whole.
            state.phase = Phase::Ignored;
        }
    }

    /// Whether the client goes on without anything of the server.
    pub(super) fn is_one_way(&self) -> bool {
        self.state.is_one_way()
    }

    /// The client acknowledges, without data.
    pub(super) fn on_acknowledged(&mut self, side: Side, ack: SeqNumber, ts_ns: u64) {
        if side == Side::Client && self.state.is_one_way() {
            self.state.talk.on_acknowledged(ack, ts_ns, false);
        }
    }

    /// A side ends the connection with these flags; whether nothing more will come.
    pub(super) fn on_end(
        &mut self,
        side: Side,
        flags: TcpFlags,
        common: &mut Common,
        done: impl FnMut(Estimate),
    ) -> bool {
        self.state.closed |= 1 << u8::from(side == Side::Server);
        let is_over = flags.contains(TcpFlags::RST) || self.state.closed == 0b11;
        if is_over || side == Side::Server {
            self.finish(common, done);
        }
        is_over
    }

    /// The transaction at hand is over.
    pub(super) fn finish(&mut self, common: &mut Common, mut done: impl FnMut(Estimate)) {
        let State { talk, trickle, .. } = &mut self.state;
        let server = leading(&mut common.servers, talk, &self.connection);
        talk.finish(server, |estimate| {
            done(trickle.finish(estimate, &mut common.streams));
        });
    }

    /// Gives back what it has of the texts.
    pub(super) fn release(&mut self, texts: &mut Texts) {
        texts.release(std::mem::take(&mut self.state.text));
    }
}

impl State {
    fn is_one_way(&self) -> bool {
        self.phase == Phase::Open && !self.has_server
    }

    /// Bytes that encryption adds to a record.
    fn overhead(&self) -> u16 {
        if self.version >= TLS_1_3 || self.version == 0 {
            // The type of what is inside, and the tag (RFC 8446 sec. 5.2).
            return 17;
        }
        match Suite::of(self.suite).map(|suite| suite.cipher) {
            Some(Cipher::ChaCha20Poly1305) => 16,
            // The vector, the MAC and one byte of padding at least.
            Some(Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac)) => match mac {
                Mac::Sha1 => 16 + 20 + 1,
                Mac::Sha256 => 16 + 32 + 1,
                Mac::Sha384 => 16 + 48 + 1,
            },
            _ => 24,
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "parts of a connection that are borrowed one by one"
    )]
    fn on_record(
        &mut self,
        side: Side,
        header: RecordHeader,
        mut data: Data,
        due: SeqNumber,
        connection: &Connection,
        common: &mut Common,
        mut done: impl FnMut(Estimate),
    ) {
        self.is_start = true;
        data.content = header.len.saturating_sub(self.overhead());
        match (self.phase, header.content) {
            (Phase::Handshake, ContentType::ApplicationData) => {
                if self.version != 0 && self.version < TLS_1_3 {
                    self.open();
                } else {
                    return self.on_hidden_handshake(side, data.content);
                }
            }
            (Phase::Open, ContentType::ApplicationData) => {}
            (Phase::Open, ContentType::Handshake) => {
                // Another handshake on the same connection.
                self.talk.best = self.talk.best.max(Confidence::Likely);
                return;
            }
            _ => return,
        }
        let server = leading(&mut common.servers, &self.talk, connection);
        let (trickle, streams) = (&mut self.trickle, &mut common.streams);
        if side == Side::Server {
            trickle.begin(data.content);
        }
        let done = |estimate| done(trickle.finish(estimate, streams));
        match side {
            Side::Client => self.talk.on_client(&data, due, server, done),
            Side::Server => self.talk.on_server(&data, server, done),
        }
    }

    fn open(&mut self) {
        self.phase = Phase::Open;
        let cipher = Suite::of(self.suite).map(|suite| suite.cipher);
        if self.talk.version == Version::Two
            && matches!(cipher, Some(Cipher::Aes128Cbc(_) | Cipher::Aes256Cbc(_)))
        {
            // Padding hides the lengths that tell frames apart.
            self.talk.best = Confidence::CannotTell;
        }
        self.talk.is_hidden = self.version >= TLS_1_3 || self.version == 0;
        self.talk.open(false);
    }

    /// An encrypted record of the handshake of TLS 1.3.
    fn on_hidden_handshake(&mut self, side: Side, content: u16) {
        match side {
            Side::Server => {
                if !std::mem::replace(&mut self.has_extensions, true)
                    && self.talk.version == Version::Unknown
                {
                    self.talk.version = self.chosen(content);
                }
            }
            Side::Client if !self.has_extensions && self.is_early => {}
            Side::Client => {
                let hash = Suite::of(self.suite).map(|suite| suite.hash);
                let is_finished = match hash {
                    Some(Hash::Sha256) => content == 36,
                    Some(Hash::Sha384) => content == 52,
                    None => matches!(content, 36 | 52),
                };
                self.flight += 1;
                if self.flight > 1 || hash.is_none() {
                    // A certificate of the client, or data before the handshake has ended.
                    self.talk.best = self.talk.best.max(Confidence::Likely);
                }
                if is_finished || self.flight > MAX_FLIGHT {
                    self.open();
                }
                if self.is_early {
                    self.talk.doubt_next();
                }
            }
        }
    }

    /// The version of HTTP by the length of `EncryptedExtensions` in a record of its own: a header of six bytes, the name
    /// acknowledged in four, the application protocol in nine (`h2`) or fifteen (`http/1.1`), groups in ten.
    const fn chosen(&self, content: u16) -> Version {
        match content {
            15 | 19 | 29 if self.offers_two => Version::Two,
            // With the groups, but without the name, this is HTTP/2 in a session that is resumed.
            25 if self.offers_two && self.talk.is_resumed => Version::Unknown,
            6 | 10 | 21 | 25 | 31 | 35 => Version::One,
            _ => Version::Unknown,
        }
    }

    /// Bytes of a record of the handshake.
    fn on_handshake(&mut self, side: Side, bytes: &[u8], common: &mut Common) {
        let is_start = std::mem::take(&mut self.is_start);
        match (self.phase, side) {
            (Phase::Hello, Side::Client) => self.on_hello(bytes, common),
            (Phase::Handshake, Side::Client)
                if is_start
                    && self.version == 0
                    && matches!(
                        bytes.first(),
                        Some(&(message_type::CERTIFICATE | message_type::CLIENT_KEY_EXCHANGE))
                    ) =>
            {
                // In TLS 1.3 it would not be in clear.
                self.version = 0x0303;
            }
            (Phase::Handshake, Side::Server)
                if is_start && bytes.first() == Some(&message_type::SERVER_HELLO) =>
            {
                let Some(hello) = parse_server_hello(bytes).seen() else {
                    return;
                };
                if hello.is_retry {
                    return;
                }
                (self.version, self.suite) = (hello.version, hello.suite);
                self.talk.is_resumed = hello.has_pre_shared_key;
                if hello.version < TLS_1_3 {
                    self.talk.version = match Offer::of(hello.alpn) {
                        Offer { two: true, .. } => Version::Two,
                        _ => Version::One,
                    };
                }
            }
            _ => {}
        }
    }

    /// Bytes of the client's hello.
    fn on_hello(&mut self, bytes: &[u8], common: &mut Common) {
        let texts = &mut common.texts;
        let has_room =
            self.text.len() + bytes.len() <= MAX_HELLO && texts.append_whole(&mut self.text, bytes);
        let message = texts.read(&self.text, &mut common.scratch);
        let len = message
            .first_chunk()
            .map(|header| MessageHeader::LEN + MessageHeader::parse(*header).len as usize);
        let is_whole = len.is_some_and(|len| len <= message.len());
        if has_room && !is_whole {
            return;
        }
        let hello = parse_client_hello(message).seen().unwrap_or_default();
        self.is_early = hello.has_early_data;
        self.phase = self.offered(&hello, is_whole);
        let ja4 = Ja4::of(Carrier::Tcp, message);
        let fingerprint = ja4.as_ref().map_or(&[][..], |ja4| ja4.as_bytes());
        let names = [fingerprint, hello.server_name].concat();
        texts.release(std::mem::take(&mut self.text));
        // Names that find no room are left out.
        let is_kept = texts.append_whole(&mut self.text, &names);
        self.has_fingerprint = is_kept && ja4.is_some();
    }

    /// What a hello says of what is to come.
    fn offered(&mut self, hello: &ClientHello<'_>, is_whole: bool) -> Phase {
        let offer = Offer::of(hello.alpn);
        self.offers_two = offer.two;
        self.talk.version = match (offer.one, offer.two, offer.others) {
            (true, false, _) => Version::One,
            (false, true, _) => Version::Two,
            (true, true, _) => Version::Unknown,
            (false, false, false) if self.is_web_port => {
                // Nothing says that it is HTTP but the port.
                self.talk.best = Confidence::Likely;
                Version::One
            }
            (false, false, _) => return Phase::Ignored,
        };
        if !is_whole {
            self.talk.best = Confidence::Likely;
        }
        Phase::Handshake
    }
}

/// Which HTTP is among application protocols.
#[derive(Debug, Default)]
struct Offer {
    one: bool,
    two: bool,
    others: bool,
}

impl Offer {
    fn of(alpn: Alpn<'_>) -> Self {
        let mut offer = Self::default();
        for name in alpn {
            match name {
                b"h2" => offer.two = true,
                b"http/1.1" | b"http/1.0" => offer.one = true,
                // Reserved values (RFC 8701) mean nothing.
                [one, other] if one == other && one & 0x0f == 0x0a => {}
                _ => offer.others = true,
            }
        }
        offer
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "differences are less than 26 days: who is silent leaves"
)]
pub(super) const fn units(ts_ns: u64) -> u32 {
    (ts_ns >> 20) as u32
}

/// Whether a payload is an alert and nothing else, in TLS 1.3 or with its type in clear.
fn is_alert(payload: &[u8]) -> bool {
    let header = payload
        .first_chunk()
        .and_then(|header| RecordHeader::parse(*header));
    header.is_some_and(|header| {
        payload.len() == RecordHeader::LEN + usize::from(header.len)
            && (header.content == ContentType::Alert || header.len == 19)
    })
}
