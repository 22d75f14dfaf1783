use super::*;
use crate::http2::frame::flag::{END_HEADERS, END_STREAM, PADDED, PRIORITY};

/// What a direction said, a line each.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    lines: Vec<String>,
    fields: Vec<String>,
    /// Bytes of content by stream, and those that were captured.
    content: Vec<(u32, u32, Vec<u8>)>,
}

impl Listener for Told {
    fn field(&mut self, field: Field<'_>) {
        let part = |part: Option<&[u8]>| match part {
            Some(part) => String::from_utf8_lossy(part).into_owned(),
            None => "?".to_owned(),
        };
        self.fields
            .push(format!("{}={}", part(field.name), part(field.value)));
    }

    fn headers(&mut self, headers: &Headers) {
        let fields = std::mem::take(&mut self.fields).join(" ");
        let promised = headers
            .promised
            .map_or(String::new(), |id| format!(" promises {id}"));
        let end = if headers.ends_stream { " end" } else { "" };
        let fault = headers
            .fields
            .err()
            .map_or(String::new(), |fault| format!(" {fault:?}"));
        self.lines
            .push(format!("{}{promised} {fields}{end}{fault}", headers.stream));
    }

    fn data(&mut self, stream: u32, bytes: &[u8], len: u32, ends_stream: bool, _: u64) {
        match self.content.iter_mut().find(|(id, ..)| *id == stream) {
            Some((_, all, captured)) => {
                *all += len;
                captured.extend_from_slice(bytes);
            }
            None => self.content.push((stream, len, bytes.to_vec())),
        }
        if ends_stream {
            self.lines.push(format!("{stream} content ends"));
        }
    }

    fn reset(&mut self, stream: u32, error: u32, _: u64) {
        self.lines.push(format!("{stream} reset {error}"));
    }

    fn goaway(&mut self, last: u32, _: u64) {
        self.lines.push(format!("goaway {last}"));
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let front = [[a, b, c, kind].as_slice(), &[flags], &stream.to_be_bytes()].concat();
    [front.as_slice(), payload].concat()
}

/// GET on http of `/` at www.example.com, which is inserted; then the same by its index.
const FIRST: &[u8] = b"\x82\x86\x84\x41\x0fwww.example.com";
const AGAIN: &[u8] = b"\x82\x86\x84\xbe";

/// A connection with one of everything.
fn everything() -> Vec<u8> {
    [
        PREFACE.to_vec(),
        frame(4, 0, 0, b"\0\x01\0\0\x10\0\0\x03\0\0\0\x64"),
        frame(8, 0, 0, b"\0\0\xff\xff"),
        frame(1, END_HEADERS | END_STREAM, 1, FIRST),
        frame(1, END_HEADERS, 3, AGAIN),
        frame(6, 0, 0, b"12345678"),
        frame(0, 0, 3, b"some content"),
        frame(0, PADDED, 3, b"\x05 of it....."),
        frame(0x50, 0xff, 9, b"an extension"),
        frame(0, END_STREAM, 3, b""),
        // In three parts, padded, with a priority.
        frame(1, PADDED | PRIORITY, 5, b"\x02\0\0\0\0\x10\x82\x86.."),
        frame(9, 0, 5, b"\x84"),
        frame(9, END_HEADERS, 5, b"\xbe"),
        frame(2, 0, 5, b"\0\0\0\0\x10"),
        frame(5, END_HEADERS, 5, b"\0\0\0\x02\x82\x86\x84\xbe"),
        frame(3, 0, 5, b"\0\0\0\x08"),
        frame(4, 1, 0, b""),
        frame(7, 0, 0, b"\0\0\0\x05\0\0\0\0bye"),
    ]
    .concat()
}

const HOST: &str = ":method=GET :scheme=http :path=/ :authority=www.example.com";

fn lines_of_everything() -> Vec<String> {
    vec![
        format!("1 {HOST} end"),
        format!("3 {HOST}"),
        "3 content ends".to_owned(),
        format!("5 {HOST}"),
        format!("5 promises 2 {HOST}"),
        "5 reset 8".to_owned(),
        "goaway 5".to_owned(),
    ]
}

fn push(direction: &mut Direction, bytes: &[u8], told: &mut Told) {
    direction.push(bytes, 7, &mut Strings::default(), told);
}

#[test]
fn a_connection_is_the_same_however_it_is_cut() {
    let bytes = everything();
    for size in 1..=bytes.len() {
        let (mut direction, mut told) = (Direction::of_client(), Told::default());
        for segment in bytes.chunks(size) {
            push(&mut direction, segment, &mut told);
        }
        assert_eq!(told.lines, lines_of_everything(), "segments of {size}");
        assert_eq!(told.content, [(3, 18, b"some content of it".to_vec())]);
        assert_eq!(direction.counters(), DirectionCounters::default());
        assert!(direction.payload.is_empty() && direction.block.is_none());
    }
}

#[test]
fn times_are_those_of_the_bytes() {
    let bytes = everything();
    struct Times(Vec<(u64, u64)>);
    impl Listener for Times {
        fn field(&mut self, _: Field<'_>) {}
        fn headers(&mut self, headers: &Headers) {
            self.0.push((headers.from_ns, headers.to_ns));
        }
        fn data(&mut self, _: u32, _: &[u8], _: u32, _: bool, _: u64) {}
        fn reset(&mut self, _: u32, _: u32, _: u64) {}
        fn goaway(&mut self, _: u32, _: u64) {}
    }
    let (mut direction, mut times) = (Direction::of_client(), Times(Vec::new()));
    // A byte a nanosecond: the time of a byte is its place.
    for (at, byte) in (0..).zip(&bytes) {
        direction.push(&[*byte], at, &mut Strings::default(), &mut times);
    }
    let first = PREFACE.len() + 9 + 12 + 9 + 4;
    let second = first + HEADER + FIRST.len();
    let ends = |from: usize, len: usize| (from as u64, (from + HEADER + len - 1) as u64);
    assert_eq!(
        times.0[..2],
        [ends(first, FIRST.len()), ends(second, AGAIN.len())]
    );
    // From the first part to the end of the last.
    let (from, to) = times.0[2];
    assert_eq!(to - from, (9 + 10 + 9 + 1 + 9 + 1 - 1) as u64);
}

#[test]
fn a_gap_in_content_costs_nothing() {
    let content = frame(0, 0, 1, &[b'x'; 100]);
    let (mut direction, mut told) = (Direction::of_server(), Told::default());
    push(&mut direction, &frame(1, END_HEADERS, 1, FIRST), &mut told);
    push(&mut direction, &content[..50], &mut told);
    direction.gap(40, 8, &mut told);
    push(&mut direction, &content[90..], &mut told);
    push(&mut direction, &frame(1, END_HEADERS, 3, AGAIN), &mut told);
    assert_eq!(told.lines, [format!("1 {HOST}"), format!("3 {HOST}")]);
    assert_eq!((told.content[0].1, told.content[0].2.len()), (100, 60));
    assert_eq!(direction.counters(), DirectionCounters::default());
}

#[test]
fn a_gap_anywhere_gives_no_wrong_name() {
    let bytes = everything();
    let all = lines_of_everything();
    let known: Vec<&str> = HOST.split(' ').collect();
    for from in 0..bytes.len() {
        for len in [1, 5, 9, 20, 60] {
            let to = (from + len).min(bytes.len());
            let (mut direction, mut told) = (Direction::of_client(), Told::default());
            push(&mut direction, &bytes[..from], &mut told);
            direction.gap(u32::try_from(to - from).unwrap(), 8, &mut told);
            // As segments: frames begin with them.
            push(&mut direction, &bytes[to..], &mut told);
            for line in &told.lines {
                for word in line.split(' ').filter(|word| word.contains('=')) {
                    assert!(
                        known.contains(&word) || word.contains('?'),
                        "{from} {len}: {line}"
                    );
                }
            }
            assert!(told.lines.len() <= all.len(), "{from} {len}");
        }
    }
}

#[test]
fn frames_are_found_again() {
    // In the middle of content of which nothing is known.
    let (mut direction, mut told) = (Direction::joined_late(), Told::default());
    push(&mut direction, &[b'x'; 1000], &mut told);
    push(&mut direction, &frame(1, END_HEADERS, 3, AGAIN), &mut told);
    push(&mut direction, &frame(1, END_HEADERS, 5, FIRST), &mut told);
    push(&mut direction, &frame(1, END_HEADERS, 7, AGAIN), &mut told);
    assert_eq!(
        told.lines,
        [
            "3 :method=GET :scheme=http :path=/ ?=?".to_owned(),
            format!("5 {HOST}"),
            format!("7 {HOST}")
        ]
    );
    assert_eq!(direction.counters().skipped, 1000);
    // A row of three behind other bytes; the last one goes on in the next segment.
    let (mut direction, mut told) = (Direction::joined_late(), Told::default());
    let row = [frame(6, 1, 0, b"12345678"), frame(4, 1, 0, b"")].concat();
    let headers = frame(1, END_HEADERS, 9, FIRST);
    push(
        &mut direction,
        &[b"rest", row.as_slice(), &headers[..15]].concat(),
        &mut told,
    );
    push(&mut direction, &headers[15..], &mut told);
    assert_eq!(told.lines, [format!("9 {HOST}")]);
    assert_eq!(direction.counters().skipped, 4);
}

#[test]
fn attacks_are_bounded_and_counted() {
    let too_many = |part: &[u8], count: usize| {
        let (mut direction, mut told) = (Direction::of_server(), Told::default());
        push(&mut direction, &frame(1, END_HEADERS, 1, FIRST), &mut told);
        push(&mut direction, &frame(1, 0, 3, AGAIN), &mut told);
        for _ in 0..count {
            push(&mut direction, &frame(9, 0, 3, part), &mut told);
            let held = direction
                .block
                .as_ref()
                .map_or(0, |block| block.bytes.capacity());
            assert!(held <= 2 * MAX_BLOCK);
        }
        push(&mut direction, &frame(9, END_HEADERS, 3, b""), &mut told);
        push(&mut direction, &frame(1, END_HEADERS, 5, AGAIN), &mut told);
        (told.lines, direction.counters())
    };
    // CONTINUATION without end, empty and large: its stream is named, and the table is not trusted any more.
    for (part, count) in [(&b""[..], 1000), (&[0x82; 16_000], 50)] {
        let (lines, counters) = too_many(part, count);
        assert_eq!(
            lines[1..],
            ["3  Long", "5 :method=GET :scheme=http :path=/ ?=?"]
        );
        assert_eq!((counters.bad_blocks, counters.bad_frames), (1, 0));
    }
    let refused = [
        // No preface; something between the parts of a block; a part of none; padding longer than its frame; a
        // frame of a length that it cannot have.
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        [
            PREFACE,
            &frame(1, 0, 1, FIRST),
            &frame(6, 0, 0, b"12345678"),
        ]
        .concat(),
        [PREFACE, &frame(9, END_HEADERS, 1, FIRST)].concat(),
        [PREFACE, &frame(0, PADDED, 1, b"\x09content.")].concat(),
        [PREFACE, &frame(1, PADDED, 1, b"\x30\x82\x86")].concat(),
        [PREFACE, &frame(8, 0, 1, b"\0\0\0\0\0")].concat(),
    ];
    for bytes in refused {
        let (mut direction, mut told) = (Direction::of_client(), Told::default());
        push(&mut direction, &bytes, &mut told);
        assert_eq!((direction.counters().bad_frames, told.lines.len()), (1, 0));
    }
}
