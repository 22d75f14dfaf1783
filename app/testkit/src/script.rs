//! HTTP scripts: what client and server say to each other, random or not, and what a capture of it
//! must be found to say.

use linkweir_wire::SeqNumber;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::conversation::{Conversation, Segment};

/// How a response says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`.
    Length,
    /// One chunk and the last one.
    Chunked,
}

/// A request and what is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Method; `HEAD` is answered without a body.
    pub method: &'static str,
    /// Request target.
    pub target: String,
    /// `Host`.
    pub host: String,
    /// `User-Agent`.
    pub agent: String,
    /// Bytes of the request's body.
    pub upload: usize,
    /// Final status code.
    pub status: u16,
    /// Bytes of the response's body.
    pub body: usize,
    /// How it is framed.
    pub framing: Framing,
    /// `100 Continue` before the final response.
    pub interim: bool,
    /// Whether the request is sent before the response to the one before it.
    pub pipelined: bool,
}

impl Exchange {
    /// A GET for `target` that is answered with `200` and a body.
    #[must_use]
    pub fn get(target: impl Into<String>, body: usize) -> Self {
        Self {
            method: "GET",
            target: target.into(),
            host: "www.example.test".to_owned(),
            agent: "testkit/1.0 (scripted)".to_owned(),
            upload: 0,
            status: 200,
            body,
            framing: Framing::Length,
            interim: false,
            pipelined: false,
        }
    }

    /// The request, with its body.
    #[must_use]
    pub fn request(&self) -> Vec<u8> {
        let mut bytes = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: */*\r\n",
            self.method, self.target, self.host, self.agent
        );
        if self.upload > 0 {
            bytes.push_str(&format!("Content-Length: {}\r\n", self.upload));
        }
        bytes.push_str("\r\n");
        bytes.push_str(&"u".repeat(self.upload));
        bytes.into_bytes()
    }

    /// Whether the response has no body, whatever its head says.
    #[must_use]
    pub fn is_bodiless(&self) -> bool {
        self.method == "HEAD" || matches!(self.status, 204 | 304)
    }

    /// The final response, with its body.
    #[must_use]
    pub fn response(&self) -> Vec<u8> {
        let mut bytes = format!(
            "HTTP/1.1 {} {}\r\nServer: testkit\r\n",
            self.status,
            reason(self.status)
        );
        bytes.push_str("Content-Type: text/plain\r\n");
        let has_body = !self.is_bodiless();
        match self.framing {
            Framing::Length if self.status == 204 => bytes.push_str("\r\n"),
            Framing::Length => bytes.push_str(&format!("Content-Length: {}\r\n\r\n", self.body)),
            Framing::Chunked => bytes.push_str("Transfer-Encoding: chunked\r\n\r\n"),
        }
        match self.framing {
            _ if !has_body => {}
            Framing::Length => bytes.push_str(&"b".repeat(self.body)),
            Framing::Chunked => {
                if self.body > 0 {
                    bytes.push_str(&format!("{:x}\r\n{}\r\n", self.body, "c".repeat(self.body)));
                }
                bytes.push_str("0\r\n\r\n");
            }
        }
        bytes.into_bytes()
    }
}

/// A reason phrase for a status code.
#[must_use]
pub const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        302 => "Found",
        304 => "Not Modified",
        404 => "Not Found",
        500 => "Internal Server Error",
        _ => "Whatever",
    }
}

/// A finished transaction as the script has it: what a record must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// What was said.
    pub exchange: Exchange,
    /// Time of the first segment of the request, nanoseconds since the epoch.
    pub request_ns: u64,
    /// Time of the first segment of the final response.
    pub response_ns: u64,
    /// Time of the segment with the response's last byte.
    pub last_ns: u64,
}

/// Tells the exchanges, one after the other; pipelined requests are sent together with the one
/// before them. Gives what a capture without losses must be found to say.
///
/// The responses are sent in segments of their own.
pub fn tell(talk: &mut Conversation, exchanges: &[Exchange]) -> Vec<Expected> {
    let mut expected = Vec::new();
    let mut rest = exchanges;
    while !rest.is_empty() {
        let more = rest.iter().skip(1).take_while(|e| e.pipelined).count();
        let (group, after) = rest.split_at_checked(more + 1).unwrap_or((rest, &[]));
        rest = after;
        let mut sent = Vec::new();
        for exchange in group {
            sent.push(talk.now_ns());
            talk.client_sends(exchange.request());
        }
        for (exchange, request_ns) in group.iter().zip(sent) {
            if exchange.interim {
                talk.server_sends("HTTP/1.1 100 Continue\r\n\r\n");
            }
            let response_ns = talk.now_ns();
            talk.server_sends(exchange.response());
            let last_ns = talk.segments().last().map_or(response_ns, |s| s.at_ns);
            expected.push(Expected {
                exchange: exchange.clone(),
                request_ns,
                response_ns,
                last_ns,
            });
        }
    }
    expected
}

/// A random exchange.
pub fn exchange() -> impl Strategy<Value = Exchange> {
    let method = prop_oneof![
        6 => Just("GET"),
        2 => Just("HEAD"),
        2 => Just("POST"),
        1 => Just("PURGE"),
    ];
    let status = prop_oneof![6 => Just(200), 1 => Just(204), 1 => Just(304), 1 => Just(404)];
    let framing = prop_oneof![3 => Just(Framing::Length), 1 => Just(Framing::Chunked)];
    (
        (method, "/[a-z0-9/?=&]{0,60}", "[a-z]{1,12}[.]test"),
        (0_usize..300, status, 0_usize..4000, framing),
        (
            proptest::bool::weighted(0.15),
            proptest::bool::weighted(0.3),
        ),
    )
        .prop_map(
            |((method, target, host), (upload, status, body, framing), (interim, pipelined))| {
                Exchange {
                    upload: if method == "POST" { upload } else { 0 },
                    // What a chunked body measures is known only where one segment holds all of it.
                    body: if framing == Framing::Chunked {
                        body % 400
                    } else {
                        body
                    },
                    method,
                    target,
                    host,
                    status,
                    framing,
                    interim,
                    pipelined,
                    ..Exchange::get("/", 0)
                }
            },
        )
}

/// What the network does to a conversation.
#[derive(Debug, Clone)]
pub enum Mishap {
    /// A segment is lost.
    Loss(Index),
    /// A segment comes twice, so many nanoseconds apart.
    Repetition(Index, u64),
    /// A segment comes later by so many nanoseconds.
    Delay(Index, u64),
    /// A segment comes again together with the next bytes, cut differently (RFC 9293 sec. 3.8.1).
    Repacketized(Index),
}

/// A random mishap.
pub fn mishap() -> impl Strategy<Value = Mishap> {
    let segment = any::<Index>;
    prop_oneof![
        segment().prop_map(Mishap::Loss),
        (segment(), 0_u64..20_000_000).prop_map(|(at, ns)| Mishap::Repetition(at, ns)),
        (segment(), 0_u64..20_000_000).prop_map(|(at, ns)| Mishap::Delay(at, ns)),
        segment().prop_map(Mishap::Repacketized),
    ]
}

/// Lets mishaps happen.
pub fn suffer(talk: &mut Conversation, mishaps: &[Mishap]) {
    suffer_where(talk, mishaps, |_, _| true);
}

/// Lets mishaps happen to the segments to which they may.
pub fn suffer_where(
    talk: &mut Conversation,
    mishaps: &[Mishap],
    may: impl Fn(&Mishap, &Segment) -> bool,
) {
    for mishap in mishaps {
        let (Mishap::Loss(at)
        | Mishap::Repetition(at, _)
        | Mishap::Delay(at, _)
        | Mishap::Repacketized(at)) = mishap;
        let count = talk.segments().len();
        let hit = (count > 0).then(|| talk.segments().get(at.index(count)));
        if !hit.flatten().is_some_and(|segment| may(mishap, segment)) {
            continue;
        }
        match mishap {
            Mishap::Loss(at) => {
                talk.lose(at.index(count));
            }
            Mishap::Repetition(at, ns) => {
                talk.repeat(at.index(count), *ns);
            }
            Mishap::Delay(at, ns) => {
                talk.delay(at.index(count), *ns);
            }
            Mishap::Repacketized(at) => {
                let again = repacketized(talk.segments(), at.index(count));
                talk.segments_mut().extend(again);
            }
        }
    }
}

/// The bytes of a segment from its middle on, joined with those of the next of that side.
fn repacketized(segments: &[Segment], at: usize) -> Option<Segment> {
    let first = segments.get(at)?;
    let middle = first.payload.len() / 2;
    let mut joined = first.clone();
    joined.payload.drain(..middle);
    joined.seq = SeqNumber(first.seq.0.wrapping_add(u32::try_from(middle).ok()?));
    let end = first
        .seq
        .0
        .wrapping_add(u32::try_from(first.payload.len()).ok()?);
    if let Some(next) = segments
        .iter()
        .find(|s| s.from == first.from && s.seq.0 == end)
    {
        joined.payload.extend_from_slice(&next.payload);
        joined.at_ns = joined.at_ns.max(next.at_ns);
    }
    joined.at_ns += 500_000;
    (!joined.payload.is_empty()).then_some(joined)
}
