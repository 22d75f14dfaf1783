//! HTTP scripts: what client and server say to each other, random or not, and what a capture of it
//! must be found to say.

use crate::conversation::Conversation;

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
