//! TLS with keys, and the reader of connections that must be in order.

use linkweir_keys::{
    About, Connection, Listener, LiveLog, QuicConnection, Shared, StreamListener, StreamPart,
};
use linkweir_stream::{InOrder, Piece, Segment};
use linkweir_table::Chunks;
use linkweir_wire::{SeqNumber, Side};

/// What all connections together may hold.
const MAX_HELD: usize = 1 << 12;

#[derive(Default)]
struct Heard(usize);

impl Listener for Heard {
    fn data(&mut self, _: &About, _: Side, bytes: &[u8], _: u64) {
        assert!(!bytes.is_empty());
        self.0 += bytes.len();
    }

    fn lost(&mut self, _: Side) {}
}

/// The parts of an input: what each is, its length, which stands in front, and as much of it as is there.
fn parts(mut rest: &[u8]) -> impl Iterator<Item = (u8, u16, &[u8])> {
    std::iter::from_fn(move || {
        let (&[kind, high, low], behind) = rest.split_first_chunk()?;
        let len = u16::from_be_bytes([high, low]);
        let (bytes, behind) = behind.split_at(usize::from(len).min(behind.len()));
        rest = behind;
        Some((kind, len, bytes))
    })
}

const fn side_of(kind: u8) -> Side {
    if kind.is_multiple_of(2) {
        Side::Client
    } else {
        Side::Server
    }
}

/// A connection and its key log, in parts: what it is (0 client, 1 server, 2 key log, 3 and 4 gaps of each) and its
/// length in front.
pub(crate) fn tls(input: &[u8]) {
    let (log, mut connection) = (LiveLog::new(), Connection::new());
    let (mut held, mut scratch, mut heard) = (0, Vec::new(), Heard::default());
    let (mut pushed, mut now) = (0, 0);
    for (kind, len, bytes) in parts(input) {
        now += 1;
        if kind == 2 {
            log.push(bytes);
            continue;
        }
        let mut shared = Shared {
            log: &log,
            held: &mut held,
            max_held: MAX_HELD,
            scratch: &mut scratch,
        };
        let side = side_of(kind);
        if kind > 2 {
            connection.gap(side, u32::from(len), &mut shared, &mut heard);
        }
        connection.push(side, bytes, now, &mut shared, &mut heard);
        pushed += bytes.len();
        assert!(heard.0 <= pushed);
        assert_eq!(held, connection.held());
    }
    connection.end(&mut Shared {
        log: &log,
        held: &mut held,
        max_held: MAX_HELD,
        scratch: &mut scratch,
    });
    assert_eq!(held, 0);
}

/// Segments of a direction: where each begins, its length, and how much of it was captured, in front. Byte for byte what
/// is given is at its place.
pub(crate) fn stream(input: &[u8]) {
    let mut pool = Chunks::with_capacity(16);
    let mut reader = InOrder::new(SeqNumber(u32::MAX - 100));
    let (mut scratch, mut place, mut rest, mut now) = (Vec::new(), 0_u32, input, 0);
    let mut check = |piece: Piece<'_>| match piece {
        Piece::Bytes(bytes, _) => {
            for byte in bytes {
                assert_eq!(u32::from(*byte), place % 251);
                place += 1;
            }
        }
        Piece::Gap(missing, _) => place += missing,
    };
    while let Some((&[high, low, len, cut, later], behind)) = rest.split_first_chunk() {
        rest = behind;
        now += u64::from(later) << 24;
        let at = u32::from(u16::from_be_bytes([high, low]));
        let sent = |at: u32| u8::try_from(at % 251).unwrap_or_default();
        let bytes: Vec<u8> = (at..at + u32::from(len)).map(sent).collect();
        let segment = Segment {
            seq: SeqNumber((u32::MAX - 100).wrapping_add(at)),
            bytes: &bytes,
            len: u32::from(len) + u32::from(cut),
            ts_ns: now,
        };
        reader.take(&segment, &mut pool, &mut scratch, &mut check);
        let ack = SeqNumber(segment.seq.0.wrapping_add(u32::from(cut)));
        reader.acknowledged(ack, now, &mut pool, &mut scratch, &mut check);
    }
    reader.finish(&mut pool, &mut scratch, &mut check);
    assert_eq!(pool.in_use(), 0);
}

impl StreamListener for Heard {
    fn stream(&mut self, _: &About, _: Side, part: &StreamPart<'_>) {
        self.0 += part.bytes.len();
    }

    fn reset(&mut self, _: Side, _: u64, _: u64, _: u64) {}
}

/// A connection of QUIC and its key log, in parts: what it is (0 client, 1 server, 2 key log) and its length in front.
pub(crate) fn quic(input: &[u8]) {
    let (log, mut connection) = (LiveLog::new(), QuicConnection::new());
    let (mut scratch, mut heard) = (Vec::new(), Heard::default());
    let (mut pushed, mut now) = (0, 0);
    for (kind, _, bytes) in parts(input) {
        now += 1;
        if kind == 2 {
            log.push(bytes);
            continue;
        }
        let side = side_of(kind);
        connection.datagram(side, bytes, now, &log, &mut scratch, &mut heard);
        pushed += bytes.len();
        assert!(heard.0 <= pushed);
        assert!(connection.held() <= pushed + (1 << 16));
    }
}
