//! The language of attacks: a row begins with who is hostile and what it is called, its steps follow, one on a line
//! behind white space.
//!
//! ```text
//! server: NAME                  the hostile end is the server; `client:` the client
//! server* NAME: ..              a `*` behind who it is: also in every run of the tests; a `6`: IPv6 alone
//!   open                        the handshake
//!   syn | synack | ack | rst    one segment; a TEXT behind it is its payload
//!   data "TEXT"                 the next bytes of the stream
//!   response "TEXT"             the same, behind a head of HTTP with its length
//!   request "PATH" ["FIELD"]    a GET
//!   hello "NAME"                the first message of a TLS client, which must not arrive whole; before other words:
//!                               `records N` of so many bytes, `before N` bytes of another extension before the
//!                               name, `minor N` version of the records, `empty` records between
//!   datagram "TEXT" [times N]   by UDP, to the port of `port N` where the row has that
//!   fin                         the end of the stream
//!   fill N                      so many bytes more, as fast as they are acknowledged
//!   wait syn|synack|ack|request|data|reset
//!   expect "TEXT"               the honest end reads this, with or without what inspects
//!   forbid "TEXT" | N           this must not pass, or what must not in other rows where so many bytes came in all
//! ```
//! Words behind a segment change it:
//!
//! ```text
//! at N         place in the stream: it does not count as sent, and is not sent again
//! ack +N|-N    acknowledges so much more or less than what has come
//! ts +N|-N     timestamp, against the newest one sent; a later one counts for all that follow
//! ts none      without
//! ttl N        of 2 what arrives is dropped at a hop behind the gateway
//! flags FSRPAU exactly these; `flags -` none
//! urg N        URG and the pointer
//! win N        window
//! md5 | badsum an option that nobody agreed on; a wrong checksum
//! reserved     a reserved bit is set
//! dstopt N     so many headers of destination options (IPv6)
//! discard | routing | ah        one header that the receiver drops the packet for (IPv6)
//! frag N       in IP fragments of N bytes; `overlap`: other bytes in the place of the first one follow it
//! pieces N     in segments of N bytes; `reversed`: the last one first
//! from -N      the bytes begin so many before
//! ```
//! In texts `\r`, `\n`, `\"`, `\\` and `\xNN` are bytes. What stands behind `#` is a comment.

use super::honest::{Form, hello};
use super::{FORBIDDEN, Family};
use crate::conversation::Side;
use linkweir_wire::TcpFlags;
use std::fmt;

/// A line that says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Wrong {}

/// The versions of IP that a row is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// Both.
    Both,
    /// IPv6, for what only that has.
    V6,
}

impl Families {
    /// Whether a version is one of them.
    #[must_use]
    pub fn has(self, family: Family) -> bool {
        self == Self::Both || family == Family::V6
    }
}

/// A row of the matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// Which end plays the script.
    pub hostile: Side,
    /// Whether it is of those that every run of the tests has.
    pub is_of_every_run: bool,
    /// The versions of IP.
    pub families: Families,
    /// What the honest end reads in any case.
    pub expected: Option<Vec<u8>>,
    /// The port of the server for datagrams, where it is not the row's own.
    pub(super) port: Option<u16>,
    /// What it must not read.
    pub(super) forbidden: Forbidden,
    pub(super) steps: Vec<Step>,
}

/// What must not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Forbidden {
    /// One of [`FORBIDDEN`].
    Usual,
    Text(Vec<u8>),
    /// The same, where so many bytes came in all.
    UsualWithin(usize),
    /// So many bytes, whatever they are.
    Length(usize),
}

impl Row {
    /// Whether it is about UDP.
    pub(super) fn has_datagrams(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step, Step::Datagram(..)))
    }

    /// Whether what the honest end read has what must not pass.
    #[must_use]
    pub fn has_passed(&self, came: &[u8]) -> bool {
        let has = |text: &[u8]| came.windows(text.len()).any(|window| window == text);
        let has_usual = || FORBIDDEN.iter().any(|text| has(text.as_bytes()));
        match &self.forbidden {
            Forbidden::Usual => has_usual(),
            Forbidden::UsualWithin(length) => came.len() >= *length && has_usual(),
            Forbidden::Text(text) => has(text),
            Forbidden::Length(length) => came.len() >= *length,
        }
    }
}

/// One line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Open,
    Send(Send),
    /// So many times the same.
    Datagram(Vec<u8>, usize),
    Fill(usize),
    Wait(Until),
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Syn,
    SynAck,
    /// All that was sent is acknowledged.
    Ack,
    /// The head of a request.
    Request,
    /// A byte more.
    Data,
    Reset,
}

/// How a segment's timestamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    Against(i32),
    None,
}

/// A header of IPv6 before that of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    /// Destination options that say nothing.
    Options(usize),
    /// One that has its receiver drop the packet (RFC 8200 sec. 4.2).
    Discard,
    /// A routing header of an unknown type with segments left (RFC 8200 sec. 4.4).
    Routing,
    /// An authentication header that nobody agreed on (RFC 4302).
    Authentication,
}

/// Segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Send {
    /// Whether it has the number before the first byte.
    pub is_opening: bool,
    pub flags: TcpFlags,
    pub payload: Vec<u8>,
    /// Place in the stream, where it is not the next one.
    pub at: Option<u32>,
    pub before: u32,
    pub ack: i32,
    pub stamp: Stamp,
    pub ttl: u8,
    pub urgent: u16,
    pub window: u16,
    pub has_signature: bool,
    pub has_bad_checksum: bool,
    pub has_reserved_bit: bool,
    pub extension: Option<Extension>,
    pub fragments: Option<usize>,
    pub overlaps: bool,
    pub pieces: Option<usize>,
    pub is_reversed: bool,
}

impl Send {
    pub(super) const fn new(flags: TcpFlags, payload: Vec<u8>) -> Self {
        Self {
            is_opening: false,
            flags,
            payload,
            at: None,
            before: 0,
            ack: 0,
            stamp: Stamp::Against(0),
            ttl: 64,
            urgent: 0,
            window: 65_535,
            has_signature: false,
            has_bad_checksum: false,
            has_reserved_bit: false,
            extension: None,
            fragments: None,
            overlaps: false,
            pieces: None,
            is_reversed: false,
        }
    }

    pub(super) fn opening(flags: TcpFlags) -> Self {
        Self {
            is_opening: true,
            ..Self::new(flags, Vec::new())
        }
    }
}

/// Reads a list.
///
/// # Errors
/// The first line that says nothing.
pub fn rows(text: &str) -> Result<Vec<Row>, Wrong> {
    let mut all: Vec<Row> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |what: &str| Wrong {
            line: number,
            what: what.to_owned(),
        };
        let words = words(line).ok_or_else(|| wrong("a text that does not end"))?;
        if words.is_empty() {
            continue;
        }
        if line.starts_with(char::is_whitespace) {
            let row = all.last_mut().ok_or_else(|| wrong("a step of no row"))?;
            let mut words = Words { words, at: 0 };
            words.step(row).ok_or_else(|| wrong("no such step"))?;
            if words.at < words.words.len() {
                return Err(wrong("words that no step has"));
            }
        } else {
            all.push(heading(line).ok_or_else(|| wrong("no such heading"))?);
        }
    }
    Ok(all)
}

fn heading(line: &str) -> Option<Row> {
    let (who, name) = line.split_once(':')?;
    let of_every_run = who.strip_suffix('*');
    let who = of_every_run.unwrap_or(who);
    let of_v6 = who.strip_suffix('6');
    let hostile = match of_v6.unwrap_or(who) {
        "server" => Side::Server,
        "client" => Side::Client,
        _ => return None,
    };
    Some(Row {
        name: name.trim().to_owned(),
        hostile,
        is_of_every_run: of_every_run.is_some(),
        families: if of_v6.is_some() {
            Families::V6
        } else {
            Families::Both
        },
        expected: None,
        port: None,
        forbidden: Forbidden::Usual,
        steps: Vec::new(),
    })
}

#[derive(Debug)]
enum Token {
    Word(String),
    Text(Vec<u8>),
}

/// The words of a line; nothing where a text does not end.
fn words(line: &str) -> Option<Vec<Token>> {
    let mut all = Vec::new();
    let mut rest = line.chars().peekable();
    while let Some(next) = rest.peek().copied() {
        if next == '#' {
            break;
        }
        if next.is_whitespace() {
            rest.next();
        } else if next == '"' {
            rest.next();
            all.push(Token::Text(text(&mut rest)?));
        } else {
            let mut word = String::new();
            while let Some(letter) = rest.next_if(|letter| !letter.is_whitespace()) {
                word.push(letter);
            }
            all.push(Token::Word(word));
        }
    }
    Some(all)
}

/// A text up to its end.
fn text(rest: &mut impl Iterator<Item = char>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let letter = match rest.next()? {
            '"' => return Some(bytes),
            '\\' => match rest.next()? {
                'r' => '\r',
                'n' => '\n',
                'x' => {
                    let digits: String = rest.take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).ok()?);
                    continue;
                }
                other => other,
            },
            other => other,
        };
        bytes.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

struct Words {
    words: Vec<Token>,
    at: usize,
}

impl Words {
    fn word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.words.get(self.at) else {
            return None;
        };
        self.at += 1;
        Some(word.clone())
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let Some(Token::Text(text)) = self.words.get(self.at) else {
            return None;
        };
        self.at += 1;
        Some(text.clone())
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.word()?.parse().ok()
    }

    fn step(&mut self, row: &mut Row) -> Option<()> {
        let step = match self.word()?.as_str() {
            "open" => Step::Open,
            "port" => {
                row.port = Some(self.number()?);
                return Some(());
            }
            "datagram" => {
                let text = self.text()?;
                match self.word().as_deref() {
                    None => Step::Datagram(text, 1),
                    Some("times") => Step::Datagram(text, self.number()?),
                    Some(_) => return None,
                }
            }
            "fill" => Step::Fill(self.number()?),
            "wait" => Step::Wait(self.until()?),
            "expect" => {
                row.expected = Some(self.text()?);
                return Some(());
            }
            "forbid" => {
                row.forbidden = match self.text() {
                    Some(text) => Forbidden::Text(text),
                    None => Forbidden::UsualWithin(self.number()?),
                };
                return Some(());
            }
            "syn" => self.changed(Send::opening(TcpFlags::SYN))?,
            "synack" => self.changed(Send::opening(TcpFlags::SYN | TcpFlags::ACK))?,
            "ack" => self.send(TcpFlags::ACK, Vec::new())?,
            "fin" => self.send(TcpFlags::FIN | TcpFlags::ACK, Vec::new())?,
            "rst" => self.send(TcpFlags::RST | TcpFlags::ACK, Vec::new())?,
            "data" => {
                let text = self.text()?;
                self.send(TcpFlags::PSH | TcpFlags::ACK, text)?
            }
            "response" => {
                let text = self.text()?;
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
                let bytes = [head.as_bytes(), &text].concat();
                self.send(TcpFlags::PSH | TcpFlags::ACK, bytes)?
            }
            "hello" => {
                let bytes = self.hello()?;
                row.forbidden = Forbidden::Length(bytes.len());
                self.send(TcpFlags::PSH | TcpFlags::ACK, bytes)?
            }
            "request" => {
                let path = self.text()?;
                let mut bytes = [b"GET ", &path[..], b" HTTP/1.1\r\nHost: a.test\r\n"].concat();
                while let Some(field) = self.text() {
                    bytes.extend(field);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"\r\n");
                self.send(TcpFlags::PSH | TcpFlags::ACK, bytes)?
            }
            _ => return None,
        };
        row.steps.push(step);
        Some(())
    }

    fn hello(&mut self) -> Option<Vec<u8>> {
        let name = self.text()?;
        let mut form = Form::default();
        loop {
            let before = self.at;
            match self.word().as_deref() {
                Some("records") => form.record = self.number()?,
                Some("before") => form.before = self.number()?,
                Some("minor") => form.minor = self.number()?,
                Some("empty") => form.has_empty = true,
                _ => {
                    self.at = before;
                    return Some(hello(&name, form));
                }
            }
        }
    }

    fn until(&mut self) -> Option<Until> {
        Some(match self.word()?.as_str() {
            "syn" => Until::Syn,
            "synack" => Until::SynAck,
            "ack" => Until::Ack,
            "request" => Until::Request,
            "data" => Until::Data,
            "reset" => Until::Reset,
            _ => return None,
        })
    }

    fn send(&mut self, flags: TcpFlags, payload: Vec<u8>) -> Option<Step> {
        self.changed(Send::new(flags, payload))
    }

    fn changed(&mut self, mut send: Send) -> Option<Step> {
        if let Some(data) = self.text() {
            send.payload = data;
        }
        while let Some(word) = self.word() {
            match word.as_str() {
                "at" => send.at = Some(self.number()?),
                "from" => send.before = self.number::<i32>()?.unsigned_abs(),
                "ack" => send.ack = self.number()?,
                "ts" => {
                    let value = self.word()?;
                    send.stamp = match value.as_str() {
                        "none" => Stamp::None,
                        number => Stamp::Against(number.parse().ok()?),
                    };
                }
                "ttl" => send.ttl = self.number()?,
                "flags" => send.flags = flags_of(&self.word()?)?,
                "urg" => {
                    send.urgent = self.number()?;
                    send.flags = send.flags | TcpFlags::URG;
                }
                "win" => send.window = self.number()?,
                "md5" => send.has_signature = true,
                "badsum" => send.has_bad_checksum = true,
                "reserved" => send.has_reserved_bit = true,
                "dstopt" => send.extension = Some(Extension::Options(self.number()?)),
                "discard" => send.extension = Some(Extension::Discard),
                "routing" => send.extension = Some(Extension::Routing),
                "ah" => send.extension = Some(Extension::Authentication),
                "frag" => send.fragments = Some(self.number()?),
                "overlap" => send.overlaps = true,
                "pieces" => send.pieces = Some(self.number()?),
                "reversed" => send.is_reversed = true,
                _ => return None,
            }
        }
        Some(Step::Send(send))
    }
}

fn flags_of(letters: &str) -> Option<TcpFlags> {
    let letters = letters.strip_prefix('-').unwrap_or(letters);
    letters.chars().try_fold(TcpFlags(0), |flags, letter| {
        let one = match letter {
            'F' => TcpFlags::FIN,
            'S' => TcpFlags::SYN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            'A' => TcpFlags::ACK,
            'U' => TcpFlags::URG,
            _ => return None,
        };
        Some(flags | one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_segments() {
        let rows = rows(
            "server6*: a name  # no comment here\n\
             \x20 open\n\
             \x20 data \"a\\r\\x00\\\"#\" at 3 ts -5 flags PU dstopt 17 # a comment\n\
             \n\
             client: other\n  wait ack\n  request \"/x\" \"A: b\"\n  expect \"ok\"\n",
        )
        .unwrap();
        let [first, second] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!(
            (first.hostile, second.hostile),
            (Side::Server, Side::Client)
        );
        assert_eq!(
            (first.families, second.families),
            (Families::V6, Families::Both)
        );
        assert!(first.is_of_every_run && !second.is_of_every_run);
        let Some(Step::Send(send)) = first.steps.get(1) else {
            panic!("{first:?}")
        };
        assert_eq!(send.payload, b"a\r\0\"#");
        assert_eq!(send.at, Some(3));
        assert_eq!(send.stamp, Stamp::Against(-5));
        assert_eq!(send.flags, TcpFlags::PSH | TcpFlags::URG);
        assert_eq!(send.extension, Some(Extension::Options(17)));
        assert_eq!(second.expected.as_deref(), Some(&b"ok"[..]));
        let Some(Step::Send(send)) = second.steps.get(1) else {
            panic!("{second:?}")
        };
        assert_eq!(
            send.payload,
            b"GET /x HTTP/1.1\r\nHost: a.test\r\nA: b\r\n\r\n"
        );
    }

    #[test]
    fn what_is_no_word_is_told_with_its_line() {
        for (text, line) in [
            ("nobody: x", 1),
            ("  open", 1),
            ("server: x\n  jump", 2),
            ("server: x\n  ack sideways", 2),
            ("server: x\n  data \"x", 2),
            ("server: x\n\n  open wide", 3),
        ] {
            assert_eq!(rows(text).unwrap_err().line, line, "{text}");
        }
    }
}
