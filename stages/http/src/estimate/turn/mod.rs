//! Whose turn it is: transactions from the lengths and the order of records of application data.
//!
//! A request is data of the client behind that of the server; its response is the next data of the server that has
//! acknowledged it and is not a ticket, an alert, a `KeyUpdate`, an interim response or a control frame of HTTP/2.
//! Source: Lopez et al. 2019 for the order; the lengths are those of RFC 8446, 9112 and 9113.

mod ending;

use linkweir_record::{Confidence, Events};
use linkweir_wire::SeqNumber;

use super::lengths::{
    ACK_AND_UPDATE, ALERT, COLD_REQUEST, CONTINUE, KEY_UPDATE, LARGE, LONGEST_SETTINGS, PING,
    SETTINGS_ACK, SHORTEST_REQUEST, SHORTEST_RESPONSE, TWO_UPDATES, is_control, is_preface,
};
use super::tickets::{LENGTHS, Server};

/// Records that belong together follow one another within this time, nanoseconds.
pub(super) const TOGETHER_NS: u64 = 1_000_000;
/// The end of a response may follow it within this time, nanoseconds.
const END_NS: u64 = 5_000_000;
/// Turns of at most [`SHORT`] bytes both ways, one after the other, that no client of HTTP/1.1 takes.
const SHORT_TURNS: u8 = 12;
const SHORT: u64 = 200;
/// Shorter response times are not told by acknowledgments, which take some milliseconds by themselves, nanoseconds.
const LEAST_BY_ACK_NS: u64 = 15_000_000;
/// The smallest window of a stream that clients begin with, bytes.
const WINDOW: u64 = 65_535;
/// An empty frame of HTTP/2 as a record, with its header and what the widest encryption adds, bytes.
const EMPTY_LEN: u32 = 5 + 9 + 40;
/// Turns of HTTP/1.1 that are not believed behind one that did not wait for the one before.
const CALM: u8 = 3;
/// Where several streams were open at the same time, none is believed any more before a pause of so long, nanoseconds.
const CROWDED: u8 = u8::MAX;
pub(super) const PAUSE_NS: u64 = 2_000_000_000;

/// Which HTTP is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Version {
    #[default]
    Unknown,
    One,
    Two,
}

/// A record of application data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    /// Bytes inside, without what encryption adds.
    pub(super) content: u16,
    /// Bytes behind the header.
    pub(super) len: u16,
    /// Sequence number of its header.
    pub(super) seq: SeqNumber,
    /// What the packet with its first byte acknowledges.
    pub(super) ack: SeqNumber,
    /// Time of that packet, nanoseconds since the epoch.
    pub(super) ts_ns: u64,
}

/// A transaction that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) request_ns: u64,
    pub(super) response_ns: Option<u64>,
    pub(super) last_ns: Option<u64>,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
    pub(super) interim_responses: u16,
    pub(super) retransmissions: u16,
    pub(super) confidence: Confidence,
    /// Where the response is most likely a stream.
    pub(super) events: Option<Events>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Idle,
    Waiting,
    Answering,
}

/// Why a record is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Held {
    #[default]
    Nothing,
    /// It may be a ticket.
    Ticket,
    /// It may be a control frame.
    Control,
    /// Of the client, while nothing waits: a control frame, or a request.
    Request,
}

/// What is so of an exchange: a connection must not take more than it has to.
#[derive(Debug, Clone, Copy, Default)]
struct Marks(u8);

impl Marks {
    /// Tickets and SETTINGS may come before the response.
    const LEADING: u8 = 1;
    /// The server has sent its SETTINGS.
    const SETTINGS: u8 = 2;
    /// The client has sent its preface.
    const PREFACE: u8 = 4;
    /// The client has acknowledged SETTINGS.
    const ACKNOWLEDGED: u8 = 8;
    /// The server's record at hand belongs to the response.
    const COUNTED: u8 = 16;
    /// The server's last record was an empty frame.
    const EMPTY: u8 = 32;
    /// The response began with a record that was held back.
    const BEGUN: u8 = 64;

    const fn has(self, mark: u8) -> bool {
        self.0 & mark != 0
    }

    const fn set(&mut self, mark: u8, is_so: bool) {
        self.0 = if is_so { self.0 | mark } else { self.0 & !mark };
    }
}

/// The exchange of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Talk {
    request_ns: u64,
    /// Of the client: the last record.
    sent_ns: u64,
    response_ns: u64,
    last_ns: u64,
    held_ns: u64,
    response_bytes: u64,
    request_bytes: u32,
    request_seq: SeqNumber,
    /// Where the response begins; of what may be a request, where that begins.
    expected: SeqNumber,
    held_len: u16,
    interim_responses: u16,
    retransmissions: u16,
    pub(super) version: Version,
    stage: Stage,
    held: Held,
    confidence: Confidence,
    /// The best that may be said of this connection.
    pub(super) best: Confidence,
    /// Whether it is of TLS 1.3, where types of records are hidden.
    pub(super) is_hidden: bool,
    pub(super) is_resumed: bool,
    marks: Marks,
    /// Tickets that came before the first response.
    tickets: u8,
    /// What a record of HTTP/1.1 has at least where the first one alone said that it is that, bytes; zero where the
    /// handshake said it.
    least: u8,
    /// Turns that must be calm before one is believed.
    crowd: u8,
    /// Records of the request at hand and of the one before, but for long ones; zero where there was none.
    records: [u8; 2],
    short_turns: u8,
}

impl Talk {
    /// The exchange behind a handshake; of a connection that was joined late, there is nothing before the response.
    pub(super) const fn open(&mut self, is_late: bool) {
        self.marks.set(
            Marks::LEADING,
            !is_late && (self.is_hidden || matches!(self.version, Version::Two)),
        );
        self.marks.set(Marks::SETTINGS, is_late);
        self.marks.set(Marks::PREFACE, is_late);
    }

    /// Whether the server may still send what is no response.
    pub(super) const fn is_leading(&self) -> bool {
        self.marks.has(Marks::LEADING)
    }

    /// Nothing better than this may be said of the transaction at hand.
    pub(super) fn doubt(&mut self, confidence: Confidence) {
        self.confidence = self.confidence.max(confidence);
    }

    /// Nothing can be said of the first transaction.
    pub(super) const fn doubt_next(&mut self) {
        self.crowd = 1;
    }

    /// The segment of the request was seen again.
    pub(super) const fn on_repeated(&mut self, seq: SeqNumber) {
        if !matches!(self.stage, Stage::Idle) && seq.0 == self.request_seq.0 {
            self.retransmissions = self.retransmissions.saturating_add(1);
        }
    }

    /// Whether so many bytes of the client are no request. It acknowledges SETTINGS once, perhaps with a `WINDOW_UPDATE`;
    /// later a block of fields is as long.
    fn is_control_of_client(&mut self, content: u16) -> bool {
        let has_acknowledged = self.marks.has(Marks::ACKNOWLEDGED);
        if matches!(content, SETTINGS_ACK | ACK_AND_UPDATE) {
            self.marks.set(Marks::ACKNOWLEDGED, true);
        }
        is_control(content) || (content == ACK_AND_UPDATE && !has_acknowledged)
    }

    /// Whether so many bytes of the server are no response.
    fn is_control_of_server(&self, content: u16) -> bool {
        self.may_be_two()
            && (is_control(content) || (content == ACK_AND_UPDATE && self.is_leading()))
    }

    fn may_be_two(&self) -> bool {
        self.version != Version::One
    }

    /// A record of the client, while the records of the server that have begun go up to `due`.
    pub(super) fn on_client(
        &mut self,
        data: &Data,
        due: SeqNumber,
        server: Option<&mut Server>,
        done: impl FnOnce(Estimate),
    ) {
        if self.is_hidden && matches!(data.content, ALERT | KEY_UPDATE) {
            return;
        }
        if self.may_be_two() && !self.marks.has(Marks::PREFACE) {
            self.marks.set(Marks::PREFACE, true);
            let begins_two = is_preface(data.content);
            if self.version == Version::Unknown {
                // The handshake did not say it: a guess.
                self.best = self.best.max(Confidence::Likely);
                let half = u8::try_from(data.content / 2).unwrap_or(u8::MAX);
                self.least = half.min(COLD_REQUEST);
                self.version = if begins_two {
                    Version::Two
                } else {
                    Version::One
                };
            }
            if begins_two {
                return;
            }
            if self.version == Version::Two {
                // Requests share the record of the preface: how many is not known.
                self.crowd = CROWDED;
            }
        }
        if self.version == Version::One && self.shrinks(data.content) {
            self.version = Version::Two;
            self.crowd();
        }
        if self.may_be_two() && self.is_control_of_client(data.content) {
            // So long are short blocks of fields too.
            let may_be_request = matches!(data.content, PING | TWO_UPDATES);
            if self.stage != Stage::Waiting && may_be_request && !due.after(data.ack) {
                (self.held, self.held_ns, self.expected) = (Held::Request, data.ts_ns, data.seq);
            }
            return;
        }
        if self.held == Held::Request {
            self.held = Held::Nothing;
        }
        if self.stage == Stage::Waiting {
            let uploads = self.held == Held::Control && (data.content >= LARGE || self.is_long());
            if self.held == Held::Nothing || uploads || due.after(data.ack) {
                if uploads {
                    // What was held back has let it send more.
                    self.held = Held::Nothing;
                }
                return self.go_on(data);
            }
            // The client goes on because it has its answer.
            self.answer_held();
        }
        // What comes before the first response does not wait for requests.
        let is_answering = self.stage == Stage::Answering;
        let is_early = self.is_before(due, data.ack) && (is_answering || !self.is_leading());
        if is_early && is_answering {
            // The rest of a long request, or another one that does not wait.
            self.crowd();
        }
        self.finish(server, done);
        self.ask(data.seq, data.ts_ns, data.ack);
        self.request_bytes = u32::from(data.content);
        if is_early {
            self.crowd();
        }
        match self.version {
            Version::One if data.content < SHORTEST_REQUEST => self.doubt(Confidence::Likely),
            // Joined late: streams at the same time may be open already.
            Version::Unknown if data.content < u16::from(COLD_REQUEST) => self.crowd(),
            _ => {}
        }
    }

    /// Whether a client whose version was guessed goes on with so few bytes as none of HTTP/1.1 does: an acknowledgment
    /// of SETTINGS, or fields that the first record has made short (RFC 7541), which held the preface and requests then.
    const fn shrinks(&self, content: u16) -> bool {
        content < self.least as u16
    }

    /// Whether the client had not heard the server out when it acknowledged this much. It may go on before an empty DATA
    /// frame comes that only says that the response is over: it knows the length (RFC 9110 sec. 8.6).
    fn is_before(&self, due: SeqNumber, ack: SeqNumber) -> bool {
        let is_end = self.marks.has(Marks::EMPTY) && due.0.wrapping_sub(ack.0) <= EMPTY_LEN;
        due.after(ack) && !is_end
    }

    /// A request begins.
    fn ask(&mut self, seq: SeqNumber, ts_ns: u64, ack: SeqNumber) {
        (self.stage, self.held) = (Stage::Waiting, Held::Nothing);
        self.records = [1, self.records[0]];
        let before_ns = self.last_ns.max(self.sent_ns);
        if before_ns > 0 && ts_ns.saturating_sub(before_ns) > PAUSE_NS {
            self.crowd = 0;
            self.records[1] = 0;
        }
        (self.request_seq, self.request_ns, self.sent_ns) = (seq, ts_ns, ts_ns);
        self.expected = ack;
        self.confidence = match (self.crowd, self.version) {
            (1.., _) => Confidence::CannotTell,
            (0, Version::One) => self.best,
            (0, _) => self.best.max(Confidence::Likely),
        };
        if self.crowd < CROWDED {
            self.crowd = self.crowd.saturating_sub(1);
        }
    }

    /// Whether the request has so much content that the server may update windows for it.
    fn is_long(&self) -> bool {
        self.request_bytes >= u32::from(LARGE)
    }

    /// More of the client while the request waits.
    fn go_on(&mut self, data: &Data) {
        let is_one = self.version == Version::One
            || data.ts_ns == self.sent_ns
            || data.content >= LARGE
            || self.is_long();
        if data.content < LARGE && !self.is_long() {
            self.records[0] = self.records[0].saturating_add(1);
        }
        self.request_bytes = self.request_bytes.saturating_add(u32::from(data.content));
        self.sent_ns = data.ts_ns;
        if !is_one {
            // The content of the request, or another one.
            self.doubt(Confidence::CannotTell);
            self.crowd = self.crowd.max(1);
        }
    }

    /// There is more than one at a time.
    fn crowd(&mut self) {
        self.crowd = match self.version {
            Version::One => CALM,
            Version::Two | Version::Unknown => CROWDED,
        };
        self.doubt(Confidence::CannotTell);
    }

    /// A record of the server.
    pub(super) fn on_server(
        &mut self,
        data: &Data,
        server: Option<&mut Server>,
        done: impl FnOnce(Estimate),
    ) {
        self.marks.set(Marks::COUNTED, false);
        let is_empty = self.may_be_two() && data.content == SETTINGS_ACK;
        self.marks.set(Marks::EMPTY, is_empty);
        if self.is_hidden && data.content == ALERT {
            return self.pass_over(data);
        }
        if self.held == Held::Request
            && data.ack.after(self.expected)
            && !self.is_control_of_server(data.content)
        {
            let (seq, ts_ns) = (self.expected, self.held_ns);
            self.held = Held::Nothing;
            let is_quiet = ts_ns.saturating_sub(self.last_ns) > END_NS;
            // Only what is longer than a window waits for an update (RFC 9113 sec. 6.9.2).
            let is_new =
                data.ts_ns.saturating_sub(self.last_ns) > END_NS && self.response_bytes < WINDOW;
            if data.content < LARGE || is_quiet || is_new {
                // What looked like a control frame has an answer.
                self.finish(None, done);
                self.ask(seq, ts_ns, data.seq);
                self.doubt(Confidence::Likely);
            }
        }
        match self.stage {
            Stage::Idle => {
                self.is_ahead(data, server);
            }
            Stage::Waiting => self.on_awaited(data, server),
            Stage::Answering => self.on_more(data),
        }
    }

    /// What is no response stands before it.
    fn pass_over(&mut self, data: &Data) {
        if self.expected == data.seq {
            self.expected += u32::from(data.len) + 5;
        }
    }

    /// Whether a record belongs to what a server sends before its first response.
    fn is_ahead(&mut self, data: &Data, server: Option<&mut Server>) -> bool {
        if !self.is_leading() {
            return false;
        }
        let Some(server) = server else { return false };
        if self.is_ticket(data, server) {
            self.tickets = self.tickets.saturating_add(1);
            return true;
        }
        if self.may_be_two() && !self.marks.has(Marks::SETTINGS) && data.content <= LONGEST_SETTINGS
        {
            self.marks.set(Marks::SETTINGS, true);
            return true;
        }
        if self.stage == Stage::Idle && self.is_hidden && LENGTHS.contains(&data.len) {
            // Before any request there are no responses.
            self.tickets = self.tickets.saturating_add(1);
            server.learn(data.len);
            return true;
        }
        false
    }

    /// Whether a record is known to be a ticket.
    fn is_ticket(&self, data: &Data, server: &Server) -> bool {
        self.is_hidden
            && server.has(data.len)
            && !server.has_sent_all(self.tickets, self.is_resumed)
    }

    /// A record of the server while a request waits.
    fn on_awaited(&mut self, data: &Data, mut server: Option<&mut Server>) {
        let has_seen = data.ack.after(self.request_seq);
        if self.held == Held::Nothing && self.is_ahead(data, server.as_deref_mut()) {
            return self.pass_over(data);
        }
        if !has_seen {
            if self.marks.has(Marks::EMPTY) {
                // The end of the response before, for which this client did not wait.
                self.pass_over(data);
            } else if !self.is_leading() {
                self.crowd();
            }
            return;
        }
        if self.version == Version::One {
            if data.content == CONTINUE {
                self.interim_responses = self.interim_responses.saturating_add(1);
                return self.pass_over(data);
            }
            if data.content < SHORTEST_RESPONSE {
                self.doubt(Confidence::Likely);
                return self.pass_over(data);
            }
        } else if self.is_control_of_server(data.content) {
            let may_be_head = data.content != SETTINGS_ACK && !self.is_leading();
            if may_be_head && self.held == Held::Nothing {
                (self.held, self.held_ns, self.held_len) = (Held::Control, data.ts_ns, data.len);
            }
            return self.pass_over(data);
        }
        match self.held {
            Held::Ticket
                if self.version == Version::Two
                    && !self.marks.has(Marks::SETTINGS)
                    && data.content <= LONGEST_SETTINGS =>
            {
                // The first frame of a server is SETTINGS (RFC 9113 sec. 3.4): nothing before it was.
                (self.held, self.tickets) = (Held::Nothing, 1);
                self.marks.set(Marks::SETTINGS, true);
                return self.pass_over(data);
            }
            Held::Ticket if self.held_len == data.len => {
                self.held = Held::Nothing;
                self.tickets = 2;
                if let Some(server) = server {
                    server.learn(data.len);
                }
                return self.pass_over(data);
            }
            Held::Ticket => {
                if data.ts_ns.saturating_sub(self.held_ns) > TOGETHER_NS {
                    // One ticket, or a head that waits for what follows it.
                    self.doubt(Confidence::CannotTell);
                }
                self.answer_held();
                return self.on_more(data);
            }
            Held::Control => {
                if data.ts_ns.saturating_sub(self.held_ns) <= TOGETHER_NS && !self.is_long() {
                    self.answer_held();
                    return self.on_more(data);
                }
                self.held = Held::Nothing;
            }
            Held::Nothing | Held::Request => {
                let knows_none = server
                    .as_deref()
                    .is_some_and(|server| server.sends_none(self.is_resumed));
                let may_be_ticket = self.is_leading()
                    && self.is_hidden
                    && self.tickets == 0
                    && !knows_none
                    && LENGTHS.contains(&data.len);
                if may_be_ticket {
                    (self.held, self.held_ns, self.held_len) = (Held::Ticket, data.ts_ns, data.len);
                    return self.pass_over(data);
                }
                if self.is_leading() && self.version == Version::One && !knows_none {
                    // Whether tickets come before it is not known of this server yet.
                    self.doubt(match self.tickets {
                        1.. => self.best,
                        0 => Confidence::Likely,
                    });
                }
                if let Some(server) = server.filter(|_| self.is_leading() && self.tickets == 0) {
                    server.count_without(self.is_resumed);
                }
            }
        }
        if data.seq != self.expected {
            self.doubt(Confidence::Likely);
        }
        self.answer(data.ts_ns);
        self.on_more(data);
    }

    /// What was held back was the response.
    fn answer_held(&mut self) {
        let is_doubtful = self.held == Held::Ticket && self.is_resumed;
        self.doubt(match is_doubtful {
            true => Confidence::CannotTell,
            false => Confidence::Likely,
        });
        let len = u64::from(self.held_len);
        self.answer(self.held_ns);
        self.marks.set(Marks::BEGUN, true);
        (self.last_ns, self.response_bytes) = (self.held_ns, len);
    }

    /// The response begins.
    fn answer(&mut self, ts_ns: u64) {
        self.stage = Stage::Answering;
        self.held = Held::Nothing;
        self.marks.set(Marks::BEGUN, false);
        (self.response_ns, self.last_ns, self.response_bytes) = (ts_ns, ts_ns, 0);
    }

    /// A record of the server behind the beginning of the response.
    fn on_more(&mut self, data: &Data) {
        let is_late = data.ts_ns.saturating_sub(self.last_ns) > END_NS;
        self.marks.set(
            Marks::COUNTED,
            match data.content {
                SETTINGS_ACK | KEY_UPDATE => !is_late,
                content => !self.is_control_of_server(content),
            },
        );
        if self.marks.has(Marks::COUNTED) {
            self.response_bytes += u64::from(data.content);
        }
    }

    /// The server's record at hand has ended. If it is of the response: when the one before it had, and whether the
    /// response began with one that was held back.
    pub(super) const fn on_server_end(&mut self, ts_ns: u64) -> Option<(u64, bool)> {
        if !self.marks.has(Marks::COUNTED) {
            return None;
        }
        let before_ns = self.last_ns;
        self.last_ns = ts_ns;
        Some((before_ns, self.marks.has(Marks::BEGUN)))
    }
}
