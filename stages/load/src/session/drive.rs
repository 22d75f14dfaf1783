//! Bytes of responses, and what follows when one is complete.
//!
//! Ends of requests and sessions, and what is reported of them.

use super::begin::{after, draw, objects_of};
use super::html::Found;
use super::response::Progress;
use super::state::{Asks, Base, LaneState, NONE};
use super::{Sessions, Wish};
use crate::outcome::{Exchange, Failure, Observer, SessionEnd};
use linkweir_wire::Timestamp;

impl<O: Observer> Sessions<O> {
    /// Bytes on the connection of a lane.
    pub(super) fn on_bytes(&mut self, number: u32, bytes: &[u8], at: Timestamp) {
        let Some(lane) = self.lanes.value_mut(number) else {
            return;
        };
        if lane.state != (LaneState::Busy { is_sent: true }) {
            // Nobody asked.
            let slot = lane.session;
            self.fail(slot, Failure::WrongLength, at);
            return;
        }
        let mut rest = bytes;
        loop {
            match self.read(number, &mut rest, at) {
                Ok(Progress::More) => return,
                Ok(Progress::Interim) => {
                    self.stats.interim_responses += 1;
                    if rest.is_empty() {
                        return;
                    }
                }
                Ok(Progress::Head) => self.look_for_objects(number),
                Ok(Progress::Done) if rest.is_empty() => {
                    self.complete(number, at);
                    return;
                }
                Ok(Progress::Done) => {
                    self.fail_lane(number, Failure::WrongLength, at);
                    return;
                }
                Err(failure) => {
                    self.fail_lane(number, failure, at);
                    return;
                }
            }
        }
    }

    fn read(&mut self, number: u32, rest: &mut &[u8], at: Timestamp) -> Result<Progress, Failure> {
        let Some(lane) = self.lanes.value_mut(number) else {
            return Ok(Progress::More);
        };
        if lane.reader.is_at_start() && !rest.is_empty() {
            // Of the final response: an interim one before it is forgotten.
            lane.first_byte = Some(at);
        }
        let session = self.sessions.value(lane.session);
        let slot = session.map_or(NONE, |session| session.found);
        let is_base = matches!(lane.asks, Asks::Base(_));
        let Some(found) = self.found.get_mut(slot as usize).filter(|_| is_base) else {
            return lane.reader.read(rest, &mut self.heads, |_| {});
        };
        let room = self
            .settings
            .max_found_bytes
            .saturating_sub(self.found_bytes);
        let before = found.bytes();
        let host = self.script.host().as_bytes();
        let result = lane.reader.read(rest, &mut self.heads, |body| {
            found.feed(body, host, before + room);
        });
        self.found_bytes += found.bytes() - before;
        result
    }

    /// The head of a response is whole and a body follows: is it a page with objects to find?
    fn look_for_objects(&mut self, number: u32) {
        let Some(lane) = self.lanes.value(number) else {
            return;
        };
        let is_page = matches!(lane.asks, Asks::Base(_))
            && lane.reader.is_html()
            && matches!(lane.reader.status(), 200..=299);
        let slot = lane.session;
        let page = self
            .sessions
            .value(slot)
            .and_then(|session| self.script.page(session.script, session.page));
        if !is_page || !page.is_some_and(|page| page.is_parsed) {
            return;
        }
        let taken = self.free_found.pop().or_else(|| {
            self.found.push(Found::default());
            u32::try_from(self.found.len() - 1).ok()
        });
        let request = match lane.asks {
            Asks::Base(request) => self.script.request(request),
            _ => None,
        };
        let target = request.map_or(&b"/"[..], |request| self.script.target(request));
        if let (Some(taken), Some(session)) = (taken, self.sessions.value_mut(slot))
            && let Some(found) = self.found.get_mut(taken as usize)
        {
            found.begin(target);
            session.found = taken;
        }
    }

    /// The targets found in the page of a session are not needed any more.
    pub(super) fn forget_found(&mut self, slot: u32) {
        let Some(session) = self.sessions.value_mut(slot) else {
            return;
        };
        let number = std::mem::replace(&mut session.found, NONE);
        if let Some(found) = self.found.get_mut(number as usize) {
            self.found_bytes -= found.bytes();
            self.stats.objects_found += found.len() as u64;
            self.stats.objects_beyond += u64::from(found.beyond());
            found.release();
            self.free_found.push(number);
        }
    }

    /// The response on a lane is complete.
    pub(super) fn complete(&mut self, number: u32, at: Timestamp) {
        self.tell(number, Some(at), None);
        let Some(lane) = self.lanes.value_mut(number) else {
            return;
        };
        let slot = lane.session;
        let Some(session) = self.sessions.value_mut(slot) else {
            return;
        };
        session.counts.response(lane.reader.status());
        session.in_flight -= 1;
        if matches!(lane.asks, Asks::Base(_)) {
            session.base = Base::Done;
        }
        let script = self.script.session(session.script);
        let request = match lane.asks {
            Asks::Base(request) | Asks::Object(request) => self.script.request(request),
            Asks::Found(_) => None,
        };
        // A server that answers before it has read the body may never read the rest.
        let is_read = lane.is_acknowledged || request.is_none_or(|request| request.body_len == 0);
        let is_kept_there = lane.reader.keeps_alive();
        let is_kept = script.is_some_and(|script| script.keep_alive) && is_kept_there && is_read;
        lane.state = LaneState::Idle;
        lane.is_reused = true;
        if !is_kept {
            if let Some(conn) = lane.conn.take() {
                let wish = match (is_read, is_kept_there) {
                    (false, _) => Wish::Abort,
                    (true, true) => Wish::Close,
                    (true, false) => Wish::CloseAfterPeer,
                };
                self.wishes.push_back(wish(conn));
            }
            self.remove_lane(number);
        }
        self.advance(slot, at);
    }

    /// After a complete response: the next object, the next page, or the end.
    fn advance(&mut self, slot: u32, at: Timestamp) {
        let Some(session) = self.sessions.value_mut(slot) else {
            return;
        };
        let page = self.script.page(session.script, session.page);
        let found = self.found.get(session.found as usize);
        let objects = page.map_or(0, |page| objects_of(page, found));
        let is_complete =
            session.base == Base::Done && session.in_flight == 0 && session.next_object >= objects;
        if !is_complete {
            self.go_on(slot, at);
            return;
        }
        session.counts.pages += 1;
        self.observer
            .on_page(session.client, session.page_intended, at);
        let next = session.page + 1;
        let think = page.map(|page| page.think).unwrap_or_default();
        if self.script.page(session.script, next).is_none() {
            self.end(slot, at);
            return;
        }
        session.page = next;
        session.base = Base::Waits;
        session.next_object = 0;
        let think = draw(session, &think);
        session.due = Some(after(at, think));
        self.forget_found(slot);
        self.go_on(slot, at);
    }
}

impl<O: Observer> Sessions<O> {
    /// Tells what became of the request of a lane.
    pub(super) fn tell(
        &mut self,
        number: u32,
        last_byte: Option<Timestamp>,
        failure: Option<Failure>,
    ) {
        let request_bytes = self.request_len(number);
        let Some(lane) = self.lanes.value(number) else {
            return;
        };
        let Some(session) = self.sessions.value_mut(lane.session) else {
            return;
        };
        session.counts.response_bytes += lane.reader.received();
        let exchange = Exchange {
            session: session.number,
            client: session.client,
            is_page: matches!(lane.asks, Asks::Base(_)),
            intended: lane.intended,
            sent: lane.sent,
            first_byte: lane.first_byte,
            last_byte,
            status: lane.reader.status(),
            request_bytes,
            response_bytes: lane.reader.received(),
            failure,
        };
        let target = match lane.asks {
            Asks::Base(request) | Asks::Object(request) => {
                let request = self.script.request(request);
                request.map_or(&[][..], |request| self.script.target(request))
            }
            Asks::Found(object) => {
                let found = self.found.get(session.found as usize);
                found.map_or(&[][..], |found| found.target(object as usize))
            }
        };
        self.observer
            .on_exchange(&exchange, target, lane.local_port);
    }

    /// Takes a lane out of its session and forgets it.
    pub(super) fn remove_lane(&mut self, number: u32) {
        self.unlink(number);
        if let Some(mut lane) = self.lanes.remove(number) {
            lane.reader.release(&mut self.heads);
        }
    }

    /// Takes a lane out of the list of its session.
    fn unlink(&mut self, number: u32) -> Option<&mut super::Lane> {
        let (slot, next) = {
            let lane = self.lanes.value(number)?;
            (lane.session, lane.next)
        };
        if let Some(session) = self.sessions.value_mut(slot) {
            session.lane_count = session.lane_count.saturating_sub(1);
            if session.lanes == number {
                session.lanes = next;
            } else {
                let mut at = session.lanes;
                while let Some(lane) = self.lanes.value_mut(at) {
                    if lane.next == number {
                        lane.next = next;
                        break;
                    }
                    at = lane.next;
                }
            }
        }
        self.lanes.value_mut(number)
    }

    /// The request of a lane has failed, and with it its session.
    pub(super) fn fail_lane(&mut self, number: u32, why: Failure, at: Timestamp) {
        if let Some(lane) = self.lanes.value(number) {
            let slot = lane.session;
            self.fail(slot, why, at);
        }
    }

    /// Ends a session before its script does.
    pub(super) fn fail(&mut self, slot: u32, why: Failure, at: Timestamp) {
        self.finish(slot, Some(why), at);
    }

    /// Ends a session that has done all that its script says.
    pub(super) fn end(&mut self, slot: u32, at: Timestamp) {
        self.finish(slot, None, at);
    }

    fn finish(&mut self, slot: u32, failure: Option<Failure>, at: Timestamp) {
        while let Some(number) = self.sessions.value(slot).map(|session| session.lanes) {
            let Some(lane) = self.lanes.value(number) else {
                break;
            };
            let (state, conn) = (lane.state, lane.conn);
            if state.is_in_flight() {
                self.tell(number, None, failure);
            }
            if let Some(conn) = conn {
                let wish = match failure {
                    Some(_) => Wish::Abort(conn),
                    None => Wish::Close(conn),
                };
                self.wishes.push_back(wish);
            }
            match state {
                // Somebody is still to answer, or to take the wish: the number is not used before.
                LaneState::Opening { .. } if conn.is_none() => {
                    if let Some(lane) = self.unlink(number) {
                        lane.state = LaneState::Doomed;
                        lane.session = NONE;
                    }
                }
                _ => self.remove_lane(number),
            }
        }
        self.forget_found(slot);
        self.wheel.cancel(slot, &mut self.sessions);
        let Some(session) = self.sessions.remove(slot) else {
            return;
        };
        let end = SessionEnd {
            failure,
            ..session.end(at)
        };
        self.observer.on_session(&end);
    }
}
