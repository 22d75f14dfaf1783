//! Where events end in the content of a response.

use memchr::{memchr, memchr2};

/// Longest header of a WebSocket frame without a mask (RFC 6455 sec. 5.2).
const MAX_FRAME_HEADER: usize = 10;
/// What may stand in front of `text/event-stream` (WHATWG HTML sec. 9.2.5).
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// What events look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `text/event-stream` (WHATWG HTML sec. 9.2).
    EventStream,
    /// A JSON text in each line.
    Lines,
    /// Messages of a server in WebSocket (RFC 6455).
    WebSocket,
}

impl Format {
    /// The format of content of this type, where that is one of streams and the content is not coded.
    #[inline]
    pub(crate) fn of(content_type: &[u8], content_encoding: &[u8]) -> Option<Self> {
        // Most types are others, and differ in their first bytes.
        match content_type {
            [b't' | b'T', _, _, _, b'/', b'e' | b'E', ..]
            | [b'a' | b'A', _, _, _, _, _, _, _, _, _, _, b'/', ..] => {
                Self::of_streams(content_type, content_encoding)
            }
            _ => None,
        }
    }

    fn of_streams(content_type: &[u8], content_encoding: &[u8]) -> Option<Self> {
        if !(content_encoding.is_empty() || content_encoding.eq_ignore_ascii_case(b"identity")) {
            return None;
        }
        let end = memchr(b';', content_type).unwrap_or(content_type.len());
        let name = content_type.get(..end)?.trim_ascii();
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if is(b"text/event-stream") {
            return Some(Self::EventStream);
        }
        let lines: [&[u8]; 6] = [
            b"application/x-ndjson",
            b"application/ndjson",
            b"application/jsonl",
            b"application/x-jsonlines",
            b"application/jsonlines",
            b"application/stream+json",
        ];
        lines.into_iter().any(is).then_some(Self::Lines)
    }
}

/// What the line of an event stream is that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// So many bytes of `data`.
    Data(u8),
    /// The field `data`.
    IsData,
    /// A comment, or any other field.
    Other,
    /// Behind missing bytes: no line counts before an empty one.
    Unknown,
    /// Behind missing bytes, at the beginning of a line.
    UnknownStart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    EventStream {
        line: Line,
        /// Whether the event at hand has data.
        has_data: bool,
        /// A line feed here belongs to the line that has ended.
        is_behind_cr: bool,
        /// Bytes of the mark at the beginning; beyond it, more than there are.
        mark: u8,
    },
    Lines {
        has_text: bool,
        is_unknown: bool,
    },
    WebSocket {
        header: [u8; MAX_FRAME_HEADER],
        had: u8,
        /// Bytes that are left of a frame, and whether it ends a message.
        left: u64,
        ends_message: bool,
    },
    /// Where events begin is not known any more.
    Lost,
}

/// Finds the ends of events in content that comes in pieces of any size; nothing is kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan(State);

impl Scan {
    pub(crate) const fn new(format: Format) -> Self {
        Self(match format {
            Format::EventStream => State::EventStream {
                line: Line::Data(0),
                has_data: false,
                is_behind_cr: false,
                mark: 0,
            },
            Format::Lines => State::Lines {
                has_text: false,
                is_unknown: false,
            },
            Format::WebSocket => State::WebSocket {
                header: [0; MAX_FRAME_HEADER],
                had: 0,
                left: 0,
                ends_message: false,
            },
        })
    }

    /// Whether nothing more is found.
    pub(crate) fn is_lost(&self) -> bool {
        self.0 == State::Lost
    }

    /// The next bytes; how many events end in them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> u32 {
        match &mut self.0 {
            State::EventStream {
                line,
                has_data,
                is_behind_cr,
                mark,
            } => push_event_stream(bytes, line, has_data, is_behind_cr, mark),
            State::Lines {
                has_text,
                is_unknown,
            } => push_lines(bytes, has_text, is_unknown),
            State::WebSocket {
                header,
                had,
                left,
                ends_message,
            } => match push_frames(bytes, header, had, left, ends_message) {
                Some(events) => events,
                None => {
                    self.0 = State::Lost;
                    0
                }
            },
            State::Lost => 0,
        }
    }

    /// So many bytes are missing, or an unknown number.
    pub(crate) fn miss(&mut self, len: Option<u32>) {
        match &mut self.0 {
            State::EventStream {
                line,
                has_data,
                is_behind_cr,
                mark,
            } => {
                (*line, *has_data, *is_behind_cr, *mark) = (Line::Unknown, false, false, u8::MAX);
            }
            State::Lines {
                has_text,
                is_unknown,
            } => (*has_text, *is_unknown) = (false, true),
            State::WebSocket { left, .. } => {
                let rest = len.and_then(|len| left.checked_sub(u64::from(len)));
                match rest {
                    // Where a frame ends with what is missing, the event that it ended is among that.
                    Some(rest @ 1..) => *left = rest,
                    _ => self.0 = State::Lost,
                }
            }
            State::Lost => {}
        }
    }

    /// Whether the end of the content ends an event: a last line without a line end.
    pub(crate) const fn has_rest(&self) -> bool {
        matches!(
            self.0,
            State::Lines {
                has_text: true,
                is_unknown: false
            }
        )
    }
}

fn push_event_stream(
    bytes: &[u8],
    line: &mut Line,
    has_data: &mut bool,
    is_behind_cr: &mut bool,
    mark: &mut u8,
) -> u32 {
    let mut events = 0;
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if let Some(expected) = BYTE_ORDER_MARK.get(usize::from(*mark)) {
            if first == *expected {
                *mark += 1;
                continue;
            }
            *mark = u8::MAX;
        }
        if std::mem::take(is_behind_cr) && first == b'\n' {
            continue;
        }
        if matches!(first, b'\r' | b'\n') {
            *is_behind_cr = first == b'\r';
            match *line {
                // An empty line ends the event, which counts if it has data.
                Line::Data(0) => events += u32::from(std::mem::take(has_data)),
                Line::IsData | Line::Data(4) => *has_data = true,
                Line::Data(_) | Line::Other | Line::Unknown | Line::UnknownStart => {}
            }
            *line = match *line {
                Line::Unknown => Line::UnknownStart,
                _ => Line::Data(0),
            };
            continue;
        }
        *line = match *line {
            Line::Data(at) => match (b"data".get(usize::from(at)), first) {
                (Some(expected), first) if first == *expected => Line::Data(at + 1),
                (None, b':') => Line::IsData,
                _ => Line::Other,
            },
            Line::UnknownStart => Line::Unknown,
            other => other,
        };
        if !matches!(*line, Line::Data(_)) {
            // What a field says is of no interest.
            let end = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    events
}

fn push_lines(bytes: &[u8], has_text: &mut bool, is_unknown: &mut bool) -> u32 {
    let mut events = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = memchr(b'\n', rest);
        let (line, behind) = rest.split_at(end.unwrap_or(rest.len()));
        *has_text |= !line.trim_ascii().is_empty();
        let Some((_, behind)) = behind.split_first() else {
            break;
        };
        rest = behind;
        let counts = std::mem::take(has_text) && !std::mem::take(is_unknown);
        events += u32::from(counts);
    }
    events
}

/// Messages that end in these bytes; `None` if they are no frames of a server.
fn push_frames(
    bytes: &[u8],
    header: &mut [u8; MAX_FRAME_HEADER],
    had: &mut u8,
    left: &mut u64,
    ends_message: &mut bool,
) -> Option<u32> {
    let mut events = 0;
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        if *left > 0 {
            let here = usize::try_from(*left).unwrap_or(usize::MAX);
            let (content, behind) = rest.split_at(here.min(rest.len()));
            rest = behind;
            *left -= content.len() as u64;
            if *left == 0 {
                events += u32::from(std::mem::take(ends_message));
            }
            continue;
        }
        rest = behind;
        if let Some(place) = header.get_mut(usize::from(*had)) {
            *place = first;
        }
        *had += 1;
        let [flags, length, extended @ ..] = *header;
        let opcode = flags & 0x0f;
        // Servers do not mask (RFC 6455 sec. 5.1); other numbers mean nothing (sec. 5.2).
        if !matches!(opcode, 0..=2 | 8..=10) || (*had > 1 && length & 0x80 != 0) {
            return None;
        }
        let needed = match (*had > 1, length) {
            (false, _) => 2,
            (true, 127) => 10,
            (true, 126) => 4,
            (true, _) => 2,
        };
        if *had < needed {
            continue;
        }
        *had = 0;
        let [a, b, ..] = extended;
        *left = match length {
            127 => u64::from_be_bytes(extended),
            126 => u64::from(u16::from_be_bytes([a, b])),
            short => u64::from(short),
        };
        *ends_message = opcode < 8 && flags & 0x80 != 0;
        if *left == 0 {
            events += u32::from(std::mem::take(ends_message));
        }
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events in a text, however it is cut.
    fn events(format: Format, text: &[u8]) -> u32 {
        let mut counts = (1..=text.len()).map(|size| {
            let mut scan = Scan::new(format);
            let found: u32 = text.chunks(size).map(|piece| scan.push(piece)).sum();
            found + u32::from(scan.has_rest())
        });
        let count = counts.next().unwrap();
        assert!(counts.all(|other| other == count), "it depends on the cut");
        count
    }

    #[test]
    fn lines_end_in_three_ways_and_an_empty_one_ends_an_event() {
        let texts: [(&str, u32); 12] = [
            ("data: a\n\ndata: b\n\n", 2),
            ("data: a\r\n\r\ndata: b\r\n\r\n", 2),
            ("data: a\r\rdata: b\r\r", 2),
            ("data: a\r\n\ndata: b\n\r\n", 2),
            ("event: x\nid: 1\ndata: a\ndata: b\n\n", 1),
            (": ping\n\n: ping\n\n", 0),
            (": ping\ndata: a\n\n\n\n", 1),
            ("event: x\n\n", 0),
            ("data\n\n", 1),
            ("data:\n\n", 1),
            ("database: a\n\ndat\n\n data: b\n\n", 0),
            ("data: a\n", 0),
        ];
        for (text, count) in texts {
            assert_eq!(
                events(Format::EventStream, text.as_bytes()),
                count,
                "{text:?}"
            );
        }
        let marked = b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n";
        assert_eq!(
            events(Format::EventStream, marked),
            1,
            "once, at the beginning"
        );
    }

    #[test]
    fn a_line_that_is_not_empty_is_an_event() {
        assert_eq!(events(Format::Lines, b"{}\n{}\r\n\r\n  \n{\"a\": 1}"), 3);
        assert_eq!(events(Format::Lines, b"\n"), 0);
    }

    #[test]
    fn the_last_fragment_ends_a_message() {
        let long = [&[0x82, 126, 1, 0][..], &[7; 256]].concat();
        let longest = [&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0][..], &[7; 65_536]].concat();
        let ping = [0x89, 2, 1, 2];
        let fragments = [&[0x01, 1, b'a'][..], &ping, &[0x80, 1, b'b'], &[0x81, 0]].concat();
        assert_eq!(events(Format::WebSocket, &fragments), 2);
        assert_eq!(events(Format::WebSocket, &[long, fragments].concat()), 3);
        let mut scan = Scan::new(Format::WebSocket);
        assert_eq!(scan.push(&longest), 1);
        assert_eq!(scan.push(&[0x81, 0x81, 1, 2, 3, 4, 5]), 0, "masked");
        assert!(scan.is_lost());
        let mut scan = Scan::new(Format::WebSocket);
        assert_eq!(scan.push(&[0x83, 0]), 0, "no opcode of RFC 6455");
        assert!(scan.is_lost());
    }

    #[test]
    fn behind_missing_bytes_only_whole_events_count() {
        let mut scan = Scan::new(Format::EventStream);
        assert_eq!(scan.push(b"data: a\n\ndata: b"), 1);
        scan.miss(Some(10));
        assert_eq!(scan.push(b"\ndata: half of one\n\ndata: c\n\n"), 1);
        let mut scan = Scan::new(Format::Lines);
        scan.miss(None);
        assert_eq!(scan.push(b"half}\n{}\n"), 1);
        // The length of a frame is known, but not where the next one begins if its header is missing.
        let mut scan = Scan::new(Format::WebSocket);
        assert_eq!(scan.push(&[0x81, 10, 1]), 0);
        scan.miss(Some(5));
        assert_eq!(scan.push(&[0; 4]), 1);
        assert_eq!(scan.push(&[0x81, 10, 1]), 0);
        scan.miss(Some(10));
        assert!(scan.is_lost());
    }

    #[test]
    fn types_of_streams() {
        use Format::{EventStream, Lines};
        let of = |text: &str| Format::of(text.as_bytes(), b"");
        assert_eq!(of("text/event-stream"), Some(EventStream));
        assert_eq!(of("Text/Event-Stream; charset=utf-8"), Some(EventStream));
        assert_eq!(of("application/x-ndjson"), Some(Lines));
        assert_eq!(of("application/stream+json;charset=UTF-8"), Some(Lines));
        assert_eq!(of("application/json"), None);
        assert_eq!(of("text/event-streams"), None);
        assert_eq!(Format::of(b"text/event-stream", b"gzip"), None);
        assert_eq!(
            Format::of(b"text/event-stream", b"Identity"),
            Some(EventStream)
        );
    }
}
