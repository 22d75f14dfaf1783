//! What comes from outside: events of connections, answers, time.

use linkweir_wire::Timestamp;

use super::begin::after;
use super::state::{Asks, LaneState};
use super::{RequestRef, Sessions, Wish};
use crate::outcome::{Failure, Observer};
use crate::seam::{CloseReason, ConnId, Listener, TcpEvent};

impl<O: Observer> Sessions<O> {
    /// The answer to [`Action::Connect`](super::Action::Connect): the connection with its local port, whose
    /// SYN was handed to the sender, or why there is none.
    pub fn on_opened(&mut self, user: u32, result: Result<(ConnId, u16), Failure>, now: Timestamp) {
        let Some(lane) = self.lanes.value_mut(user) else {
            return;
        };
        match lane.state {
            LaneState::Opening { is_asked: true } if lane.conn.is_none() => {}
            LaneState::Doomed => {
                // Its session ended meanwhile.
                self.lanes.remove(user);
                if let Ok((conn, _)) = result {
                    self.wishes.push_back(Wish::Abort(conn));
                }
                return;
            }
            _ => return,
        }
        let (conn, local_port) = match result {
            Ok(opened) => opened,
            Err(failure) => {
                lane.state = LaneState::Failed;
                self.fail_lane(user, failure, now);
                return;
            }
        };
        lane.conn = Some(conn);
        lane.local_port = local_port;
        if let Some(session) = self.sessions.value_mut(lane.session)
            && session.started.is_none()
        {
            session.started = Some(now);
            self.observer.on_start(session.client, session.planned, now);
        }
    }

    /// A request that [`Action::Send`](super::Action::Send) named could not be sent: its session fails.
    pub fn on_unsent(&mut self, request: RequestRef, why: Failure, now: Timestamp) {
        self.fail_lane(request.lane, why, now);
    }

    /// Does what has become due.
    pub fn on_tick(&mut self, now: Timestamp) {
        while let Some(slot) = self.wheel.pop(now.as_nanos(), &mut self.sessions) {
            match self.overdue(slot, now) {
                Some(failure) => self.fail(slot, failure, now),
                None => self.go_on(slot, now),
            }
        }
    }

    /// Why a session has waited too long; `None` where it has not.
    fn overdue(&self, slot: u32, now: Timestamp) -> Option<Failure> {
        let mut at = self.sessions.value(slot)?.lanes;
        while let Some(lane) = self.lanes.value(at) {
            match lane.state {
                LaneState::Opening { .. } if lane.deadline <= now => {
                    return Some(Failure::ConnectTimeout);
                }
                LaneState::Busy { .. } if lane.deadline <= now => {
                    return Some(Failure::ResponseTimeout);
                }
                _ => at = lane.next,
            }
        }
        None
    }

    fn on_connected(&mut self, number: u32, handshake_ns: u64, syns_again: u32, at: Timestamp) {
        let Some(lane) = self.lanes.value_mut(number) else {
            return;
        };
        let (LaneState::Opening { .. }, Some(conn)) = (lane.state, lane.conn) else {
            return;
        };
        let own = match lane.asks {
            Asks::Base(request) | Asks::Object(request) => {
                let request = self.script.request(request);
                request.and_then(|request| request.timeout_ns)
            }
            Asks::Found(_) => None,
        };
        // From now on the time of the response counts. The timer is early, and set anew then.
        lane.deadline = after(at, own.unwrap_or(self.settings.timeout_ns));
        if let Some(session) = self.sessions.value_mut(lane.session) {
            session.counts.connections += 1;
            self.observer
                .on_connect(session.client, handshake_ns, syns_again);
        }
        self.want_sent(number, conn);
    }

    /// The server sends nothing more on the connection of a lane, or it is no more (`closed`).
    fn on_stream_end(&mut self, number: u32, closed: Option<CloseReason>, at: Timestamp) {
        let may_retry = self.may_retry(number, closed);
        let Some(lane) = self.lanes.value_mut(number) else {
            return;
        };
        let is_orderly = matches!(closed, None | Some(CloseReason::Finished));
        match lane.state {
            LaneState::Busy { .. } if is_orderly && lane.reader.ends_with_stream() => {
                if closed.is_some() {
                    lane.conn = None;
                }
                self.complete(number, at);
            }
            LaneState::Busy { .. } if may_retry => {
                self.stats.retries += 1;
                self.close(number, closed);
                if let Some(lane) = self.lanes.value_mut(number) {
                    lane.is_retried = true;
                }
                self.want_opened(number);
            }
            LaneState::Busy { .. } | LaneState::Opening { .. } => {
                if closed.is_some() {
                    lane.conn = None;
                    lane.state = LaneState::Failed;
                }
                self.fail_lane(number, failure_of(closed), at);
            }
            LaneState::Idle => {
                self.stats.idle_closed += 1;
                self.close(number, closed);
                self.remove_lane(number);
            }
            LaneState::Failed | LaneState::Doomed => {}
        }
    }

    /// Whether a request that met the end of its connection may be sent again.
    fn may_retry(&self, number: u32, closed: Option<CloseReason>) -> bool {
        let Some(lane) = self.lanes.value(number) else {
            return false;
        };
        let is_idempotent = match lane.asks {
            Asks::Base(request) | Asks::Object(request) => {
                let request = self.script.request(request);
                request.is_some_and(|request| request.method.is_idempotent())
            }
            Asks::Found(_) => true,
        };
        let is_closing = matches!(
            closed,
            None | Some(CloseReason::Finished | CloseReason::Reset)
        );
        // What was not handed out cannot have been acted upon.
        let is_unsent = lane.state == (LaneState::Busy { is_sent: false });
        let is_safe = is_idempotent || is_unsent;
        is_closing && is_safe && lane.is_reused && !lane.is_retried && lane.reader.received() == 0
    }

    /// Closes our side of the connection of a lane, where there still is one.
    fn close(&mut self, number: u32, closed: Option<CloseReason>) {
        let conn = self
            .lanes
            .value_mut(number)
            .and_then(|lane| lane.conn.take());
        if let (Some(conn), None) = (conn, closed) {
            self.wishes.push_back(Wish::Close(conn));
        }
    }
}

const fn failure_of(closed: Option<CloseReason>) -> Failure {
    match closed {
        None | Some(CloseReason::Finished) => Failure::ClosedEarly,
        Some(CloseReason::Refused) => Failure::Refused,
        // We abort nothing that we still wait for: somebody else ended it.
        Some(CloseReason::Reset | CloseReason::Aborted) => Failure::Reset,
        Some(CloseReason::ConnectTimeout) => Failure::ConnectTimeout,
        Some(CloseReason::SendTimeout) => Failure::SendTimeout,
    }
}

impl<O: Observer> Listener for Sessions<O> {
    fn on_event(&mut self, conn: ConnId, user: u32, event: TcpEvent<'_>, at: Timestamp) {
        // What is no longer of interest, or was another's of the same number.
        let Some(lane) = self.lanes.value_mut(user) else {
            return;
        };
        if lane.conn != Some(conn) {
            return;
        }
        match event {
            TcpEvent::Connected {
                handshake_ns,
                syn_retransmissions,
            } => self.on_connected(user, handshake_ns, syn_retransmissions, at),
            TcpEvent::Data(bytes) => self.on_bytes(user, bytes, at),
            TcpEvent::Sent => lane.is_acknowledged = true,
            TcpEvent::PeerFinished => self.on_stream_end(user, None, at),
            TcpEvent::Closed(reason) => self.on_stream_end(user, Some(reason), at),
        }
    }
}
