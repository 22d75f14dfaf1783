//! Whose turn it is in a connection of QUIC: transactions from the sizes, the order and the direction of packets.
//!
//! A request is a packet of the client with more than acknowledgments and updates of flow control in it, while nothing
//! is outstanding; its response begins with the server's next packet of which the same is true. What a round trip does
//! not allow is no answer.

use linkweir_record::Confidence;

use super::super::turn::{Estimate, PAUSE_NS};

/// So many bytes in a packet of a client are no request, bytes: ACK with some ranges, `MAX_DATA`, `MAX_STREAM_DATA`.
const CONTROL: u16 = 20;
/// Less than this may be a request, or `NEW_CONNECTION_ID`, `PRIORITY_UPDATE`, a long ACK, bytes.
const WEAK: u16 = 48;
/// Less than this in the first packet may be SETTINGS and the streams of QPACK, bytes.
const WEAK_FIRST: u16 = 100;
/// So many bytes in a packet of a server are no response, bytes.
const CONTROL_OF_SERVER: u16 = 16;
/// Less than this may be session tickets with `HANDSHAKE_DONE`, bytes.
const TICKETS: u16 = 1000;
/// From here on a packet has a body in it, bytes.
const BODY: u16 = 1000;
/// Packets of a flight follow one another within this time, nanoseconds.
const FLIGHT_NS: u64 = 2_000_000;
/// Where nothing was sent for so long, nothing is on its way, nanoseconds.
const STILL_NS: u64 = 500_000_000;
/// How long a peer may put an acknowledgment off, nanoseconds (RFC 9000 sec. 18.2).
const MAX_ACK_DELAY_NS: u64 = 25_000_000;

/// What packets with a short header say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    /// Bytes of frames, without what the header and encryption take.
    pub(super) content: u16,
    /// Bytes of the datagram.
    pub(super) bytes: u32,
    /// Whether it is about as long as the longest before it.
    pub(super) is_full: bool,
    /// Whether it is as long as one with a `NEW_CONNECTION_ID` and nothing else but a short ACK.
    pub(super) may_be_id: bool,
    /// Capture time, nanoseconds since the epoch.
    pub(super) ts_ns: u64,
}

/// Times that a packet takes to a side and its answer back, by the handshake; the end's own time is part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Trips {
    /// Nanoseconds; zero where that is not known.
    pub(super) server_ns: u32,
    pub(super) client_ns: u32,
    /// From the end of the client's handshake to the server's answer, where nothing else was on its way.
    pub(super) answer_ns: u32,
}

impl Trips {
    /// The least time in which one may answer whose half of the way is `own`: nothing where the capture is near it, and
    /// most of the time is its own.
    const fn least(own: u32, other: u32) -> u64 {
        if own >= other / 2 { own as u64 / 2 } else { 0 }
    }

    fn server_least(self) -> u64 {
        let least = Self::least(self.server_ns, self.client_ns);
        match self.answer_ns {
            0 => least,
            answer_ns => least.min(u64::from(answer_ns) / 2),
        }
    }

    const fn client_least(self) -> u64 {
        Self::least(self.client_ns, self.server_ns)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Idle,
    Waiting,
    Answering,
}

/// The exchange of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Talk {
    request_ns: u64,
    /// Of the client: the last packet with data.
    sent_ns: u64,
    response_ns: u64,
    /// Of the server: the last packet with data.
    last_ns: u64,
    /// When the client's handshake ended, then when the server answered that: its tickets come with it.
    handshake_ns: u64,
    held_ns: u64,
    /// When the server was first heard since the request; zero before.
    heard_ns: u64,
    response_bytes: u64,
    request_bytes: u32,
    held_bytes: u32,
    /// Of the first packet of the request.
    content: u16,
    /// The least of those that were answered; zero before.
    usual: u16,
    retransmissions: u16,
    stage: Stage,
    confidence: Confidence,
    /// Whether the packet before was a full one, so that the next one goes on.
    was_full: bool,
    /// Whether the server has answered the end of the handshake.
    is_past_handshake: bool,
    /// Whether what the server sends next answers the client's handshake.
    awaits_answer: bool,
    /// Whether no request was answered yet.
    is_first: bool,
    is_weak: bool,
    /// Whether the first packet of the request may be a `NEW_CONNECTION_ID`.
    may_be_id: bool,
    /// Whether several requests were outstanding, and there was no pause since.
    is_crowded: bool,
}

impl Talk {
    pub(super) fn new() -> Self {
        Self {
            is_first: true,
            ..Self::default()
        }
    }

    /// The client sends packets of the handshake.
    pub(super) const fn on_client_handshake(&mut self, ts_ns: u64, is_flight_over: bool) {
        if !self.is_past_handshake {
            (self.handshake_ns, self.awaits_answer) = (ts_ns, is_flight_over);
        }
    }

    /// The server is heard: what it sends next behind its whole flight answers the client's.
    pub(super) fn on_server_heard(&mut self, ts_ns: u64, trips: &mut Trips) {
        if std::mem::take(&mut self.awaits_answer) {
            let took_ns = ts_ns.saturating_sub(self.handshake_ns).max(1);
            trips.answer_ns = u32::try_from(took_ns).unwrap_or(0);
        }
        // What comes behind a pause is an answer: of a server that was slow in its handshake, a shorter round trip.
        let is_answer = self.stage == Stage::Waiting
            && self.heard_ns == 0
            && self.last_ns > 0
            && self.request_ns.saturating_sub(self.last_ns) > STILL_NS;
        let took_ns = ts_ns.saturating_sub(self.request_ns);
        if is_answer && took_ns < u64::from(trips.server_ns) {
            trips.server_ns = u32::try_from(took_ns.max(1)).unwrap_or(u32::MAX);
        }
    }

    /// Nothing can be said before a pause: the client has sent data in the handshake, or data were lost.
    pub(super) fn crowd(&mut self) {
        self.is_crowded = true;
        self.confidence = Confidence::CannotTell;
    }

    /// A packet of the client behind its handshake.
    pub(super) fn on_client(&mut self, data: &Data, trips: Trips, done: impl FnOnce(Estimate)) {
        if data.content <= CONTROL {
            return;
        }
        let goes_on = data.is_full || self.was_full;
        match self.stage {
            Stage::Idle => self.ask(data),
            Stage::Waiting
                if self.is_weak
                    && self.held_ns == 0
                    && !data.may_be_id
                    && (self.may_be_id || data.content / 2 > self.content) =>
            {
                // What was there before was not a request.
                self.ask(data);
            }
            Stage::Waiting if self.held_ns > 0 && !goes_on => {
                // The client goes on because it has its answer.
                if self.sent_ns > self.request_ns {
                    // Or it has more to send, of this request or of others.
                    self.crowd();
                }
                self.answer_held();
                self.go_on(data, trips, done);
            }
            Stage::Waiting if data.may_be_id => {}
            Stage::Waiting if self.is_again(data, trips) => {
                self.retransmissions = self.retransmissions.saturating_add(1);
            }
            Stage::Waiting => {
                if !goes_on && self.is_like_request(data.content) {
                    self.crowd();
                }
                if goes_on || self.is_like_request(data.content) {
                    self.add(data);
                }
            }
            // The server has answered before it had all of the request.
            Stage::Answering if goes_on && data.ts_ns.saturating_sub(self.sent_ns) < FLIGHT_NS => {
                self.add(data);
            }
            Stage::Answering => self.go_on(data, trips, done),
        }
        self.was_full = data.is_full;
    }

    /// A packet of the client behind a response.
    fn go_on(&mut self, data: &Data, trips: Trips, done: impl FnOnce(Estimate)) {
        if !self.is_like_request(data.content) {
            return;
        }
        if data.ts_ns.saturating_sub(self.last_ns) < trips.client_least() {
            // The client has not yet seen the end of the response.
            self.crowd();
        }
        self.finish(done);
        self.ask(data);
    }

    /// Whether it is the request once more: the server has not even acknowledged it for as long as a client waits
    /// (RFC 9002 sec. 6.2).
    fn is_again(&self, data: &Data, trips: Trips) -> bool {
        let least = MAX_ACK_DELAY_NS.max(u64::from(trips.server_ns));
        // An acknowledgment on its way to the client does not count.
        let heard_ns = match self.heard_ns {
            heard_ns if data.ts_ns.saturating_sub(heard_ns) < u64::from(trips.client_ns) => {
                heard_ns
            }
            0 => data.ts_ns,
            _ => 0,
        };
        data.content.abs_diff(self.content) <= 8 && heard_ns.saturating_sub(self.sent_ns) >= least
    }

    const fn is_like_request(&self, content: u16) -> bool {
        content >= WEAK || content > self.usual / 2
    }

    fn add(&mut self, data: &Data) {
        self.request_bytes = self.request_bytes.saturating_add(data.bytes);
        self.sent_ns = data.ts_ns;
    }

    fn ask(&mut self, data: &Data) {
        let before_ns = self.last_ns.max(self.sent_ns);
        if before_ns > 0 && data.ts_ns.saturating_sub(before_ns) > PAUSE_NS {
            self.is_crowded = false;
        }
        let least = if self.is_first { WEAK_FIRST } else { WEAK };
        (self.stage, self.is_weak) = (Stage::Waiting, data.content < least || data.may_be_id);
        (self.request_ns, self.sent_ns) = (data.ts_ns, data.ts_ns);
        (self.request_bytes, self.content) = (data.bytes, data.content);
        (self.heard_ns, self.held_ns) = (0, 0);
        self.may_be_id = data.may_be_id;
        (self.response_bytes, self.retransmissions) = (0, 0);
        let is_unclear = self.is_crowded || self.may_be_id || self.is_weak && self.is_first;
        self.confidence = match is_unclear {
            true => Confidence::CannotTell,
            false => Confidence::Likely,
        };
    }

    /// A packet of the server behind its handshake.
    pub(super) fn on_server(&mut self, data: &Data, trips: Trips) {
        if self.heard_ns == 0 {
            self.heard_ns = data.ts_ns;
        }
        let Data { ts_ns, .. } = *data;
        let since_ns = ts_ns.saturating_sub(self.handshake_ns);
        if !self.is_past_handshake && self.handshake_ns > 0 && since_ns >= trips.server_least() {
            (self.is_past_handshake, self.handshake_ns) = (true, ts_ns);
        }
        if data.content <= CONTROL_OF_SERVER {
            return;
        }
        match self.stage {
            Stage::Idle => {}
            Stage::Answering => self.more(data),
            Stage::Waiting => {
                if ts_ns.saturating_sub(self.request_ns) < trips.server_least() {
                    // It was sent before the request had come: the response before goes on.
                    if !self.is_first && !self.is_weak && !self.was_quiet(trips) {
                        self.crowd();
                    }
                    if self.is_first && data.content >= BODY {
                        // No part of a handshake: the server took longer for that than for this.
                        self.answer(ts_ns);
                        self.confidence = Confidence::CannotTell;
                        return self.more(data);
                    }
                    if self.is_first || !self.was_quiet(trips) {
                        return;
                    }
                }
                let is_flight =
                    !self.is_past_handshake || ts_ns.saturating_sub(self.handshake_ns) <= FLIGHT_NS;
                if self.is_first && is_flight && data.content < TICKETS {
                    (self.held_ns, self.held_bytes) = (ts_ns, data.bytes);
                    return;
                }
                self.held_ns = 0;
                self.answer(ts_ns);
                self.more(data);
            }
        }
    }

    /// Whether the server had been silent for so long before the request that nothing of it was on its way.
    fn was_quiet(&self, trips: Trips) -> bool {
        self.request_ns.saturating_sub(self.last_ns) >= trips.server_least()
    }

    fn answer(&mut self, ts_ns: u64) {
        (self.stage, self.response_ns, self.last_ns) = (Stage::Answering, ts_ns, ts_ns);
        self.is_first = false;
        let is_usual = !self.may_be_id && self.content < BODY;
        if is_usual && (self.usual == 0 || self.content < self.usual) {
            self.usual = self.content;
        }
    }

    fn more(&mut self, data: &Data) {
        self.last_ns = data.ts_ns;
        self.response_bytes += u64::from(data.bytes);
    }

    /// What may be tickets is all that the server has sent.
    fn answer_held(&mut self) {
        self.answer(self.held_ns);
        self.response_bytes = u64::from(self.held_bytes);
        self.confidence = Confidence::CannotTell;
        self.held_ns = 0;
    }

    /// The transaction at hand is over.
    pub(super) fn finish(&mut self, done: impl FnOnce(Estimate)) {
        if self.stage == Stage::Waiting && self.held_ns > 0 && !self.is_weak {
            self.answer_held();
        }
        let stage = std::mem::take(&mut self.stage);
        // Nobody has acknowledged it: as a client ends a connection. And what is short may be anything.
        if stage == Stage::Idle || stage == Stage::Waiting && (self.heard_ns == 0 || self.is_weak) {
            return;
        }
        let is_answered = stage == Stage::Answering;
        let can_tell = is_answered && self.confidence != Confidence::CannotTell;
        done(Estimate {
            request_ns: self.request_ns,
            response_ns: can_tell.then_some(self.response_ns),
            last_ns: is_answered.then_some(self.last_ns),
            request_bytes: u64::from(self.request_bytes),
            response_bytes: self.response_bytes,
            interim_responses: 0,
            retransmissions: self.retransmissions,
            confidence: self.confidence,
            events: None,
        });
    }
}
