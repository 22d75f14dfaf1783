//! A connection, both directions from bytes in order: which keys hold for which record, and what is in it.

mod open;

use linkweir_proto::tls::{
    Alpn, Carrier, ContentType, Ja4, Parsed, RecordHeader, message_type, parse_client_hello,
    parse_encrypted_extensions, parse_server_hello,
};
use linkweir_wire::Side;

use open::Unread;

use crate::half::{Framing, Half, Missing, State, Times, find_header};
use crate::log::{Label, Secret};
use crate::record::{Agreed, Pair, RecordKeys, TAG, next_generation};
use crate::suite::Suite;
use crate::{About, ConnectionCounters, Due, Listener, Shared};

/// Versions, as on the wire.
const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;
/// Suites of TLS 1.3 in which early data may be encrypted, which its sender alone knows at first.
const OF_THIRTEEN: [u16; 3] = [0x1301, 0x1302, 0x1303];

/// A connection of TLS 1.2 or 1.3.
///
/// Shape: two directions, each with the record or handshake message that is not complete (up to 18 and 64 KiB).
/// Cost: the cipher's, and a copy of each record; a look-up in the log for each change of keys.
#[derive(Debug)]
pub struct Connection {
    client: Half,
    server: Half,
    client_random: Option<[u8; 32]>,
    server_random: [u8; 32],
    about: About,
    /// Whether client and server have the extension `encrypt_then_mac`.
    encrypts_first: [bool; 2],
    /// Whether the client may have sent early data.
    offers_early: bool,
    /// Early data that the server refused, records.
    refused_early: u32,
    counters: ConnectionCounters,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Connection {
    /// From its first byte on: what joins later cannot be opened, since the randoms are not known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            client: Half::new(),
            server: Half::new(),
            client_random: None,
            server_random: [0; 32],
            about: About::default(),
            encrypts_first: [false; 2],
            offers_early: false,
            refused_early: 0,
            counters: ConnectionCounters::default(),
        }
    }

    /// What became of its records.
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
    pub const fn held(&self) -> usize {
        self.client.held() + self.server.held()
    }

    /// Ends it, and takes what it kept out of the count.
    pub fn end(self, shared: &mut Shared<'_>) {
        *shared.held = shared.held.saturating_sub(self.held());
    }

    const fn half(&mut self, side: Side) -> &mut Half {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// So many bytes of a direction are missing.
    pub fn gap(
        &mut self,
        side: Side,
        bytes: u32,
        shared: &mut Shared<'_>,
        listener: &mut impl Listener,
    ) {
        let half = self.half(side);
        let held = half.held();
        let was_whole = matches!(half.framing, Framing::Body(_) | Framing::Long(..));
        half.lose(bytes);
        *shared.held = shared.held.saturating_sub(held - half.held());
        self.counters.spoiled += u64::from(was_whole);
        listener.lost(side);
    }

    /// The next bytes of a direction, in order.
    pub fn push(
        &mut self,
        side: Side,
        bytes: &[u8],
        ts_ns: u64,
        shared: &mut Shared<'_>,
        listener: &mut impl Listener,
    ) {
        let held = self.held();
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.step(side, rest, ts_ns, shared, listener);
            rest = rest.get(taken..).unwrap_or_default();
        }
        *shared.held = (*shared.held + self.held()).saturating_sub(held);
    }

    /// Takes some of the bytes, or none where what is due has changed.
    fn step(
        &mut self,
        side: Side,
        rest: &[u8],
        ts_ns: u64,
        shared: &mut Shared<'_>,
        listener: &mut impl Listener,
    ) -> usize {
        let half = self.half(side);
        match half.framing {
            Framing::Header(had) => {
                let taken = half.read_header(had, rest, ts_ns);
                if half.framing == Framing::Lost {
                    listener.lost(side);
                }
                taken
            }
            Framing::Passed(left) => {
                let taken = rest.len().min(left as usize);
                let left = left.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX));
                half.framing = match left {
                    0 => Framing::Header(0),
                    left => Framing::Passed(left),
                };
                taken
            }
            Framing::Lost => match find_header(rest) {
                None => rest.len(),
                Some(at) => {
                    half.framing = Framing::Header(0);
                    at
                }
            },
            Framing::Body(header) => {
                let is_first = half.sealed.is_empty() && half.peeks(header).is_some();
                if is_first && listener.due(side) != Due::All {
                    half.framing = Framing::Long(header, 0);
                    return 0;
                }
                self.body(side, header, rest, ts_ns, shared, listener)
            }
            Framing::Long(header, at) => {
                let taken = self.long(side, (header, at), rest, ts_ns, shared, listener);
                let half = self.half(side);
                let at = at + taken;
                half.framing = Framing::Long(header, at);
                if at >= usize::from(header.len) {
                    half.framing = Framing::Header(0);
                    half.number += 1;
                    self.counters.opened += 1;
                }
                taken
            }
        }
    }

    /// Takes some bytes of a long record of TLS 1.3: data, its type (RFC 8446 sec. 5.2) and the tag.
    fn long(
        &mut self,
        side: Side,
        (header, at): (RecordHeader, usize),
        rest: &[u8],
        ts_ns: u64,
        shared: &mut Shared<'_>,
        listener: &mut impl Listener,
    ) -> usize {
        let end = usize::from(header.len).saturating_sub(1 + TAG);
        let is_data = at < end;
        let most = match is_data {
            true => rest.len().min(end - at),
            false => rest.len().min(usize::from(header.len).saturating_sub(at)),
        };
        let wanted = match listener.due(side) {
            _ if at == end => 1,
            Due::Bytes(wanted) if is_data => wanted.min(most),
            Due::Length(passed) if is_data => {
                let passed = passed.min(most);
                let len = u32::try_from(passed).unwrap_or(u32::MAX);
                listener.passed(&self.about, side, len, ts_ns);
                return passed;
            }
            // The listener has lost its place, or it is the tag.
            _ => return most,
        };
        let (bytes, _) = rest.split_at(wanted.min(rest.len()));
        shared.scratch.clear();
        shared.scratch.extend_from_slice(bytes);
        let half = self.half(side);
        if let Some(keys) = half.peeks(header) {
            keys.peek(half.number, at, shared.scratch);
        }
        if is_data {
            listener.data(&self.about, side, shared.scratch, ts_ns);
        } else if shared.scratch.as_slice() != [ContentType::ApplicationData as u8] {
            half.is_padded = true;
            listener.lost(side);
        }
        wanted
    }

    fn body(
        &mut self,
        side: Side,
        header: RecordHeader,
        rest: &[u8],
        ts_ns: u64,
        shared: &mut Shared<'_>,
        listener: &mut impl Listener,
    ) -> usize {
        let half = self.half(side);
        let have = half.sealed.len();
        half.seen(RecordHeader::LEN + have, ts_ns);
        let due = usize::from(header.len).saturating_sub(have);
        let Some((taken, _)) = rest.split_at_checked(due) else {
            if have == 0 {
                if *shared.held + due > shared.max_held {
                    half.spoil(header, 0);
                    self.counters.spoiled += 1;
                    listener.lost(side);
                    return 0;
                }
                half.sealed.reserve_exact(due);
            }
            half.sealed.extend_from_slice(rest);
            return rest.len();
        };
        half.framing = Framing::Header(0);
        let times = std::mem::take(&mut half.times);
        // A record of several segments is decrypted where it was gathered.
        let mut sealed = std::mem::take(&mut half.sealed);
        if have == 0 {
            sealed = std::mem::take(shared.scratch);
            sealed.clear();
        }
        sealed.extend_from_slice(taken);
        self.record(side, header, &mut sealed, &times, shared, listener);
        if have == 0 {
            *shared.scratch = sealed;
        }
        due
    }

    /// A record that is complete.
    fn record(
        &mut self,
        side: Side,
        header: RecordHeader,
        sealed: &mut [u8],
        times: &Times,
        shared: &Shared<'_>,
        listener: &mut impl Listener,
    ) {
        let is_data = header.content == ContentType::ApplicationData;
        let is_clear = match self.half(side).state {
            State::Clear => true,
            // RFC 8446 sec. 5: of TLS 1.3 everything that is encrypted says that it is data.
            _ => self.about.version == TLS_1_3 && !is_data,
        };
        if is_clear {
            match header.content {
                ContentType::Handshake => return self.handshake(side, sealed, shared),
                ContentType::ChangeCipherSpec if self.about.version == TLS_1_2 => {
                    return self.change_cipher(side, shared);
                }
                ContentType::ApplicationData => {
                    if side == Side::Client && self.offers_early {
                        self.begin_early(header, sealed, shared);
                    }
                }
                _ => return,
            }
        }
        if matches!(self.half(side).state, State::Unknown) {
            self.look_again(side, shared);
        }
        let (kind, place) = match self.open(side, header, sealed, shared) {
            Ok(place) => place,
            Err(unread) => {
                match unread {
                    Unread::WithoutSecret => self.counters.without_secret += 1,
                    Unread::Refused => self.counters.refused += 1,
                }
                return listener.lost(side);
            }
        };
        self.counters.opened += 1;
        let from = place.start;
        let content = sealed.get(place).unwrap_or_default();
        match kind {
            ContentType::ApplicationData => {
                times.pieces(RecordHeader::LEN + from, content, |piece, ns| {
                    listener.data(&self.about, side, piece, ns);
                });
            }
            ContentType::Handshake => self.handshake(side, content, shared),
            ContentType::ChangeCipherSpec if self.about.version == TLS_1_2 => {
                self.change_cipher(side, shared);
            }
            ContentType::ChangeCipherSpec | ContentType::Alert | ContentType::Heartbeat => {}
        }
    }

    /// The state after a `KeyUpdate`.
    fn updated(&self, secret: &Secret) -> Option<State> {
        let suite = Suite::of(self.about.suite)?;
        let secret = next_generation(suite.hash, secret)?;
        let keys = RecordKeys::thirteen(suite, &secret)?;
        Some(State::Data(keys, Some(secret)))
    }

    fn secret(&self, label: Label, shared: &Shared<'_>) -> Option<Secret> {
        shared.log.secret(self.client_random.as_ref()?, label)
    }

    /// The keys of TLS 1.3 from one of two secrets, by who sends.
    fn thirteen(
        &self,
        [client, server]: [Label; 2],
        side: Side,
        shared: &Shared<'_>,
    ) -> Option<(RecordKeys, Secret)> {
        let label = match side {
            Side::Client => client,
            Side::Server => server,
        };
        let secret = self.secret(label, shared)?;
        let keys = RecordKeys::thirteen(Suite::of(self.about.suite)?, &secret)?;
        Some((keys, secret))
    }

    fn enter_handshake(&mut self, side: Side, shared: &Shared<'_>) {
        let keys = self.thirteen(HANDSHAKE, side, shared);
        let state = keys.map_or(State::Unknown, |(keys, _)| State::Handshake(keys));
        self.half(side).switch_to(state);
    }

    fn enter_data(&mut self, side: Side, shared: &Shared<'_>) {
        let keys = self.thirteen(TRAFFIC, side, shared);
        let state = keys.map_or(State::Unknown, |(keys, secret)| {
            State::Data(keys, Some(secret))
        });
        self.half(side).switch_to(state);
    }

    /// TLS 1.2: what this direction sends from now on is encrypted.
    fn change_cipher(&mut self, side: Side, shared: &Shared<'_>) {
        let state = self.twelve(side, shared);
        self.half(side).switch_to(state.unwrap_or(State::Unknown));
    }

    fn twelve(&self, side: Side, shared: &Shared<'_>) -> Option<State> {
        let agreed = Agreed {
            suite: Suite::of(self.about.suite)?,
            client_random: self.client_random.as_ref()?,
            server_random: &self.server_random,
            encrypts_first: self.encrypts_first == [true; 2],
        };
        let pair = Pair::twelve(agreed, &self.secret(Label::Master, shared)?)?;
        let keys = match side {
            Side::Client => pair.client,
            Side::Server => pair.server,
        };
        Some(State::Data(keys, None))
    }

    /// The log may have grown: if it has the secret by now, the records since are counted.
    fn look_again(&mut self, side: Side, shared: &Shared<'_>) {
        let grown = shared.log.grown();
        if std::mem::replace(&mut self.half(side).looked_at, grown) == grown {
            return;
        }
        let state = match self.about.version {
            TLS_1_2 => self.twelve(side, shared),
            _ => self
                .thirteen(HANDSHAKE, side, shared)
                .map(|(keys, _)| State::Handshake(keys)),
        };
        let Some(state) = state else {
            return;
        };
        let is_thirteen = self.about.version == TLS_1_3;
        let half = self.half(side);
        let number = half.number;
        half.state = state;
        // Of TLS 1.3 nobody knows how many of them were of the handshake.
        if is_thirteen && number > 0 {
            half.number = 0;
            half.missing = Some(Missing {
                most: number,
                likely: number,
            });
        }
    }

    /// Early data, whose suite is that of the session that is resumed: whichever opens it.
    fn begin_early(&mut self, header: RecordHeader, sealed: &[u8], shared: &Shared<'_>) {
        let Some(secret) = self.secret(Label::ClientEarly, shared) else {
            return;
        };
        let keys = OF_THIRTEEN.iter().find_map(|number| {
            let keys = RecordKeys::thirteen(Suite::of(*number)?, &secret)?;
            keys.place(0, header, &mut sealed.to_vec())?;
            Some(keys)
        });
        if let Some(keys) = keys {
            self.client.switch_to(State::Early(keys));
        }
    }

    /// Bytes of handshake messages.
    fn handshake(&mut self, side: Side, bytes: &[u8], shared: &Shared<'_>) {
        let mut rest = bytes;
        while let Some(message) = self.half(side).messages.next(&mut rest) {
            self.message(side, &message, shared);
        }
    }

    /// The choice of a server is a list of one (RFC 7301 sec. 3.1).
    fn choose(&mut self, mut names: Alpn<'_>) {
        if let (Some(chosen), None) = (names.next(), names.next()) {
            self.about.alpn = chosen.into();
        }
    }

    fn message(&mut self, side: Side, message: &[u8], shared: &Shared<'_>) {
        let is_thirteen = self.about.version == TLS_1_3;
        match (message.first().copied().unwrap_or_default(), side) {
            (message_type::CLIENT_HELLO, Side::Client) => {
                if let Parsed::Complete(hello) = parse_client_hello(message) {
                    self.client_random = Some(hello.random);
                    self.about.server_name = hello.server_name.into();
                    self.about.ja4 = Ja4::of(Carrier::Tcp, message);
                    self.encrypts_first[0] = hello.encrypts_then_mac;
                    self.offers_early = hello.has_early_data;
                }
            }
            (message_type::SERVER_HELLO, Side::Server) => {
                if let Parsed::Complete(hello) = parse_server_hello(message)
                    && !hello.is_retry
                {
                    self.about.version = hello.version;
                    self.about.suite = hello.suite;
                    self.server_random = hello.random;
                    self.encrypts_first[1] = hello.encrypts_then_mac;
                    self.choose(hello.alpn);
                    if hello.version == TLS_1_3 {
                        self.enter_handshake(Side::Server, shared);
                        if !matches!(self.client.state, State::Early(_)) {
                            self.enter_handshake(Side::Client, shared);
                        }
                    }
                }
            }
            (message_type::ENCRYPTED_EXTENSIONS, Side::Server) => {
                if let Parsed::Complete(alpn) = parse_encrypted_extensions(message) {
                    self.choose(alpn);
                }
            }
            (message_type::END_OF_EARLY_DATA, Side::Client) => {
                if matches!(self.client.state, State::Early(_)) {
                    self.offers_early = false;
                    self.enter_handshake(side, shared);
                }
            }
            (message_type::FINISHED, _) if is_thirteen => {
                if matches!(self.half(side).state, State::Handshake(_)) {
                    self.enter_data(side, shared);
                }
            }
            (message_type::KEY_UPDATE, _) if is_thirteen => {
                if let State::Data(_, Some(secret)) = &self.half(side).state {
                    let secret = secret.clone();
                    let state = self.updated(&secret);
                    self.half(side).switch_to(state.unwrap_or(State::Unknown));
                }
            }
            _ => {}
        }
    }
}

/// The secrets of client and server.
const HANDSHAKE: [Label; 2] = [Label::ClientHandshake, Label::ServerHandshake];
const TRAFFIC: [Label; 2] = [Label::ClientTraffic, Label::ServerTraffic];
