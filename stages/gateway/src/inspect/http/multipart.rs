//! Names of the files in a form (`multipart/form-data`, RFC 7578), found while it passes by.

use linkweir_proto::http1::{Fields, SectionEnd, disposition_name};

/// Longest boundary that is looked for, bytes; RFC 2046 sec. 5.1.1 allows 70.
const MAX_BOUNDARY: usize = 200;

/// Longest header of a part that is gathered, bytes. What is beyond it has no name.
const MAX_PART_HEADER: usize = 4 * 1024;

/// Longest host that is kept for the records, bytes.
const MAX_HOST: usize = 255;

/// Where in a form the next byte is.
///
/// A delimiter begins a line, so that it can be compared as it comes: nothing of the body is kept.
#[derive(Debug)]
pub(in crate::inspect) struct Multipart {
    /// `--` and the boundary.
    delimiter: Box<[u8]>,
    host: Box<[u8]>,
    state: State,
    /// Header of the part.
    header: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// At the start of a line or behind so many bytes of a delimiter.
    Matching(usize),
    /// In a line that is not a delimiter.
    Line,
    /// Behind a delimiter, up to the end of its line.
    Delimiter,
    /// In the header of a part.
    Header(SectionEnd),
    /// Behind the header of a part.
    HeaderEnd,
}

impl Multipart {
    /// A form with this boundary; `None` where it can be none.
    pub(in crate::inspect) fn new(boundary: &[u8], host: &[u8]) -> Option<Box<Self>> {
        if boundary.is_empty() || boundary.len() > MAX_BOUNDARY {
            return None;
        }
        Some(Box::new(Self {
            delimiter: [b"--", boundary].concat().into_boxed_slice(),
            host: host.get(..MAX_HOST).unwrap_or(host).into(),
            state: State::Matching(0),
            header: Vec::new(),
        }))
    }

    /// Takes bytes up to the end of the next header of a part; says how many these are.
    pub(super) fn push(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            at += self.step(rest);
            if matches!(self.state, State::HeaderEnd) {
                break;
            }
        }
        at
    }

    /// Calls `on_name` where the header that has just ended names a file.
    pub(super) fn take_name(&mut self, mut on_name: impl FnMut(&[u8], &[u8])) {
        if !matches!(self.state, State::HeaderEnd) {
            return;
        }
        self.state = State::Matching(0);
        let header = std::mem::take(&mut self.header);
        let name = Fields::of_section(&header)
            .find(|field| field.is(b"content-disposition"))
            .map(|field| disposition_name(field.value));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            on_name(&name, &self.host);
        }
    }

    /// Takes some of the bytes, at least one.
    fn step(&mut self, bytes: &[u8]) -> usize {
        match &mut self.state {
            State::Matching(matched) => {
                let awaited = self.delimiter.get(*matched..).unwrap_or_default();
                let same = awaited
                    .iter()
                    .zip(bytes)
                    .take_while(|(a, b)| a == b)
                    .count();
                *matched += same;
                if same == awaited.len() {
                    self.state = State::Delimiter;
                } else if same < bytes.len() {
                    self.state = State::Line;
                }
                // Nothing may be the same: then the line is passed in the next step.
                if same == 0 {
                    self.pass_line(bytes)
                } else {
                    same
                }
            }
            State::Line => self.pass_line(bytes),
            State::Delimiter => match memchr::memchr(b'\n', bytes) {
                Some(feed) => {
                    self.state = State::Header(SectionEnd::default());
                    feed + 1
                }
                None => bytes.len(),
            },
            State::Header(end) => {
                let found = end.find(bytes);
                let used = found.unwrap_or(bytes.len());
                let room = MAX_PART_HEADER.saturating_sub(self.header.len());
                let kept = bytes.get(..used.min(room)).unwrap_or_default();
                self.header.extend_from_slice(kept);
                if found.is_some() {
                    self.state = State::HeaderEnd;
                }
                used
            }
            State::HeaderEnd => {
                self.state = State::Matching(0);
                self.step(bytes)
            }
        }
    }

    fn pass_line(&mut self, bytes: &[u8]) -> usize {
        match memchr::memchr(b'\n', bytes) {
            Some(feed) => {
                self.state = State::Matching(0);
                feed + 1
            }
            None => {
                self.state = State::Line;
                bytes.len()
            }
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.delimiter.len() + self.host.len() + self.header.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(body: &[u8], cut: usize) -> Vec<String> {
        let mut form = Multipart::new(b"XyZ", b"host").expect("a boundary");
        let mut names = Vec::new();
        for piece in body.chunks(cut) {
            let mut rest = piece;
            while !rest.is_empty() {
                let used = form.push(rest);
                assert!(used > 0);
                rest = &rest[used..];
                form.take_name(|name, host| {
                    assert_eq!(host, b"host");
                    names.push(String::from_utf8_lossy(name).into_owned());
                });
            }
        }
        assert!(form.held_bytes() < 3 * MAX_PART_HEADER);
        names
    }

    #[test]
    fn every_part_with_a_file_is_named() {
        let body = b"preamble --XyZ\r\n--XyZ\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n\
            --XyZ  \r\ncontent-disposition: form-data; name=\"f\"; filename=\"one.txt\"\r\nContent-Type: text/plain\r\n\r\n\
            line\n--Xy\r\n--XyY\r\n----XyZ\r\n\r\n--XyZ\r\nContent-Disposition: form-data; name=g; filename*=UTF-8''tw%C3%B6.bin\r\n\r\n\0\0\
            \r\n--XyZ\nContent-Disposition: form-data; name=\"h\"; filename=\"\"\n\n\n--XyZ--\r\nepilogue";
        for cut in [1, 2, 3, 7, 64, body.len()] {
            assert_eq!(names(body, cut), ["one.txt", "twö.bin"], "{cut}");
        }
    }

    #[test]
    fn a_long_header_is_cut() {
        let mut body = b"--XyZ\r\nX: ".to_vec();
        body.resize(100_000, b'x');
        body.extend_from_slice(b"\r\nContent-Disposition: form-data; filename=no\r\n\r\n");
        body.extend_from_slice(
            b"\r\n--XyZ\r\nContent-Disposition: form-data; filename=yes\r\n\r\n",
        );
        assert_eq!(names(&body, 1000), ["yes"]);
        assert!(Multipart::new(&[b'b'; 201], b"").is_none());
        assert!(Multipart::new(b"", b"").is_none());
    }
}
