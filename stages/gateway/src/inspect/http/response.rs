//! Responses: which request they answer, and the file they bring.

use std::borrow::Cow;

use linkweir_proto::http1::{BodyLength, FramingFault, ResponseHead};

use super::body::Body;
use super::facts::Facts;
use super::pending::{Asked, Kind};
use super::request::{known, tell_others};
use super::{HttpInspector, State};
use crate::inspect::{FileInfo, Found, ResponseInfo, Side};

const CONTINUE: u16 = 100;
const SWITCHING_PROTOCOLS: u16 = 101;
const PARTIAL_CONTENT: u16 = 206;

impl HttpInspector {
    /// A response of a side.
    pub(super) fn response<F: Found>(
        &mut self,
        sender: Side,
        head: &[u8],
        response: &ResponseHead<'_>,
        found: &mut F,
    ) {
        if self.stream(sender.other()).asked.is_empty() {
            // To some clients it is the body that the one before it has: a 304 with a length, for example.
            return self.malformed(sender, "a response that nobody asked for", found);
        }
        if response.is_interim() {
            if response.status_code != CONTINUE {
                found.not_followed("what comes after an interim response other than 100");
            }
            return;
        }
        let request = self.stream(sender.other()).asked.pop().unwrap_or_default();
        let no_body = matches!(response.status_code, 204 | 304) || request.kind == Kind::Head;
        let mime_type = response.content_type.split(|byte| *byte == b';').next();
        let info = ResponseInfo {
            mime_type: mime_type.unwrap_or_default().trim_ascii(),
            length: if no_body {
                Some(0)
            } else {
                response.content_length
            },
            head_len: head.len(),
            fed: self.fed,
        };
        found.response(sender, &info);
        let asking = self.stream(sender.other());
        let is_success = (200..300).contains(&response.status_code);
        match request.kind {
            Kind::Connect if is_success => {
                found.not_followed("what goes through a tunnel (CONNECT)");
                return self.switch();
            }
            // The proxy refuses: what follows is HTTP again.
            Kind::Connect if matches!(asking.state, State::Tunnel) => asking.state = State::Head,
            _ => {}
        }
        match response.status_code {
            SWITCHING_PROTOCOLS if request.kind == Kind::Upgrade => {
                found.not_followed("another protocol (101)");
                return self.switch();
            }
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
            Ok(_) if facts.framing.has_both() => {
                self.malformed(sender, FramingFault::Both.as_str(), found);
            }
            Ok(length) => {
                let mut size = (known(length), false);
                if response.status_code == PARTIAL_CONTENT {
                    let total = facts.range_total();
                    size = (total.or(size.0), total.is_none());
                }
                self.response_body(sender, &facts, &request.asked(), (length, size), found);
            }
            Err(fault) => self.malformed(sender, fault.as_str(), found),
        }
    }

    fn response_body<F: Found>(
        &mut self,
        sender: Side,
        facts: &Facts<'_>,
        asked: &Asked<'_>,
        (length, (announced_size, is_part)): (BodyLength, (Option<u64>, bool)),
        found: &mut F,
    ) {
        let Some(body) = Body::new(length, None) else {
            return;
        };
        let mut names = facts.names().into_iter();
        let name = names.next().unwrap_or(Cow::Borrowed(asked.name));
        tell_others(sender, names, asked.host, found);
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
            is_part,
        };
        found.file_begin(sender, &file);
        self.stream(sender).state = State::Body(body);
    }
}
