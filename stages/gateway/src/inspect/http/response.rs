//! Responses: which request they answer, and the file they bring.

use std::borrow::Cow;

use linkweir_proto::http1::{BodyLength, ResponseHead};

use super::body::Body;
use super::facts::Facts;
use super::pending::{Asked, Kind};
use super::request::known;
use super::{HttpInspector, State};
use crate::inspect::{FileInfo, Found, Side};

const SWITCHING_PROTOCOLS: u16 = 101;
const PARTIAL_CONTENT: u16 = 206;

impl HttpInspector {
    /// A response of a side.
    ///
    /// One that nobody asked for is read as the answer to a `GET`.
    pub(super) fn response<F: Found>(
        &mut self,
        sender: Side,
        head: &[u8],
        response: &ResponseHead<'_>,
        found: &mut F,
    ) {
        if response.is_interim() {
            return;
        }
        let asking = self.stream(sender.other());
        let request = asking.asked.pop().unwrap_or_default();
        let is_success = (200..300).contains(&response.status_code);
        match request.kind {
            Kind::Connect if is_success => return self.switch(),
            // The proxy refuses: what follows is HTTP again.
            Kind::Connect if matches!(asking.state, State::Tunnel) => asking.state = State::Head,
            _ => {}
        }
        match response.status_code {
            SWITCHING_PROTOCOLS if request.kind == Kind::Upgrade => return self.switch(),
            // What it means is the client's guess, and what follows would pass unseen.
            SWITCHING_PROTOCOLS => {
                return self.malformed(sender, "another protocol that nobody asked for", found);
            }
            204 | 304 => return,
            _ if request.kind == Kind::Head => return,
            _ => {}
        }
        let facts = Facts::of(head);
        match facts.framing.response(response.minor) {
            Ok(length) => {
                let total = (response.status_code == PARTIAL_CONTENT)
                    .then(|| facts.range_total())
                    .flatten();
                let announced_size = total.or_else(|| known(length));
                self.response_body(
                    sender,
                    &facts,
                    &request.asked(),
                    (length, announced_size),
                    found,
                );
            }
            Err(fault) => self.malformed(sender, fault.as_str(), found),
        }
    }

    fn response_body<F: Found>(
        &mut self,
        sender: Side,
        facts: &Facts<'_>,
        asked: &Asked<'_>,
        (length, announced_size): (BodyLength, Option<u64>),
        found: &mut F,
    ) {
        let Some(body) = Body::new(length, None) else {
            return;
        };
        let mut name = facts.name();
        if name.is_empty() {
            name = Cow::Borrowed(asked.name);
        }
        let identifier = if asked.identifier.is_empty() {
            facts.identifier
        } else {
            asked.identifier
        };
        let file = FileInfo {
            name: &name,
            announced_size,
            host: asked.host,
            identifier,
            from: facts.user,
            to: asked.user,
            coding: facts.coding(),
            is_until_close: body.ends_with_connection(),
        };
        found.file_begin(sender, &file);
        self.stream(sender).state = State::Body(body);
    }
}
