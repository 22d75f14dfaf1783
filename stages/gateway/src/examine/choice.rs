//! Which rule each request of a connection gets, where rules ask for what requests and responses say.
//!
//! The rules of a connection are in their order, the last one is that of all other requests. A rule that asks for nothing of the
//! response decides a request before its head passes; one that does, the response before its head passes.

use std::collections::VecDeque;

use linkweir_proto::http1::percent_decoded;

use super::found::Findings;
use super::{Examination, of};
use crate::inspect::{RequestInfo, ResponseInfo, Side};
use crate::policy::{Action, Label, OnMatch, Requested, Shown, Why};

/// Bytes of each text of a request that are kept for its response.
const MAX_TEXT: usize = 512;

/// The state of the choice.
#[derive(Debug)]
pub(super) struct Choice {
    label: Label,
    /// What holds for what client and server send, by its place among the rules.
    current: [u16; 2],
    /// Requests without response, oldest first; the parser bounds their number.
    unanswered: VecDeque<Unanswered>,
    /// What was recorded last.
    recorded: Option<u16>,
    /// Bytes of client and server that were reported, and how many of them before what is fed now.
    reported: [u64; 2],
    before: [u64; 2],
    /// A response of unknown length that rules ask for.
    growing: Option<Growing>,
    /// What the client gets in place of a response; and how many bytes of the server came with what decided that.
    reply: Option<(Vec<u8>, u64)>,
}

/// A request whose response has not come.
#[derive(Debug)]
struct Unanswered {
    /// Rules before `decided` that ask for its response.
    may: Vec<u16>,
    decided: u16,
    is_head: bool,
    /// What it asked for, where rules ask for the response.
    texts: Option<Box<Texts>>,
}

#[derive(Debug, Default)]
struct Texts {
    host: Vec<u8>,
    url: Vec<u8>,
    plain_url: Vec<u8>,
    method: Vec<u8>,
    user_agent: Vec<u8>,
}

impl Texts {
    fn of(request: &Requested<'_>) -> Self {
        let kept = |text: &[u8]| text.get(..MAX_TEXT).unwrap_or(text).to_vec();
        Self {
            host: kept(request.host),
            url: kept(request.url),
            plain_url: kept(request.plain_url),
            method: kept(request.method),
            user_agent: kept(request.user_agent),
        }
    }

    fn requested(&self) -> Requested<'_> {
        Requested {
            host: &self.host,
            url: &self.url,
            plain_url: &self.plain_url,
            method: &self.method,
            user_agent: &self.user_agent,
        }
    }
}

#[derive(Debug)]
struct Growing {
    request: Unanswered,
    mime_type: Vec<u8>,
    /// The least length at which a rule matches, and bytes so far.
    least: u64,
    length: u64,
}

impl Choice {
    /// Of `rules` rules, the last of which holds unless another one matches.
    pub(super) fn new(label: Label, rules: usize) -> Self {
        let last = u16::try_from(rules.saturating_sub(1)).unwrap_or(u16::MAX);
        Self {
            label,
            current: [last; 2],
            unanswered: VecDeque::new(),
            recorded: None,
            reported: [0; 2],
            before: [0; 2],
            growing: None,
            reply: None,
        }
    }

    /// What holds for the client, by its place among the rules.
    pub(super) fn present(&self) -> usize {
        let [client, _] = self.current;
        client.into()
    }

    pub(super) const fn label(&self) -> Label {
        self.label
    }

    /// The first rule that the next request or response may choose, by its place, where none has chosen any.
    pub(super) fn undecided(&self) -> Option<usize> {
        let asked = self
            .unanswered
            .front()
            .and_then(|request| request.may.first());
        let first = asked.map_or(0, |at| usize::from(*at));
        self.recorded.is_none().then_some(first)
    }

    /// More bytes of a side follow.
    pub(super) const fn begin(&mut self, sender: Side) {
        *of(&mut self.before, sender) = *of(&mut self.reported, sender);
    }

    /// Whether the length of a body of the server still decides something.
    pub(super) const fn counts_body(&self) -> bool {
        self.growing.is_some()
    }
}

impl Examination {
    /// What the client gets in place of a response, once; and how many bytes of the server that were fed last are not to come
    /// before it.
    pub(crate) fn take_reply(&mut self) -> Option<(Vec<u8>, u64)> {
        self.state.choice.as_mut()?.reply.take()
    }
}

impl Findings<'_, '_> {
    /// What follows is judged by the rule for a side.
    pub(super) fn turn(&mut self, sender: Side) {
        if let Some(choice) = &mut self.state.choice
            && let Some(rule) = self
                .rules
                .get(usize::from(*of(&mut choice.current, sender)))
        {
            self.rule = rule;
        }
    }

    /// Bytes of a side were reported.
    pub(super) fn reported(&mut self, sender: Side, bytes: usize) {
        if let Some(choice) = &mut self.state.choice {
            *of(&mut choice.reported, sender) += bytes as u64;
        }
    }

    /// A request chooses its rule.
    pub(super) fn on_request(&mut self, sender: Side, info: &RequestInfo<'_>) {
        let Some(mut choice) = self.state.choice.take() else {
            return;
        };
        let url = [info.host, origin_form(info.target)].concat();
        let requested = Requested {
            host: info.host.strip_suffix(b".").unwrap_or(info.host),
            url: &url,
            plain_url: &percent_decoded(&url),
            method: info.method,
            user_agent: info.user_agent,
        };
        let rules = self.rules;
        let last = rules.len().saturating_sub(1);
        let mut may = Vec::new();
        let mut decided = u16::try_from(last).unwrap_or(u16::MAX);
        for (at, rule) in (0..).zip(rules.iter().take(last)) {
            let conditions = &rule.conditions;
            if !conditions.match_request(&requested, &mut Why::unasked()) {
                continue;
            }
            if conditions.response.is_any() {
                decided = at;
                break;
            }
            if !info.is_multiplexed {
                may.push(at);
            }
        }
        let waits = !may.is_empty();
        let before = *of(&mut choice.current, sender);
        let request = Unanswered {
            texts: waits.then(|| Box::new(Texts::of(&requested))),
            is_head: info.method == b"HEAD",
            may,
            decided,
        };
        if waits {
            self.set(&mut choice, sender, decided);
        } else {
            let is_next = choice.unanswered.is_empty() && !info.is_multiplexed;
            let no_bytes = is_next.then_some(0);
            let parts = (sender, info.is_multiplexed, no_bytes);
            self.choose(&mut choice, decided, parts, &requested, &request, None);
        }
        if !info.is_multiplexed {
            choice.unanswered.push_back(request);
        }
        let is_other = before != *of(&mut choice.current, sender);
        self.state.choice = Some(choice);
        if is_other && !info.head.is_empty() {
            // What a keyword of the rule may be in was reported before it was chosen.
            self.find_in_head(sender, info.head);
        }
    }

    /// What comes is no request that could choose: the rule for all else holds, until a request says otherwise.
    pub(super) fn on_no_request(&mut self, sender: Side) {
        let Some(mut choice) = self.state.choice.take() else {
            return;
        };
        if choice.recorded.is_none() {
            let last = u16::try_from(self.rules.len().saturating_sub(1)).unwrap_or(u16::MAX);
            let nothing = Unanswered {
                may: Vec::new(),
                decided: last,
                is_head: false,
                texts: None,
            };
            let (parts, requested) = ((sender, false, None), Requested::default());
            self.choose(&mut choice, last, parts, &requested, &nothing, None);
        }
        self.state.choice = Some(choice);
    }

    /// A final response: a rule may ask for it.
    pub(super) fn on_response(&mut self, sender: Side, info: &ResponseInfo<'_>) {
        let Some(mut choice) = self.state.choice.take() else {
            return;
        };
        choice.growing = None;
        if let Some(request) = choice.unanswered.pop_front() {
            let reported = *of(&mut choice.reported, sender);
            let before = *of(&mut choice.before, sender);
            let is_first = reported.saturating_sub(info.head_len as u64) == before;
            let bytes = (is_first && choice.unanswered.is_empty()).then_some(info.fed as u64);
            self.answer(
                &mut choice,
                sender,
                request,
                info.mime_type,
                info.length,
                bytes,
            );
        }
        self.state.choice = Some(choice);
    }

    /// Chooses the rule of a response. `at_start` says that nothing of it has passed, and how many bytes came with its head.
    fn answer(
        &mut self,
        choice: &mut Choice,
        sender: Side,
        request: Unanswered,
        mime_type: &[u8],
        length: Option<u64>,
        at_start: Option<u64>,
    ) {
        let Some(texts) = &request.texts else {
            self.set(choice, sender, request.decided);
            return;
        };
        let requested = texts.requested();
        let rules = self.rules;
        let matching = |at: &&u16| {
            let rule = rules.get(usize::from(**at));
            rule.is_some_and(|rule| {
                let response = &rule.conditions.response;
                response.matches(mime_type, length, &mut Why::unasked())
            })
        };
        let found = request.may.iter().find(matching).copied();
        let response = found.map(|_| (mime_type, length));
        let decided = found.unwrap_or(request.decided);
        let parts = (sender, false, at_start);
        // A rule that waits for more bytes may come before the one that is found.
        let least = request.may.iter().take_while(|at| Some(**at) != found);
        let least =
            least.filter_map(|at| rules.get(usize::from(*at))?.conditions.response.min_body);
        let least = if length.is_none() { least.min() } else { None };
        self.choose(choice, decided, parts, &requested, &request, response);
        choice.growing = least.map(|least| Growing {
            mime_type: mime_type.to_vec(),
            length: 0,
            least,
            request,
        });
    }

    /// Bytes of a body of the server have come.
    pub(super) fn on_body(&mut self, sender: Side, bytes: usize) {
        let Some(mut choice) = self.state.choice.take() else {
            return;
        };
        if let Some(growing) = &mut choice.growing
            && sender == Side::Server
        {
            growing.length = growing.length.saturating_add(bytes as u64);
            if growing.length >= growing.least
                && let Some(grown) = choice.growing.take()
            {
                let length = Some(grown.length);
                self.answer(
                    &mut choice,
                    sender,
                    grown.request,
                    &grown.mime_type,
                    length,
                    None,
                );
            }
        }
        self.state.choice = Some(choice);
    }

    fn set(&mut self, choice: &mut Choice, sender: Side, at: u16) {
        let current = of(&mut choice.current, sender);
        if *current != at {
            *current = at;
            // The state of other keywords.
            *of(&mut self.state.keywords, sender) = None;
        }
        if let Some(rule) = self.rules.get(usize::from(at)) {
            self.rule = rule;
        }
    }

    /// A rule decides a request or its response.
    fn choose(
        &mut self,
        choice: &mut Choice,
        at: u16,
        (sender, is_multiplexed, at_start): (Side, bool, Option<u64>),
        requested: &Requested<'_>,
        request: &Unanswered,
        response: Option<(&[u8], Option<u64>)>,
    ) {
        let Some(rule) = self.rules.get(usize::from(at)) else {
            return;
        };
        // Streams of HTTP/2 come at the same time: only what ends the connection is chosen by one of them.
        if !is_multiplexed || rule.action.stops() || choice.recorded.is_none() {
            self.set(choice, sender, at);
        }
        if choice.recorded != Some(at) {
            let first = choice.recorded.replace(at).is_none();
            if first {
                self.ctx.count_decided(choice.label, rule.action);
            }
            let (shown, mut text) = (Shown::default(), Vec::new());
            let what = (choice.label, &shown);
            self.ctx
                .explain(rule, self.application, &self.ends, what, &mut text);
            let mut why = Why::to(&mut text);
            rule.conditions.match_request(requested, &mut why);
            if let Some((mime_type, length)) = response {
                rule.conditions
                    .response
                    .matches(mime_type, length, &mut why);
            }
            let shown = Shown {
                server_name: requested.host.to_vec(),
                ..shown
            };
            let whose = (self.ends, self.is_tcp);
            self.ctx
                .record_decision(whose, Some(choice.label), rule, &shown, &text);
        }
        if !rule.action.stops() || self.state.blocked.is_some() {
            return;
        }
        self.state.blocked = Some(match rule.action {
            Action::Drop => OnMatch::Drop,
            _ => OnMatch::Reject,
        });
        let has_body = !request.is_head;
        choice.reply = at_start.and_then(|bytes| {
            let reply = rule.reply.as_ref()?;
            Some((reply.response(has_body), bytes))
        });
    }
}

/// Path and query of a request target (RFC 9112 sec. 3.2).
fn origin_form(target: &[u8]) -> &[u8] {
    if target.starts_with(b"/") {
        return target;
    }
    let after = memchr::memmem::find(target, b"://").and_then(|at| target.get(at + 3..));
    let after = after.unwrap_or_default();
    let start = memchr::memchr2(b'/', b'?', after).unwrap_or(after.len());
    after.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_path_and_query() {
        for (target, expected) in [
            ("/a?b=http://c/", "/a?b=http://c/"),
            ("http://host:80/a?b", "/a?b"),
            ("http://host", ""),
            ("*", ""),
            ("host:443", ""),
        ] {
            assert_eq!(
                origin_form(target.as_bytes()),
                expected.as_bytes(),
                "{target}"
            );
        }
    }
}
