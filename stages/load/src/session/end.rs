//! Ends of requests and sessions, and what is told of them.

use linkweir_wire::Timestamp;

use super::state::{Asks, LaneState};
use super::{Sessions, Wish};
use crate::outcome::{Exchange, Failure, Observer, SessionEnd};

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
                        lane.session = super::NONE;
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
