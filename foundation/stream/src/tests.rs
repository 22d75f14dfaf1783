use super::*;
use proptest::prelude::*;

/// What was delivered: each piece with where it begins.
#[derive(Debug, Default)]
struct Delivered {
    at: u32,
    bytes: Vec<(u32, Vec<u8>)>,
    missing: Vec<(u32, u32)>,
}

impl Delivered {
    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Bytes(bytes, _) => {
                self.bytes.push((self.at, bytes.to_vec()));
                self.at += u32::try_from(bytes.len()).unwrap();
            }
            Piece::Gap(missing, _) => {
                self.missing.push((self.at, missing));
                self.at += missing;
            }
        }
    }

    fn text(&self) -> Vec<u8> {
        self.bytes
            .iter()
            .flat_map(|(_, bytes)| bytes.clone())
            .collect()
    }
}

struct Case {
    reader: InOrder,
    pool: Chunks,
    scratch: Vec<u8>,
    delivered: Delivered,
    first: u32,
}

impl Case {
    fn new(first: u32, chunks: usize) -> Self {
        Self {
            reader: InOrder::new(SeqNumber(first)),
            pool: Chunks::with_capacity(chunks),
            scratch: Vec::new(),
            delivered: Delivered::default(),
            first,
        }
    }

    fn seq(&self, at: u32) -> SeqNumber {
        SeqNumber(self.first.wrapping_add(at))
    }

    fn take(&mut self, at: u32, bytes: &[u8], ts_ns: u64) {
        let segment = Segment {
            seq: self.seq(at),
            bytes,
            len: u32::try_from(bytes.len()).unwrap(),
            ts_ns,
        };
        let delivered = &mut self.delivered;
        self.reader
            .take(&segment, &mut self.pool, &mut self.scratch, |piece| {
                delivered.take(piece);
            });
    }

    fn finish(&mut self) {
        let delivered = &mut self.delivered;
        self.reader
            .finish(&mut self.pool, &mut self.scratch, |piece| {
                delivered.take(piece);
            });
        assert_eq!(self.pool.in_use(), 0);
    }
}

#[test]
fn overlaps_and_repetitions_give_each_byte_once() {
    // Around the end of the sequence numbers.
    let mut case = Case::new(u32::MAX - 3, 64);
    for (at, bytes) in [
        (0, "abcd"),
        (2, "cdef"),
        (0, "abcd"),
        (8, "ij"),
        (6, "ghij"),
        (7, "hijkl"),
    ] {
        case.take(at, bytes.as_bytes(), 1);
    }
    case.finish();
    assert_eq!(case.delivered.text(), b"abcdefghijkl");
    assert_eq!(case.delivered.missing, []);
    let counters = case.reader.counters();
    assert_eq!((counters.repeated, counters.late, counters.gaps), (2, 1, 0));
}

#[test]
fn a_gap_ends_when_its_receiver_has_it() {
    let mut case = Case::new(0, 64);
    case.take(0, b"ab", 0);
    case.take(5, b"fg", 1_000);
    let acknowledge = |case: &mut Case, at, ns| {
        let seq = case.seq(at);
        let delivered = &mut case.delivered;
        case.reader
            .acknowledged(seq, ns, &mut case.pool, &mut case.scratch, |piece| {
                delivered.take(piece);
            });
        case.delivered.text()
    };
    // Not acknowledged; acknowledged, but it may still come; it does not.
    assert_eq!(acknowledge(&mut case, 2, ORDER_NS * 2), b"ab");
    assert_eq!(acknowledge(&mut case, 7, ORDER_NS), b"ab");
    assert_eq!(acknowledge(&mut case, 7, ORDER_NS * 2), b"abfg");
    assert_eq!(case.delivered.missing, [(2, 3)]);
    // What comes after all is known to be over.
    case.take(2, b"cde", ORDER_NS * 3);
    assert_eq!(case.delivered.text(), b"abfg");
}

#[test]
fn nothing_waits_for_ever_and_nothing_without_bound() {
    let mut case = Case::new(0, 1 << 12);
    case.take(10, b"k", 0);
    case.take(20, b"u", GAP_NS);
    assert_eq!(case.delivered.text(), b"");
    case.take(21, b"v", GAP_NS + 1);
    assert_eq!(case.delivered.text(), b"k", "the second gap is younger");
    // As many as wait, and one more.
    for number in 0..u32::try_from(MAX_LATE).unwrap() {
        case.take(100 + 2 * number, b"x", GAP_NS + 2);
    }
    assert!(case.delivered.missing.len() > 100);
    // A pool without room.
    let mut case = Case::new(0, 1);
    case.take(4, b"efgh", 0);
    assert_eq!(case.delivered.missing, [(0, 4)]);
    assert_eq!(case.delivered.text(), b"efgh");
    // Another connection.
    case.take(1 << 25, b"z", 0);
    case.take((1 << 31) + 8, b"z", 0);
    assert_eq!(
        (case.delivered.text(), case.reader.counters().foreign),
        (b"efgh".to_vec(), 2)
    );
}

#[test]
fn what_was_cut_off_is_a_gap() {
    let mut case = Case::new(0, 64);
    let segment = Segment {
        seq: SeqNumber(0),
        bytes: b"abc",
        len: 10,
        ts_ns: 7,
    };
    let delivered = &mut case.delivered;
    case.reader
        .take(&segment, &mut case.pool, &mut case.scratch, |piece| {
            delivered.take(piece);
        });
    case.take(10, b"k", 8);
    assert_eq!(case.delivered.text(), b"abck");
    assert_eq!(case.delivered.missing, [(3, 7)]);
}

proptest! {
    /// Whatever the path does: each byte that is given is the one of its place, and what came at least once before
    /// bounds were met is given.
    #[test]
    fn what_is_given_is_what_was_sent(
        first: u32,
        cuts in proptest::collection::vec(1..400_usize, 1..60),
        order in proptest::collection::vec((0..60_usize, 0..60_usize), 0..30),
        lost in proptest::collection::vec(0..60_usize, 0..10),
        chunks in 1..400_usize,
    ) {
        let mut at = 0_u32;
        let mut segments: Vec<(u32, Vec<u8>)> = Vec::new();
        for (number, len) in cuts.iter().enumerate() {
            let bytes = (0..*len).map(|place| u8::try_from((number * 31 + place) % 251).unwrap());
            segments.push((at, bytes.collect()));
            at += u32::try_from(*len).unwrap();
        }
        let sent: Vec<u8> = segments.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let is_lossless = lost.iter().all(|number| *number >= segments.len());
        let mut path: Vec<_> = segments
            .iter()
            .enumerate()
            .filter(|(number, _)| !lost.contains(number))
            .map(|(_, segment)| segment.clone())
            .collect();
        for (from, to) in order {
            if let Some(segment) = path.get(from).cloned() {
                path.insert(to.min(path.len()), segment);
            }
        }
        let mut case = Case::new(first, chunks);
        for (number, (at, bytes)) in path.iter().enumerate() {
            case.take(*at, bytes, number as u64);
        }
        case.finish();
        for (at, bytes) in &case.delivered.bytes {
            let at = *at as usize;
            prop_assert_eq!(&sent[at..at + bytes.len()], bytes.as_slice());
        }
        if is_lossless && chunks > 250 {
            prop_assert_eq!(case.delivered.text(), sent);
        }
    }
}
