//! HTTP/1.x, and the transfers of FastTrack and Gnutella, which are HTTP.
//!
//! The two streams of a connection are read at the same time, each a [`State`] machine: a head, its
//! body, the next head. Requests are remembered until they are answered ([`Pending`]), because the
//! answer alone says neither how it ends nor what it is called. Either side may ask: after a push
//! (`GIVE`, `GIV`) who opened the connection sends the file.
//!
//! Bodies pass through as slices of what came in. Copied are heads that are cut, and no others.
//!
//! What is read how where an attacker has a choice is in `docs/inspection.md`.

pub(super) mod body;
pub(super) mod facts;
mod gnutella;
mod head;
pub(super) mod multipart;
pub(super) mod pending;
pub(super) mod request;
mod response;
mod start;

use super::{Found, Side};
use body::{Body, Progress};
use gnutella::Messages;
use head::{Gather, HeadBuffer};
use linkweir_proto::http1::{byte_fault, head_fault};
use pending::Pending;
use start::Start;

/// State of the connection.
#[derive(Debug, Default)]
pub struct HttpInspector {
    client: Stream,
    server: Stream,
    /// Something malformed has come: no further head is read.
    is_opaque: bool,
    /// Who opened the connection offers a file: the other side asks for it.
    is_pushed: bool,
    /// Bytes of what is fed now.
    fed: usize,
}

/// What one side sends.
#[derive(Debug, Default)]
struct Stream {
    state: State,
    head: HeadBuffer,
    /// Its requests that the other side has not answered.
    asked: Pending,
}

/// What the next byte of a stream belongs to.
#[derive(Debug, Default)]
enum State {
    /// A head, or an empty line before it.
    #[default]
    Head,
    /// A body.
    Body(Body),
    /// Messages of Gnutella.
    Messages(Messages),
    /// What follows `CONNECT`, until the answer says what it is.
    Tunnel,
    /// Nothing that is understood, to the end.
    Text,
}

impl HttpInspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, bytes: &[u8], found: &mut F) {
        let mut rest = bytes;
        self.fed = bytes.len();
        while !rest.is_empty() {
            let stream = self.stream(sender);
            rest = match &mut stream.state {
                State::Head => self.head(sender, rest, found),
                State::Body(body) => {
                    let (rest, progress) = body.feed(sender, rest, found);
                    self.after_body(sender, progress, found);
                    rest
                }
                State::Messages(messages) => {
                    let (rest, result) = messages.feed(sender, rest, found);
                    if let Err(why) = result {
                        self.malformed(sender, why, found);
                    }
                    rest
                }
                State::Tunnel | State::Text => {
                    found.text(sender, rest);
                    &[]
                }
            };
        }
    }

    /// A side has sent all it will.
    pub fn finish<F: Found>(&mut self, sender: Side, found: &mut F) {
        let stream = self.stream(sender);
        stream.head = HeadBuffer::default();
        if let State::Body(body) = std::mem::replace(&mut stream.state, State::Text) {
            found.file_end(sender, body.ends_with_connection());
        }
    }

    /// Whether a side sends requests.
    const fn asks(&self, side: Side) -> bool {
        matches!(side, Side::Client) || self.is_pushed
    }

    const fn stream(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Bytes of a head, or empty lines before it; gives what is behind them.
    fn head<'a, F: Found>(&mut self, sender: Side, bytes: &'a [u8], found: &mut F) -> &'a [u8] {
        let asks = self.asks(sender);
        let (gather, used) = self.stream(sender).head.push(bytes, asks);
        let (here, rest) = bytes.split_at_checked(used).unwrap_or((bytes, &[]));
        found.text(sender, here);
        match gather {
            Gather::More => {}
            Gather::Whole => {
                let gathered = self.stream(sender).head.take();
                let head = if gathered.is_empty() { here } else { &gathered };
                self.message(sender, head, found);
            }
            Gather::Fault(why) => self.malformed(sender, why, found),
        }
        rest
    }

    /// A whole head.
    fn message<F: Found>(&mut self, sender: Side, head: &[u8], found: &mut F) {
        let start = Start::of(head, self.asks(sender)).and_then(|start| {
            let fault = match start {
                Start::Request(_) | Start::Response(_) => head_fault(head),
                Start::Push(_) | Start::Gnutella(_) => byte_fault(head, true),
            };
            fault.map_or(Ok(start), Err)
        });
        match start {
            Ok(Start::Request(request)) => self.request(sender, head, &request, found),
            Ok(Start::Response(response)) => self.response(sender, head, &response, found),
            Ok(Start::Push(line)) => {
                self.is_pushed |= sender == Side::Client;
                gnutella::push(sender, line, found);
            }
            Ok(Start::Gnutella(handshake)) => {
                found.no_request(sender);
                self.stream(sender).state = gnutella::after_handshake(handshake, head);
            }
            Err(why) => self.malformed(sender, why, found),
        }
    }

    fn after_body<F: Found>(&mut self, sender: Side, progress: Progress, found: &mut F) {
        match progress {
            Progress::More => {}
            Progress::Done => {
                found.file_end(sender, true);
                let is_opaque = self.is_opaque;
                self.stream(sender).state = if is_opaque { State::Text } else { State::Head };
            }
            Progress::Fault(why) => {
                found.file_end(sender, false);
                self.malformed(sender, why, found);
            }
        }
    }

    /// Both sides speak something else from now on.
    fn switch(&mut self) {
        for side in [Side::Client, Side::Server] {
            let stream = self.stream(side);
            // A file that is under way ends where its framing says.
            if !matches!(stream.state, State::Body(_)) {
                stream.state = State::Text;
                stream.head = HeadBuffer::default();
            }
            stream.asked = Pending::default();
        }
        self.is_opaque = true;
    }

    fn malformed<F: Found>(&mut self, sender: Side, why: &'static str, found: &mut F) {
        self.stream(sender).state = State::Text;
        if !self.is_opaque {
            found.malformed(sender, why);
        }
        self.switch();
    }

    /// How many of the next bytes of a side are of a body, and of that alone.
    pub(super) const fn body_left(&self, sender: Side) -> u64 {
        let stream = match sender {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        match &stream.state {
            State::Body(body) => body.left(),
            State::Head | State::Messages(_) | State::Tunnel | State::Text => 0,
        }
    }

    /// Bytes of heads that are not whole.
    pub(super) const fn gathered(&self) -> usize {
        self.client.head.held_bytes() + self.server.head.held_bytes()
    }

    /// Bytes on the heap.
    #[cfg(test)]
    fn held_bytes(&self) -> usize {
        [&self.client, &self.server]
            .into_iter()
            .map(|stream| {
                let state = match &stream.state {
                    State::Body(body) => body.held_bytes(),
                    State::Messages(messages) => messages.held_bytes(),
                    State::Head | State::Tunnel | State::Text => 0,
                };
                state + stream.head.held_bytes() + stream.asked.held_bytes()
            })
            .sum()
    }
}

#[cfg(test)]
mod tests;
