//! Begins requests: on a connection that waits, or on a new one.

use linkweir_model::Random;
use linkweir_wire::Timestamp;

use super::html::Found;
use super::response::ResponseReader;
use super::state::{Asks, Base, Lane, LaneState, NONE, Session};
use super::{Sessions, Wish};
use crate::outcome::{Failure, Observer};
use crate::script::{Method, Page, Span};
use crate::seam::ConnId;

impl<O: Observer> Sessions<O> {
    /// Begins what is due of a session, and sets its timer for what is not.
    pub(super) fn go_on(&mut self, slot: u32, now: Timestamp) {
        while let Some(due) = self.next_due(slot, now) {
            if due > now {
                break;
            }
            match self.free_lane(slot) {
                Ok(Some(lane)) => self.begin(slot, lane, due, now),
                // Its turn comes when a connection is free.
                Ok(None) => break,
                Err(failure) => {
                    self.fail(slot, failure, now);
                    return;
                }
            }
        }
        self.set_timer(slot, now);
    }

    /// When the next request of a session is due; `None` where none is to come now.
    fn next_due(&mut self, slot: u32, now: Timestamp) -> Option<Timestamp> {
        let session = self.sessions.value_mut(slot)?;
        if session.due.is_some() {
            return session.due;
        }
        let page = self.script.page(session.script, session.page)?;
        let found = self.found.get(session.found as usize);
        if !is_object_due(session, page, found) {
            return None;
        }
        if let Some(offset) = self.script.offset_ns(page, session.next_object) {
            let planned = session.planned.as_nanos();
            session.due = Some(Timestamp::from_nanos(planned.saturating_add(offset)));
            return session.due;
        }
        let parallel = self.script.session(session.script)?.parallel;
        if session.in_flight >= parallel {
            return None;
        }
        let pause = draw(session, &page.pause);
        session.due = Some(after(now, pause));
        session.due
    }

    /// A lane for a request: one whose connection waits, or a new one; `None` where the session has all that
    /// it may have.
    fn free_lane(&mut self, slot: u32) -> Result<Option<u32>, Failure> {
        let Some(session) = self.sessions.value_mut(slot) else {
            return Ok(None);
        };
        let mut at = session.lanes;
        while let Some(lane) = self.lanes.value(at) {
            if lane.state == LaneState::Idle {
                return Ok(Some(at));
            }
            at = lane.next;
        }
        let script = self.script.session(session.script);
        if session.lane_count >= script.map_or(1, |script| script.parallel) {
            return Ok(None);
        }
        let lane = Lane {
            session: slot,
            next: session.lanes,
            conn: None,
            local_port: 0,
            state: LaneState::Idle,
            is_reused: false,
            is_retried: false,
            is_acknowledged: false,
            asks: Asks::Base(0),
            intended: Timestamp::ZERO,
            sent: None,
            first_byte: None,
            deadline: Timestamp::MAX,
            reader: ResponseReader::new(false),
        };
        match self.lanes.insert(Some(lane)) {
            Some(number) => {
                session.lanes = number;
                session.lane_count += 1;
                Ok(Some(number))
            }
            None if session.lane_count > 0 => Ok(None),
            None => Err(Failure::NoRoom),
        }
    }

    /// Begins the request that is due, on a lane that is idle.
    fn begin(&mut self, slot: u32, number: u32, intended: Timestamp, now: Timestamp) {
        let (Some(session), Some(lane)) =
            (self.sessions.value_mut(slot), self.lanes.value_mut(number))
        else {
            return;
        };
        let Some(page) = self.script.page(session.script, session.page) else {
            return;
        };
        session.due = None;
        session.in_flight += 1;
        let asks = if session.base == Base::Waits {
            session.base = Base::InFlight;
            session.page_intended = intended;
            Asks::Base(page.base)
        } else {
            let object = session.next_object;
            session.next_object += 1;
            match self.script.object(page, object) {
                Some(request) => Asks::Object(request),
                None => Asks::Found(object.saturating_sub(page.objects())),
            }
        };
        let request = match asks {
            Asks::Base(request) | Asks::Object(request) => self.script.request(request),
            Asks::Found(_) => None,
        };
        lane.asks = asks;
        lane.intended = intended;
        lane.sent = None;
        lane.first_byte = None;
        lane.is_retried = false;
        let is_to_head = request.is_some_and(|request| request.method == Method::Head);
        lane.reader = ResponseReader::new(is_to_head);
        let own = request.and_then(|request| request.timeout_ns);
        lane.deadline = after(now, own.unwrap_or(self.settings.timeout_ns));
        match lane.conn {
            Some(conn) => self.want_sent(number, conn),
            None => self.want_opened(number),
        }
    }

    /// The request of a lane goes out on its connection.
    pub(super) fn want_sent(&mut self, number: u32, conn: ConnId) {
        if let Some(lane) = self.lanes.value_mut(number) {
            lane.state = LaneState::Busy { is_sent: false };
            lane.is_acknowledged = false;
            self.wishes.push_back(Wish::Send(number, conn));
        }
    }

    /// A lane needs a connection for its request.
    pub(super) fn want_opened(&mut self, number: u32) {
        if let Some(lane) = self.lanes.value_mut(number) {
            lane.conn = None;
            lane.is_reused = false;
            lane.state = LaneState::Opening { is_asked: false };
            self.wishes.push_back(Wish::Connect(number));
        }
    }

    /// A request is handed out; says whether it still is wanted.
    pub(super) fn mark_sent(&mut self, number: u32, conn: ConnId, now: Timestamp) -> bool {
        let Some(lane) = self.lanes.value_mut(number) else {
            return false;
        };
        if lane.conn != Some(conn) || lane.state != (LaneState::Busy { is_sent: false }) {
            return false;
        }
        lane.state = LaneState::Busy { is_sent: true };
        // What is sent again was sent at first.
        if lane.sent.is_none() {
            lane.sent = Some(now);
            let bytes = self.request_len(number);
            let slot = self.lanes.value(number).map_or(NONE, |lane| lane.session);
            if let Some(session) = self.sessions.value_mut(slot) {
                session.counts.requests += 1;
                session.counts.request_bytes += bytes;
            }
        }
        true
    }

    /// Bytes of the request of a lane.
    pub(super) fn request_len(&self, number: u32) -> u64 {
        let Some(lane) = self.lanes.value(number) else {
            return 0;
        };
        let len = match lane.asks {
            Asks::Base(request) | Asks::Object(request) => {
                let request = self.script.request(request);
                request.map_or(0, |request| self.script.bytes(request).len())
            }
            Asks::Found(_) => {
                let session = self.sessions.value(lane.session);
                let page = session.and_then(|s| self.script.page(s.script, s.page));
                let tail = page.map_or(0, |page| self.script.found_tail(page).len());
                "GET ".len() + self.target(lane).len() + tail
            }
        };
        len as u64
    }

    /// The target that a lane asks for.
    pub(super) fn target(&self, lane: &Lane) -> &[u8] {
        match lane.asks {
            Asks::Base(request) | Asks::Object(request) => {
                let request = self.script.request(request);
                request.map_or(&[], |request| self.script.target(request))
            }
            Asks::Found(object) => {
                let session = self.sessions.value(lane.session);
                let found = session.and_then(|s| self.found.get(s.found as usize));
                found.map_or(&[], |found| found.target(object as usize))
            }
        }
    }

    /// Sets the timer of a session for the first that it waits for. A timer that is early already stays: it
    /// is set anew when it is due.
    fn set_timer(&mut self, slot: u32, now: Timestamp) {
        let Some(session) = self.sessions.value(slot) else {
            return;
        };
        // What is due already waits for a connection, not for time.
        let mut first = session.due.filter(|due| *due > now);
        let mut at = session.lanes;
        while let Some(lane) = self.lanes.value(at) {
            if lane.state.is_in_flight() {
                first = Some(first.map_or(lane.deadline, |first| first.min(lane.deadline)));
            }
            at = lane.next;
        }
        let Some(first) = first.map(Timestamp::as_nanos) else {
            return;
        };
        if self
            .wheel
            .due_ns(&session.timer)
            .is_none_or(|set| set > first)
        {
            self.wheel.set(slot, first, &mut self.sessions);
        }
    }
}

/// Whether the page has an object whose turn may have come.
fn is_object_due(session: &Session, page: &Page, found: Option<&Found>) -> bool {
    match session.base {
        Base::Waits => false,
        Base::InFlight => page.is_timed() && session.next_object < page.objects(),
        Base::Done => session.next_object < objects_of(page, found),
    }
}

/// How many objects a page has, named and found.
pub(super) fn objects_of(page: &Page, found: Option<&Found>) -> u32 {
    let found = found.map_or(0, Found::len);
    page.objects()
        .saturating_add(u32::try_from(found).unwrap_or(u32::MAX))
}

/// Draws a span of a session.
pub(super) fn draw(session: &mut Session, span: &Span) -> u64 {
    if let Span::Constant(nanos) = span {
        return *nanos;
    }
    let mut random = Random::part(session.seed, u64::from(session.draws));
    session.draws = session.draws.wrapping_add(1);
    span.draw(&mut random)
}

pub(super) const fn after(time: Timestamp, nanos: u64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
}
