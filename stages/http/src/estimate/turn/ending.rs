//! What ends a transaction, what is known of one of which records are missing, and of one whose server is not seen.

use linkweir_record::Confidence;
use linkweir_wire::{SeqNumber, Side};

use super::super::tickets::Server;
use super::{Estimate, Held, LEAST_BY_ACK_NS, Marks, SHORT, SHORT_TURNS, Stage, Talk, Version};

impl Talk {
    /// Records of a side that the other one has received were missed.
    pub(in crate::estimate) fn on_missed(
        &mut self,
        side: Side,
        ts_ns: u64,
        server: Option<&mut Server>,
        done: impl FnOnce(Estimate),
    ) {
        match (side, self.stage) {
            (Side::Server, Stage::Waiting) => {
                // The response was among them, or began with them.
                self.doubt(Confidence::CannotTell);
                self.answer(ts_ns);
            }
            (Side::Client, Stage::Waiting) => self.doubt(Confidence::Likely),
            // Perhaps another request: whose response comes next is not known.
            (Side::Client, Stage::Answering) => self.finish(server, done),
            (Side::Client, Stage::Idle) => self.marks.set(Marks::LEADING, false),
            (Side::Server, Stage::Answering | Stage::Idle) => {}
        }
    }

    /// A client whose server is not seen acknowledges what that has sent); the packet may carry data of its own.
    ///
    /// The time of a response is then that of its first acknowledgment, which clients may put off, and which says nothing
    /// of what was acknowledged: tickets and SETTINGS before the first response, or the response.
    pub(in crate::estimate) fn on_acknowledged(
        &mut self,
        ack: SeqNumber,
        ts_ns: u64,
        has_data: bool,
    ) {
        if self.stage == Stage::Idle || !ack.after(self.expected) {
            return;
        }
        let bytes = u64::from(ack.0.wrapping_sub(self.expected.0));
        self.expected = ack;
        if self.stage == Stage::Waiting {
            let is_short = ts_ns.saturating_sub(self.request_ns) < LEAST_BY_ACK_NS;
            self.doubt(match is_short || has_data || self.is_leading() {
                true => Confidence::CannotTell,
                false => Confidence::Likely,
            });
            self.answer(ts_ns);
        }
        self.last_ns = ts_ns;
        self.response_bytes += bytes;
    }

    /// Bytes of the server, in records that are not known.
    pub(in crate::estimate) fn on_server_bytes(&mut self, bytes: u32, ts_ns: u64) {
        match self.stage {
            Stage::Answering => {
                self.last_ns = ts_ns;
                self.response_bytes += u64::from(bytes);
            }
            Stage::Waiting => self.doubt(Confidence::CannotTell),
            Stage::Idle => {}
        }
    }

    /// The transaction at hand is over.
    pub(in crate::estimate) fn finish(
        &mut self,
        server: Option<&mut Server>,
        done: impl FnOnce(Estimate),
    ) {
        if self.stage == Stage::Waiting && self.held != Held::Nothing {
            self.answer_held();
        }
        let stage = std::mem::take(&mut self.stage);
        if stage == Stage::Idle {
            return;
        }
        let is_answered = stage == Stage::Answering;
        if is_answered && self.response_ns < self.request_ns {
            // The clock of the capture was set back.
            self.doubt(Confidence::CannotTell);
        }
        self.compare_records();
        if is_answered && self.is_leading() {
            self.marks.set(Marks::LEADING, false);
            if let Some(server) = server {
                server.count(self.tickets, self.is_resumed);
            }
        }
        self.note_short(is_answered);
        if self.short_turns >= SHORT_TURNS && self.version != Version::Two {
            self.doubt(Confidence::CannotTell);
        }
        let can_tell = is_answered && self.confidence != Confidence::CannotTell;
        done(Estimate {
            request_ns: self.request_ns,
            response_ns: can_tell.then_some(self.response_ns),
            last_ns: is_answered.then_some(self.last_ns),
            request_bytes: u64::from(self.request_bytes),
            response_bytes: if is_answered { self.response_bytes } else { 0 },
            interim_responses: self.interim_responses,
            retransmissions: self.retransmissions,
            confidence: self.confidence,
            events: None,
        });
        (self.interim_responses, self.retransmissions) = (0, 0);
        self.request_bytes = 0;
    }

    /// Several requests at once are as many records, and what follows them is one for each response: requests of HTTP/2
    /// that have not all the same number of records are not told apart from those.
    fn compare_records(&mut self) {
        let [now, before] = self.records;
        if self.version == Version::One {
            return;
        }
        if before > 0 && now != before {
            self.crowd();
        } else if now > 1 && before == 0 {
            self.doubt(Confidence::CannotTell);
        }
    }

    /// Counts short turns in a row.
    fn note_short(&mut self, is_answered: bool) {
        let is_short =
            u64::from(self.request_bytes) < SHORT && (!is_answered || self.response_bytes < SHORT);
        self.short_turns = if is_short {
            self.short_turns.saturating_add(1)
        } else {
            0
        };
    }
}
