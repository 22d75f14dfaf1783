//! A response of the gateway in place of the server's: a page, or another URL. The server gets a RST; the client reads the
//! response and ends the connection, as after any that says `Connection: close`.

use super::{Disposition, Work};
use crate::connection::Phase;
use crate::hold::Segment;
use crate::inspect::Side;
use linkweir_engine::effect::{Decision, Mark, OwnSegment, Verdict};
use linkweir_wire::{SeqNumber, Tcp, TcpFlags};

/// Bytes of a segment.
const SEGMENT: usize = 1200;

/// A connection whose client has got a response of the gateway.
#[derive(Debug)]
pub(crate) struct Answered {
    /// What packets get that come when it is over.
    pub(super) mark: Mark,
    /// What the client is sent again until it has it.
    segments: Vec<OwnSegment>,
    /// The number behind the FIN.
    end: SeqNumber,
}

impl Work<'_> {
    /// Sends the response of the rule that blocks the connection. `None` where there is none, or where the client may have a
    /// part of another one.
    pub(super) fn reply(&mut self) -> Option<Disposition> {
        let Phase::Inspected(exam) = &mut self.conn.phase else {
            return None;
        };
        let (response, came) = exam.take_reply()?;
        let came = u32::try_from(came).ok()?;
        let [client, server] = &self.conn.streams;
        let is_plain = !client.is_relayed() && !server.is_relayed() && !server.has_ahead();
        let end = u32::from(server.is_finished);
        let (ack, next, seq) = (client.next()?, server.next()?, server.released());
        let server_next = client.released();
        if !self.conn.key.is_tcp || !is_plain || seq + came + end != next {
            return None;
        }
        let rule = self.mark().map_or(0, |mark| mark.rule);
        self.ctx.labels.of(self.conn.label).blocked += 1;
        self.close();
        for stream in &mut self.conn.streams {
            let answers = &mut self.ctx.effects.answers;
            stream.answer_all(Verdict::Drop, self.ctx.budget, answers, |_| None);
        }
        let first = self.ctx.effects.segments.len();
        let mut at = seq;
        let mut chunks = response.chunks(SEGMENT).peekable();
        while let Some(chunk) = chunks.next() {
            let is_last = chunks.peek().is_none();
            self.send(Side::Server, at, ack, chunk.to_vec(), is_last);
            at += u32::try_from(chunk.len() + usize::from(is_last)).unwrap_or(0);
        }
        let segments = self.ctx.effects.segments.get(first..).unwrap_or_default();
        let segments = segments.to_vec();
        self.send(Side::Client, server_next, seq, Vec::new(), false);
        if let Some(reset) = self.ctx.effects.segments.last_mut() {
            reset.is_reset = true;
            reset.timestamps = None;
        }
        self.conn.phase = Phase::Answered(Box::new(Answered {
            mark: Mark {
                decision: Decision::Drop,
                rule,
            },
            segments,
            end: at,
        }));
        Some(Disposition::Kept)
    }

    /// A segment of a connection whose client has got a response. None passes.
    pub(crate) fn on_answered(
        &mut self,
        side: Side,
        tcp: &Tcp<'_>,
        segment: &Segment<'_>,
    ) -> Option<Disposition> {
        let Phase::Answered(answered) = &self.conn.phase else {
            return None;
        };
        self.ctx.drop(segment.id);
        if side == Side::Server {
            return Some(Disposition::Kept);
        }
        if tcp.flags().contains(TcpFlags::RST) {
            return Some(Disposition::Over(answered.mark));
        }
        let (end, mark, ack) = (answered.end, answered.mark, tcp.ack());
        if ack.before(end) && !segment.payload.is_empty() {
            // It asks again: the response, or a part of it, did not come.
            let missing = answered.segments.iter().filter(|one| !one.seq.before(ack));
            self.ctx.effects.segments.extend(missing.cloned());
        }
        if !segment.is_fin {
            return Some(Disposition::Kept);
        }
        let all = segment.seq + u32::try_from(segment.payload.len() + 1).unwrap_or(0);
        self.send(Side::Server, end, all, Vec::new(), false);
        // One that has not got all yet sends its FIN again.
        Some(if ack.before(end) {
            Disposition::Kept
        } else {
            Disposition::Over(mark)
        })
    }
}
