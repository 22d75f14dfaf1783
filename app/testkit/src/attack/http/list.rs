//! The list, family by family.

use super::Technique;
use super::spellings::{CHUNK_SIZES, CHUNKS, GZIP, LENGTHS, STATUS_LINES, TRANSFER_ENCODINGS};
use crate::attack::coding;

/// More bytes than a response has.
const WHOLE: usize = usize::MAX;
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// How a body hides what is forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Cut over chunks.
    Cut,
    /// In an extension of a chunk.
    Extension,
}

/// All of them, with these forbidden bytes.
#[must_use]
pub fn techniques(forbidden: &[u8]) -> Vec<Technique> {
    let mut list = List {
        forbidden,
        body: [b"begin ", forbidden, b" end"].concat(),
        all: Vec::new(),
    };
    list.harmless();
    list.transfer_encodings();
    list.lengths();
    list.heads();
    list.chunks();
    list.status_lines();
    list.codings();
    list.parts();
    list.all
}

struct List<'a> {
    forbidden: &'a [u8],
    body: Vec<u8>,
    all: Vec<Technique>,
}

impl List<'_> {
    fn push(&mut self, name: &str, head: &str, body: &[u8]) {
        let response = [head.as_bytes(), body].concat();
        self.all.push(Technique {
            name: name.escape_debug().to_string(),
            response,
            expected: None,
            resumed: None,
            piece: WHOLE,
        });
    }

    /// The body in chunks.
    fn chunked(&self, form: Form) -> Vec<u8> {
        match form {
            Form::Cut => {
                let mut bytes = Vec::new();
                for chunk in self.body.chunks(10) {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
                bytes
            }
            Form::Extension => [b"5;", self.forbidden, b"\r\nhello\r\n0\r\n\r\n"].concat(),
        }
    }

    fn harmless(&mut self) {
        const BODY: &[u8] = b"nothing to object to";
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY.len());
        self.push("a harmless file", &head, BODY);
        if let Some(technique) = self.all.last_mut() {
            technique.expected = Some(BODY.to_vec());
        }
    }

    fn transfer_encodings(&mut self) {
        for form in [Form::Cut, Form::Extension] {
            let body = self.chunked(form);
            for field in TRANSFER_ENCODINGS {
                let head = format!("HTTP/1.1 200 OK\r\n{field}\r\nConnection: close\r\n\r\n");
                self.push(&format!("{field}, {form:?}"), &head, &body);
            }
            let length = body.len();
            for (what, fields) in [
                (
                    "length, then chunked",
                    format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"),
                ),
                (
                    "chunked, then length",
                    format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"),
                ),
                (
                    "length 0, then chunked",
                    "Content-Length: 0\r\nTransfer-Encoding: chunked".to_owned(),
                ),
                (
                    "length 3, then chunked",
                    "Content-Length: 3\r\nTransfer-Encoding: chunked".to_owned(),
                ),
            ] {
                let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
                self.push(&format!("{what}, {form:?}"), &head, &body);
            }
            let head = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            self.push(&format!("chunked in HTTP/1.0, {form:?}"), head, &body);
            let head = format!("\r\n{CHUNKED}");
            let name = format!("chunked behind an empty line, {form:?}");
            self.push(&name, &head, &body);
            for field in ["X : y", "X\u{e9}: y", ": y"] {
                let head =
                    format!("HTTP/1.1 200 OK\r\n{field}\r\nTransfer-Encoding: chunked\r\n\r\n");
                let name = format!("chunked behind the field {field}, {form:?}");
                self.push(&name, &head, &body);
            }
        }
    }

    fn lengths(&mut self) {
        let body = self.body.clone();
        for field in LENGTHS {
            let fields = field.replace('N', &body.len().to_string());
            let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\nConnection: close\r\n\r\n");
            self.push(field, &head, &body);
        }
        for (what, length) in [
            ("one too short", body.len() - 1),
            ("one too long", body.len() + 1),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            self.push(&format!("Content-Length {what}"), &head, &body);
        }
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
        self.push("until the connection ends", head, &body);
        self.push("HTTP/0.9", "", &body);
    }

    /// Line ends, and what else a head may have.
    fn heads(&mut self) {
        let length = self.body.len();
        let bodies = [
            (format!("Content-Length: {length}"), self.body.clone()),
            (
                "Transfer-Encoding: chunked".to_owned(),
                self.chunked(Form::Cut),
            ),
        ];
        for (field, body) in &bodies {
            let kind = field.split(':').next().unwrap_or_default();
            for (what, head) in [
                ("LF", format!("HTTP/1.1 200 OK\n{field}\n\n")),
                ("LF CRLF", format!("HTTP/1.1 200 OK\n{field}\n\r\n")),
                ("CRLF LF", format!("HTTP/1.1 200 OK\r\n{field}\r\n\n")),
                (
                    "CR CR LF",
                    format!("HTTP/1.1 200 OK\r\r\n{field}\r\r\n\r\r\n"),
                ),
                ("CR", format!("HTTP/1.1 200 OK\r{field}\r\r")),
                (
                    "a blank in the empty line",
                    format!("HTTP/1.1 200 OK\r\n{field}\r\n \r\n\r\n"),
                ),
                (
                    "a CR before the empty line",
                    format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\r\n"),
                ),
                (
                    "an empty line with NUL",
                    format!("HTTP/1.1 200 OK\r\n{field}\r\n\0\r\n\r\n"),
                ),
                (
                    "a head of 60,000 bytes",
                    format!(
                        "HTTP/1.1 200 OK\r\nX: {}\r\n{field}\r\n\r\n",
                        "x".repeat(60_000)
                    ),
                ),
                (
                    "a head of 70,000 bytes",
                    format!(
                        "HTTP/1.1 200 OK\r\nX: {}\r\n{field}\r\n\r\n",
                        "x".repeat(70_000)
                    ),
                ),
                (
                    "90 fields",
                    format!(
                        "HTTP/1.1 200 OK\r\n{}{field}\r\n\r\n",
                        "X: y\r\n".repeat(90)
                    ),
                ),
                (
                    "200 fields",
                    format!(
                        "HTTP/1.1 200 OK\r\n{}{field}\r\n\r\n",
                        "X: y\r\n".repeat(200)
                    ),
                ),
                (
                    "a folded field",
                    format!("HTTP/1.1 200 OK\r\nX: y\r\n z\r\n{field}\r\n\r\n"),
                ),
                (
                    "a field with a high byte",
                    format!("HTTP/1.1 200 OK\r\nX\u{e9}: y\r\n{field}\r\n\r\n"),
                ),
            ] {
                self.push(&format!("{kind}, {what}"), &head, body);
            }
        }
    }

    /// Sizes, line ends and extensions of chunks.
    fn chunks(&mut self) {
        let long = format!("S;{}\r\nA\r\nR\r\nB\r\n0\r\n\r\n", "x".repeat(70_000));
        let zeros = format!("{}S\r\nA\r\nR\r\nB\r\n0\r\n\r\n", "0".repeat(70));
        self.push_chunks("a long extension", &long);
        self.push_chunks("70 zeros", &zeros);
        for size in CHUNK_SIZES {
            let body = format!("{size}\r\nA\r\nR\r\nB\r\n0\r\n\r\n");
            self.push_chunks(size, &body);
        }
        for body in CHUNKS {
            self.push_chunks(body, body);
        }
        let single = self
            .body
            .iter()
            .flat_map(|byte| [b'1', b'\r', b'\n', *byte, b'\r', b'\n']);
        let body: Vec<u8> = single.chain(*b"0\r\n\r\n").collect();
        self.push("chunks of one byte", CHUNKED, &body);
    }

    /// Two chunks, as a pattern says.
    fn push_chunks(&mut self, name: &str, pattern: &str) {
        let (first, second) = self.body.split_at(self.body.len().min(0x2a));
        let rest = format!("{:x}", second.len());
        let mut body = Vec::new();
        for byte in pattern.bytes() {
            match byte {
                b'S' => body.extend(b"2a"),
                b'T' => body.extend(b"2A"),
                b'R' => body.extend(rest.bytes()),
                b'A' => body.extend(first),
                b'B' => body.extend(second),
                other => body.push(other),
            }
        }
        self.push(&format!("chunks {name}"), CHUNKED, &body);
    }

    fn status_lines(&mut self) {
        let body = self.body.clone();
        for line in STATUS_LINES {
            let head = format!("{line}\r\nContent-Length: {}\r\n\r\n", body.len());
            self.push(&format!("status line {line}"), &head, &body);
        }
        let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(20);
        let head = format!(
            "{many}HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.push("20 times 100", &head, &body);
    }

    fn codings(&mut self) {
        let plain = self.body.clone();
        let gzip = coding::gzip(&plain);
        let coded = |field: &str, body: &[u8]| {
            format!(
                "HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            )
        };
        for field in GZIP {
            self.push(&format!("{field}, gzip"), &coded(field, &gzip), &gzip);
        }
        let half = plain.len() / 2;
        let (first, second) = plain.split_at(half);
        let members = [coding::gzip(first), coding::gzip(second)].concat();
        let mut bad_sum = gzip.clone();
        if let Some(byte) = bad_sum.iter_mut().rev().nth(5) {
            *byte ^= 0xff;
        }
        let cut = gzip.get(..gzip.len() - 8).unwrap_or_default().to_vec();
        let behind = [&coding::gzip(b"harmless")[..], &plain].concat();
        let bodies: [(&str, &str, Vec<u8>); 17] = [
            ("gzip", "two members", members),
            ("gzip", "a wrong checksum", bad_sum),
            ("gzip", "no trailer", cut),
            ("gzip", "a name", coding::gzip_with(8, b"name\0", &plain)),
            (
                "gzip",
                "an extra field",
                coding::gzip_with(4, &[3, 0, 1, 2, 3], &plain),
            ),
            ("gzip", "a comment", coding::gzip_with(16, b"x\0", &plain)),
            (
                "gzip",
                "what is forbidden as its name (a documented limit)",
                coding::gzip_with(8, &[self.forbidden, b"\0"].concat(), b"harmless"),
            ),
            (
                "gzip",
                "what is forbidden behind its end (a documented limit)",
                behind,
            ),
            ("gzip", "twice", coding::gzip(&gzip)),
            ("gzip, gzip", "twice", coding::gzip(&gzip)),
            ("gzip", "not compressed", plain.clone()),
            ("gzip", "zlib", coding::zlib(&plain)),
            ("deflate", "zlib", coding::zlib(&plain)),
            ("deflate", "raw", coding::deflate(&plain)),
            ("deflate", "not compressed", plain.clone()),
            ("identity", "not compressed", plain.clone()),
            ("zstd", "not compressed", plain),
        ];
        for (name, what, body) in bodies {
            let field = format!("Content-Encoding: {name}");
            self.push(&format!("{field}, {what}"), &coded(&field, &body), &body);
        }
        let mut chunk = format!("{:x}\r\n", gzip.len()).into_bytes();
        chunk.extend(&gzip);
        chunk.extend(b"\r\n0\r\n\r\n");
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
        self.push("Transfer-Encoding: gzip, chunked, gzip", head, &chunk);
    }

    /// A response that is cut, and the rest for who asks again.
    fn parts(&mut self) {
        let middle = self.body.len() / 2;
        let (first, second) = self.body.split_at(middle);
        let (total, last) = (self.body.len(), self.body.len() - 1);
        for of in ["*".to_owned(), total.to_string(), middle.to_string()] {
            let resumed = format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {middle}-{last}/{of}\r\n\
                 Content-Length: {}\r\n\r\n",
                second.len()
            );
            let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n");
            self.all.push(Technique {
                name: format!("cut in the middle, then a part of {of}"),
                expected: None,
                response: [whole.as_bytes(), first].concat(),
                resumed: Some([resumed.as_bytes(), second].concat()),
                piece: WHOLE,
            });
        }
    }
}
