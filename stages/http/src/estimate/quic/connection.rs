//! A connection of QUIC that nobody opens: its hello, the round trips of its handshake, and its packets with short headers.

use linkweir_proto::quic::{Kind, LongHeader, Progress};
use linkweir_proto::tls::{Carrier, Ja4, parse_client_hello};
use linkweir_table::Chain;
use linkweir_wire::Side;

use super::super::connection::{Names, Texts, units};
use super::super::turn::Estimate;
use super::hellos::{HelloId, Hellos};
use super::turn::{Data, Talk, Trips};
use crate::key::Connection;

/// Packets that one datagram is taken to have.
const PACKETS: usize = 4;
/// What a packet with a short header has besides its connection id and its frames, bytes: first byte, one byte of its
/// number, tag (RFC 9000 sec. 17.3.1).
const OVERHEAD: usize = 18;
/// What `NEW_CONNECTION_ID` has besides the id: its type, two numbers, a length, a token (RFC 9000 sec. 19.15).
const ID_FRAME: u16 = 20;
/// So many bytes may be missing from a full packet: its number and a frame that did not fit.
const ALMOST: u16 = 8;

/// A server whose flight has paused for so long, and for a quarter of its round trip, has sent all of it, nanoseconds.
const QUIET_NS: u64 = 1_000_000;

/// The sizes of a side's datagrams, bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    /// The longest of those that carry data.
    longest: u16,
    /// Longer ones that were seen once, the last one first.
    probes: [u16; 2],
}

impl Sizes {
    /// Whether a datagram is one by which a peer tries, behind its handshake, whether longer ones get through (RFC 8899):
    /// nothing is in it. Where one of its length was seen before, data may be as long.
    fn is_probe(&mut self, len: u16, is_short: bool) -> bool {
        if len <= self.longest {
            return false;
        }
        if !is_short || self.probes.contains(&len) {
            self.longest = len;
            return false;
        }
        let [last, _] = self.probes;
        self.probes = [len, last];
        true
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client's hello is not whole.
    Hello,
    Handshake,
    /// The client sends packets with short headers.
    Open,
    /// It is not of HTTP/3.
    Ignored,
}

/// A connection of which transactions are estimated.
#[derive(Debug)]
pub(in crate::estimate) struct Quic {
    /// Client first.
    pub(in crate::estimate) connection: Connection,
    /// When it was last heard, in units of 2^20 ns, modulo 2^32.
    changed: u32,
    hello: HelloId,
    phase: Phase,
    has_fingerprint: bool,
    /// The fingerprint of the client, where there is one, and the server name.
    text: Chain,
    talk: Talk,
    /// The client's first Initial since the beginning or a Retry, then the server's first Handshake, nanoseconds.
    begun_ns: u64,
    trips: Trips,
    /// Datagrams with Initials of the client before the server was heard, and those that its hello took.
    initials: u8,
    hello_datagrams: u8,
    is_server_heard: bool,
    has_handshake: bool,
    /// Whether secrets have opened it: then its transactions are read.
    pub(super) is_opened: bool,
    /// Bytes of the connection ids that client and server take as theirs.
    ids: [u8; 2],
    /// When the server was last heard, nanoseconds.
    server_ns: u64,
    sizes: [Sizes; 2],
}

impl Quic {
    pub(super) fn new(connection: Connection, hello: HelloId) -> Self {
        Self {
            connection,
            changed: 0,
            hello,
            phase: Phase::Hello,
            has_fingerprint: false,
            text: Chain::new(),
            talk: Talk::new(),
            begun_ns: 0,
            trips: Trips::default(),
            initials: 0,
            hello_datagrams: 0,
            is_server_heard: false,
            has_handshake: false,
            is_opened: false,
            ids: [0; 2],
            server_ns: 0,
            sizes: [Sizes::default(); 2],
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
    pub(in crate::estimate) const fn is_silent_since(&self, limit_ns: u64) -> bool {
        units(limit_ns).wrapping_sub(self.changed).cast_signed() >= 0
    }

    /// Whether it was not heard since another one was, in units of 2^20 ns, modulo 2^32.
    pub(in crate::estimate) const fn is_older_than(&self, changed: u32) -> bool {
        changed.wrapping_sub(self.changed).cast_signed() > 0
    }

    /// Whether another handshake of its client belongs to another connection.
    pub(super) fn is_over_with(&self, kind: Option<Kind>, side: Side) -> bool {
        side == Side::Client && self.phase == Phase::Open && kind == Some(Kind::Initial)
    }

    /// From the client's Initial to the server's first packet, nanoseconds.
    pub(super) fn rtt_ns(&self) -> Option<u32> {
        (self.trips.server_ns > 0).then_some(self.trips.server_ns)
    }

    /// The fingerprint of the client, and the server name that it asked for.
    pub(super) fn names<'a>(&self, texts: &'a Texts, scratch: &'a mut Vec<u8>) -> Names<'a> {
        Names::of(texts.read(&self.text, scratch), self.has_fingerprint)
    }

    /// A datagram of a side, of so many bytes on the wire.
    pub(super) fn on_datagram(
        &mut self,
        side: Side,
        datagram: &[u8],
        (wire_len, ts_ns): (u32, u64),
        (hellos, texts): (&mut Hellos, &mut Texts),
        done: impl FnOnce(Estimate),
    ) {
        if self.phase == Phase::Ignored {
            return;
        }
        let len = u16::try_from(wire_len).unwrap_or(u16::MAX);
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        let [of_client, of_server] = &mut self.sizes;
        let sizes = match side {
            Side::Client => of_client,
            Side::Server => of_server,
        };
        let is_probe = sizes.is_probe(len, is_short);
        let longest = sizes.longest;
        if side == Side::Server {
            self.server_ns = ts_ns;
            self.talk.on_server_heard(ts_ns, &mut self.trips);
        }
        if is_short {
            let [client_id, server_id] = self.ids;
            let id = match side {
                Side::Client => server_id,
                Side::Server => client_id,
            };
            if is_probe {
                return;
            }
            let overhead = OVERHEAD + usize::from(id);
            let content = len.saturating_sub(u16::try_from(overhead).unwrap_or(0));
            let new_id = ID_FRAME + u16::from(client_id);
            let data = Data {
                content,
                bytes: wire_len,
                is_full: len + ALMOST >= longest,
                may_be_id: client_id > 0 && (new_id..=new_id + 3).contains(&content),
                ts_ns,
            };
            match side {
                Side::Client if matches!(self.phase, Phase::Handshake | Phase::Open) => {
                    self.phase = Phase::Open;
                    self.talk.on_client(&data, self.trips, done);
                }
                Side::Client => {}
                Side::Server => self.talk.on_server(&data, self.trips),
            }
            return;
        }
        self.on_long(side, datagram, ts_ns, hellos, texts);
    }

    /// A datagram that begins with a long header.
    fn on_long(
        &mut self,
        side: Side,
        datagram: &[u8],
        ts_ns: u64,
        hellos: &mut Hellos,
        texts: &mut Texts,
    ) {
        let mut rest = datagram;
        let mut has_initial = false;
        for _ in 0..PACKETS {
            let Some(header) = LongHeader::parse(rest) else {
                break;
            };
            let id = u8::try_from(header.source_id.len()).unwrap_or(0);
            match (side, header.kind) {
                (Side::Client, Kind::Initial) => {
                    has_initial = true;
                    let [of_client, _] = &mut self.ids;
                    *of_client = id;
                    if self.phase == Phase::Hello {
                        self.on_hello(rest, &header, hellos, texts);
                    }
                }
                // The server's answers to that are not told from those to what comes later.
                (Side::Client, Kind::ZeroRtt) => self.talk.crowd(),
                (Side::Client, Kind::Handshake) => {
                    if self.has_handshake && self.trips.client_ns == 0 {
                        self.trips.client_ns = nanos(ts_ns.saturating_sub(self.begun_ns));
                    }
                    let quiet_ns = QUIET_NS.max(u64::from(self.trips.server_ns) / 4);
                    let is_flight_over = ts_ns.saturating_sub(self.server_ns) >= quiet_ns;
                    self.talk.on_client_handshake(ts_ns, is_flight_over);
                }
                (Side::Server, Kind::Retry | Kind::VersionNegotiation) if !self.is_server_heard => {
                    (self.begun_ns, self.initials) = (0, 0);
                }
                (Side::Server, Kind::Initial | Kind::Handshake) => {
                    let [_, of_server] = &mut self.ids;
                    *of_server = id;
                    self.on_server_handshake(header.kind, ts_ns);
                }
                _ => {}
            }
            rest = rest.get(header.len..).unwrap_or_default();
        }
        if has_initial && !self.is_server_heard {
            if self.begun_ns == 0 {
                self.begun_ns = ts_ns;
            }
            self.initials = self.initials.saturating_add(1);
            if self.phase != Phase::Hello && self.hello_datagrams == 0 {
                self.hello_datagrams = self.initials;
            }
        }
    }

    fn on_server_handshake(&mut self, kind: Kind, ts_ns: u64) {
        if !std::mem::replace(&mut self.is_server_heard, true) {
            // A hello that was sent again: which of them was answered is not known (as Karn, Partridge 1987).
            let is_clear = self.initials <= self.hello_datagrams.max(1);
            if kind == Kind::Initial && is_clear && self.begun_ns > 0 {
                self.trips.server_ns = nanos(ts_ns.saturating_sub(self.begun_ns));
            }
        }
        if kind == Kind::Handshake && !std::mem::replace(&mut self.has_handshake, true) {
            self.begun_ns = ts_ns;
        }
    }

    /// An Initial of the client.
    fn on_hello(
        &mut self,
        datagram: &[u8],
        header: &LongHeader<'_>,
        hellos: &mut Hellos,
        texts: &mut Texts,
    ) {
        let Some(client) = hellos.get(self.hello, &self.connection) else {
            // Its place was needed.
            self.phase = Phase::Ignored;
            return;
        };
        match client.on_packet(datagram, header) {
            Progress::More => return,
            Progress::Whole => self.read_hello(client.hello(), texts),
            Progress::Over => self.phase = Phase::Ignored,
        }
        hellos.release(self.hello, &self.connection);
    }

    fn read_hello(&mut self, message: &[u8], texts: &mut Texts) {
        let hello = parse_client_hello(message).seen().unwrap_or_default();
        let mut protocols = hello.alpn;
        if !protocols.any(|name| name.starts_with(b"h3")) {
            self.phase = Phase::Ignored;
            return;
        }
        self.phase = Phase::Handshake;
        let ja4 = Ja4::of(Carrier::Quic, message);
        let fingerprint = ja4.as_ref().map_or(&[][..], |ja4| ja4.as_bytes());
        // Names that find no room are left out.
        let names = [fingerprint, hello.server_name].concat();
        let is_kept = texts.append_whole(&mut self.text, &names);
        self.has_fingerprint = is_kept && ja4.is_some();
    }

    /// The transaction at hand is over.
    pub(super) fn finish(&mut self, done: impl FnOnce(Estimate)) {
        self.talk.finish(done);
    }

    /// Gives back what it has of what all share.
    pub(super) fn release(&mut self, hellos: &mut Hellos, texts: &mut Texts) {
        hellos.release(self.hello, &self.connection);
        texts.release(std::mem::take(&mut self.text));
    }
}

/// Nanoseconds of a handshake, at least one; nothing longer than four seconds.
fn nanos(took_ns: u64) -> u32 {
    u32::try_from(took_ns.max(1)).unwrap_or(0)
}
