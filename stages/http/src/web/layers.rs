//! What the bytes of a followed connection are: HTTP/2, or TLS with HTTP/2 or HTTP/1.x inside.

use linkweir_keys::{About, Due, Listener, LiveLog};
use linkweir_proto::http2::hpack::Strings;
use linkweir_record::{HttpBatch, Web};
use linkweir_stream::Piece;
use linkweir_table::Id;
use linkweir_wire::{SeqNumber, Side};

use super::http2::{Http2, begins};
use super::streams::{Ear, Listening, Streams};
use super::{Inside, Layer, Plain, Reading, columns};
use crate::key::Connection;
use crate::matcher::Matcher;
use crate::segment::Segment;

/// What further data is away from data that was lost, in HTTP/1.x inside of TLS: no head goes on behind it, and no
/// response is taken for the answer to what was before.
const LOST: u32 = 1 << 20;

/// Where the bytes of a connection go.
pub(super) struct To<'a> {
    pub(super) matcher: &'a mut Matcher,
    pub(super) out: &'a mut HttpBatch,
    pub(super) id: Id,
    pub(super) connection: Connection,
    pub(super) vlan: Option<u16>,
    /// Up to where client and server were read.
    pub(super) read_to: [SeqNumber; 2],
    /// What the segment at hand acknowledges.
    pub(super) ack: Option<SeqNumber>,
    pub(super) keys: Option<&'a LiveLog>,
    pub(super) reading: &'a mut Reading,
}

impl To<'_> {
    /// The next piece of a side.
    pub(super) fn piece(&mut self, layer: &mut Layer, side: Side, piece: Piece<'_>) {
        let len = match piece {
            Piece::Bytes(bytes, _) => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            Piece::Gap(len, _) => len,
        };
        if let Some(read_to) = self.read_to.get_mut(place(side)) {
            *read_to = SeqNumber(read_to.0.wrapping_add(len));
        }
        match layer {
            Layer::Http2(http2) => self.http2(http2, side, piece, &Web::default()),
            Layer::Tls(tls, inside) => {
                let Some(keys) = self.keys else {
                    return;
                };
                let mut sealed = std::mem::take(&mut self.reading.sealed);
                let mut shared = sealed.shared(keys);
                let mut ear = TlsEar { to: self, inside };
                match piece {
                    Piece::Bytes(bytes, ts_ns) => {
                        tls.push(side, bytes, ts_ns, &mut shared, &mut ear);
                    }
                    Piece::Gap(bytes, _) => tls.gap(side, bytes, &mut shared, &mut ear),
                }
                self.reading.sealed = sealed;
            }
        }
    }

    /// Who listens to a side; the server's has had so many losses.
    pub(super) fn ear<'a>(
        &'a mut self,
        streams: &'a mut Streams,
        side: Side,
        losses: u64,
        web: &'a Web<'a>,
    ) -> (Ear<'a>, &'a mut Strings) {
        let listening = Listening {
            common: &mut self.reading.common,
            records: &mut self.matcher.output.records,
            out: self.out,
            connection: self.connection,
            vlan: self.vlan,
            side,
            losses,
            version: (2, 0),
            web,
        };
        let ear = listening.ear(streams);
        (ear, &mut self.reading.strings)
    }

    /// Bytes of HTTP/2.
    fn http2(&mut self, http2: &mut Http2, side: Side, piece: Piece<'_>, web: &Web<'_>) {
        let losses = http2.losses();
        let (direction, streams) = http2.split(side);
        let (mut ear, strings) = self.ear(streams, side, losses, web);
        match piece {
            Piece::Bytes(bytes, ts_ns) => direction.push(bytes, ts_ns, strings, &mut ear),
            Piece::Gap(bytes, ts_ns) => direction.gap(bytes, ts_ns, &mut ear),
        }
    }

    /// Ends the streams where nothing has happened since `limit_ns`.
    pub(super) fn end_streams(&mut self, layer: &mut Layer, limit_ns: u64) {
        let (http2, web) = match layer {
            Layer::Http2(http2) => (http2, Web::default()),
            Layer::Tls(tls, Inside::Http2(http2)) => (http2, columns(tls.about())),
            Layer::Tls(..) => return,
        };
        let (mut ear, _) = self.ear(&mut http2.streams, Side::Server, 0, &web);
        ear.end_before(limit_ns);
    }

    /// Bytes of HTTP/1.x, as a segment of a connection without TLS.
    fn http1(
        &mut self,
        sides: &mut [Plain; 2],
        about: &About,
        side: Side,
        bytes: &[u8],
        ts_ns: u64,
    ) {
        let web = &mut self.matcher.output.web;
        if let Some(entry) = web.table.get_mut(self.id)
            && entry.label.as_deref() != Some(about)
        {
            entry.label = Some(Box::new(about.clone()));
        }
        let [client, server] = sides;
        let [client_read_to, server_read_to] = self.read_to;
        let (direction, mine, theirs, my_end, their_end) = match side {
            Side::Client => (
                self.connection,
                client,
                server,
                client_read_to,
                server_read_to,
            ),
            Side::Server => {
                let direction = self.connection.reversed();
                (direction, server, client, server_read_to, client_read_to)
            }
        };
        // What the segment acknowledges may be more than was seen by now, or less: then the other side's came early.
        let is_seen = |ack: &SeqNumber| !their_end.before(*ack);
        let known = self.ack.filter(is_seen).and_then(|ack| theirs.before(ack));
        // Of a request then none that a response has; of a response one behind the request that came late: with TLS it is
        // longer.
        let unknown = match (side, self.ack) {
            (Side::Client, _) => LOST / 2,
            (Side::Server, Some(ack)) if their_end.before(ack) => ack.0.wrapping_sub(their_end.0),
            (Side::Server, _) => 0,
        };
        let payload_len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let segment = Segment {
            direction,
            seq: SeqNumber(mine.next),
            ack: known.unwrap_or_else(|| theirs.next.wrapping_add(unknown)),
            has_ack: true,
            ts_ns,
            vlan: self.vlan,
            payload: bytes,
            payload_len,
        };
        mine.next = mine.next.wrapping_add(payload_len);
        mine.mark(my_end.0);
        self.matcher.on_opened(&segment, self.out);
    }
}

const fn place(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

/// Who listens to what TLS holds.
struct TlsEar<'a, 'b> {
    to: &'a mut To<'b>,
    inside: &'a mut Inside,
}

impl Inside {
    /// What the first bytes are of: what the two ends have agreed on says it, or they do themselves.
    fn of(about: &About, side: Side, bytes: &[u8], is_lost: [bool; 2], next: [u32; 2]) -> Self {
        let is_http2 = match &*about.alpn {
            b"h2" => true,
            b"" => begins(side, bytes),
            _ => false,
        };
        if !is_http2 {
            let mut sides = next.map(Plain::new);
            for side in &mut sides {
                side.mark(side.next);
            }
            return Self::Http1(Box::new(sides));
        }
        let mut http2 = Box::new(Http2::new());
        for (side, is_lost) in [Side::Client, Side::Server].into_iter().zip(is_lost) {
            if is_lost {
                http2.split(side).0.lose();
            }
        }
        Self::Http2(http2)
    }
}

impl Listener for TlsEar<'_, '_> {
    fn due(&mut self, side: Side) -> Due {
        let Inside::Http2(http2) = &mut *self.inside else {
            return Due::All;
        };
        let (direction, streams) = http2.split(side);
        match (direction.passes(), direction.needs()) {
            (Some((len, stream)), _) if streams.is_of_messages(stream) => Due::Bytes(len as usize),
            (Some((len, _)), _) => Due::Length(len as usize),
            (None, Some(len)) => Due::Bytes(len),
            (None, None) => Due::All,
        }
    }

    fn passed(&mut self, about: &About, side: Side, len: u32, ts_ns: u64) {
        if let Inside::Http2(http2) = &mut *self.inside {
            self.to
                .http2(http2, side, Piece::Gap(len, ts_ns), &columns(about));
        }
    }

    fn data(&mut self, about: &About, side: Side, bytes: &[u8], ts_ns: u64) {
        if let Inside::Unknown { is_lost, next } = self.inside {
            *self.inside = Inside::of(about, side, bytes, *is_lost, *next);
        }
        match self.inside {
            Inside::Http2(http2) => {
                self.to
                    .http2(http2, side, Piece::Bytes(bytes, ts_ns), &columns(about));
            }
            Inside::Http1(sides) => self.to.http1(sides, about, side, bytes, ts_ns),
            Inside::Unknown { .. } => {}
        }
    }

    fn lost(&mut self, side: Side) {
        let at = place(side);
        match self.inside {
            Inside::Http2(http2) => http2.split(side).0.lose(),
            Inside::Http1(sides) => {
                if let Some(side) = sides.get_mut(at) {
                    side.next = side.next.wrapping_add(LOST);
                }
            }
            Inside::Unknown { is_lost, .. } => {
                if let Some(is_lost) = is_lost.get_mut(at) {
                    *is_lost = true;
                }
            }
        }
    }
}
