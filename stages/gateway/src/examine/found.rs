//! The policy applied to what an inspector finds.

use std::sync::Arc;

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use linkweir_engine::effect::{FileEnd, FileOp, FileOrigin, ScanOutcome, ScanReport};
use linkweir_record::gateway::{GatewayEventKind, GatewayRow, GatewayText};
use sha2::Digest as _;

use super::transfer::Scanning;
use super::transfer::{Transfer, safe_name};
use super::{MAX_MATCHES, MAX_NAMED, State, end_of, of};
use crate::connection::key::Ends;
use crate::context::Context;
use crate::inspect::{
    ChatMessage, Coding, DecodeLimit, Decoder, FileInfo, Found, Invitation, RequestInfo,
    ResponseInfo, Side,
};
use crate::policy::{Fail, OnMatch, Rule};

/// The action of a match, in records.
const fn action_of(action: OnMatch) -> &'static str {
    match action {
        OnMatch::Reject => "reject",
        OnMatch::Drop => "drop",
        OnMatch::Event => "allow",
    }
}

/// An examination with all it needs to judge what is found.
#[derive(Debug)]
pub(super) struct Findings<'a, 'c> {
    pub(super) rule: &'a Rule,
    /// Among which requests choose; see [`super::Examination`].
    pub(super) rules: &'a [Arc<Rule>],
    pub(super) application: &'a str,
    pub(super) state: &'a mut State,
    pub(super) ends: Ends,
    pub(super) is_tcp: bool,
    pub(super) ctx: &'a mut Context<'c>,
}

impl Findings<'_, '_> {
    /// Writes an event with what is known of the connection.
    pub(super) fn record(&mut self, row: GatewayRow, text: &GatewayText<'_>) {
        let text = GatewayText {
            application: self.application.as_bytes(),
            rule: self.rule.name.as_bytes(),
            host: &self.state.host,
            ..*text
        };
        self.ctx.record(self.ends, self.is_tcp, row, &text);
    }

    /// Nothing passes any more, for this reason.
    pub(super) fn block(&mut self, action: OnMatch, why: &[u8]) {
        if action == OnMatch::Event || self.state.blocked.is_some() {
            return;
        }
        self.state.blocked = Some(action);
        let row = GatewayRow {
            event: GatewayEventKind::Blocked,
            action: action_of(action),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            detail: why,
            ..GatewayText::default()
        };
        self.record(row, &text);
    }

    /// Something in the traffic is not to pass.
    pub(super) fn on_match(
        &mut self,
        event: GatewayEventKind,
        sender: Side,
        name: &[u8],
        detail: &[u8],
    ) {
        if self.state.matches >= MAX_MATCHES {
            return;
        }
        self.state.matches += 1;
        let action = self.rule.inspect.on_match;
        let row = GatewayRow {
            event,
            action: action_of(action),
            sender_side: sender.as_str(),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            file_name: name,
            detail,
            ..GatewayText::default()
        };
        self.record(row, &text);
        self.block(action, event.as_str().as_bytes());
    }

    /// Something could not be inspected.
    pub(super) fn on_unscanned(&mut self, name: &[u8], why: &str) {
        let is_closed = self.rule.fail == Fail::Closed;
        let row = GatewayRow {
            event: GatewayEventKind::Unscanned,
            action: if is_closed { "reject" } else { "allow" },
            verdict: "unscanned",
            ..GatewayRow::default()
        };
        let text = GatewayText {
            file_name: name,
            detail: why.as_bytes(),
            ..GatewayText::default()
        };
        self.record(row, &text);
        if is_closed {
            self.block(OnMatch::Reject, b"not scanned");
        }
    }

    /// Bytes of a file, without their coding.
    fn on_plain(&mut self, sender: Side, transfer: &mut Transfer, plain: &[u8]) {
        if self.state.blocked.is_some() || plain.is_empty() {
            return;
        }
        transfer.size += plain.len() as u64;
        if let Some(hash) = &mut transfer.hash {
            hash.update(plain);
        }
        if let Some(id) = transfer.file {
            let bytes = plain.to_vec();
            self.ctx.effects.files.push(FileOp::Data { id, bytes });
        }
        if let (Some(keywords), Some(state)) = (&self.rule.inspect.keywords, &mut transfer.keywords)
            && let Some(keyword) = keywords.find(state, plain)
        {
            self.on_match(
                GatewayEventKind::Keyword,
                sender,
                &transfer.name,
                keyword.as_bytes(),
            );
        }
        self.scan(sender, transfer, plain);
    }

    /// The coding cannot be taken off: the bytes as they are stand for the file.
    pub(super) fn give_up_decoding(&mut self, transfer: &mut Transfer, why: &str) {
        let inspect = &self.rule.inspect;
        if inspect.scan.is_some() || inspect.keywords.is_some() {
            self.on_unscanned(&transfer.name, why);
            transfer.unscanned = Some(why.to_owned());
        }
        transfer.decoder = None;
    }

    /// The file of a side has ended, whole or not.
    fn end_file(&mut self, sender: Side, is_complete: bool) {
        self.turn(sender);
        let Some(mut transfer) = of(&mut self.state.transfers, sender).take() else {
            return;
        };
        let was_coded = transfer.decoder.take().is_some();
        let is_cut = !was_coded && transfer.announced.is_some_and(|all| all > transfer.size);
        let is_part = transfer.is_part || is_cut;
        if is_part && is_complete && transfer.scanning.is_some() {
            // A signature may lie across the parts (RFC 9110 sec. 14.4), which come apart.
            self.on_unscanned(&transfer.name, "a part of a file");
            transfer.unscanned = Some("a part of a file".to_owned());
        }
        let is_complete = is_complete && !is_part;
        if self.state.blocked.is_some() {
            self.conclude(sender, transfer, "blocked", is_complete);
            return;
        }
        if let Some(scanning) = &mut transfer.scanning
            && !scanning.is_empty()
        {
            let ticket = scanning.finish(self.ctx);
            self.wait_for(sender, transfer.number, Some(ticket));
        }
        transfer.is_complete = is_complete;
        of(&mut self.state.ended, sender).push(transfer);
        self.conclude_scanned(sender);
    }

    /// Records files that have ended, where no scan of them is outstanding any more.
    fn conclude_scanned(&mut self, sender: Side) {
        let waiting = of(&mut self.state.waiting, sender);
        let is_scanned =
            |transfer: &mut Box<Transfer>| waiting.iter().all(|wait| wait.file != transfer.number);
        let scanned: Vec<_> = of(&mut self.state.ended, sender)
            .extract_if(.., is_scanned)
            .collect();
        for transfer in scanned {
            let (verdict, is_complete) = (self.verdict_of(&transfer), transfer.is_complete);
            self.conclude(sender, transfer, verdict, is_complete);
        }
    }

    /// The verdict on a file for which no scan is outstanding.
    fn verdict_of(&self, transfer: &Transfer) -> &'static str {
        match (&self.rule.inspect.scan, &transfer.unscanned) {
            (None, _) => "passed",
            (Some(_), Some(_)) => "unscanned",
            (Some(_), None) => "clean",
        }
    }

    /// The number of one more file.
    const fn next_number(&mut self) -> u32 {
        self.state.files = self.state.files.wrapping_add(1);
        self.state.files
    }

    /// The file of this number, ended or not.
    fn file_of(&mut self, sender: Side, number: u32) -> Option<&mut Box<Transfer>> {
        let mut files = self.state.files_of(sender);
        files.find(|file| file.number == number)
    }

    /// What follows of a file would wait for the scanner as long, and be unscanned all the same.
    fn scan_no_further(&mut self, sender: Side, number: u32) {
        let current = of(&mut self.state.transfers, sender);
        if let Some(mut transfer) = current.take_if(|file| file.number == number) {
            self.stop_scanning(&mut transfer);
            *of(&mut self.state.transfers, sender) = Some(transfer);
            return;
        }
        let beside = of(&mut self.state.beside, sender);
        if let Some(at) = beside.iter().position(|(_, file)| file.number == number) {
            let (stream, mut transfer) = beside.swap_remove(at);
            self.stop_scanning(&mut transfer);
            of(&mut self.state.beside, sender).push((stream, transfer));
        }
    }

    /// Takes the file of this number, ended or not.
    fn take_file(&mut self, sender: Side, number: u32) -> Option<Box<Transfer>> {
        let current = of(&mut self.state.transfers, sender);
        if current.as_ref().is_some_and(|file| file.number == number) {
            return current.take();
        }
        let beside = of(&mut self.state.beside, sender);
        if let Some(at) = beside.iter().position(|(_, file)| file.number == number) {
            return Some(beside.swap_remove(at).1);
        }
        let ended = of(&mut self.state.ended, sender);
        let at = ended.iter().position(|file| file.number == number)?;
        Some(ended.remove(at))
    }

    /// The files of a side end where they are.
    pub(super) fn cut_files(&mut self, sender: Side) {
        self.end_file(sender, false);
        for (_, transfer) in std::mem::take(of(&mut self.state.beside, sender)) {
            *of(&mut self.state.transfers, sender) = Some(transfer);
            self.end_file(sender, false);
        }
    }

    /// The scans of a side are abandoned; its file is cut.
    pub(super) fn abandon(&mut self, sender: Side, is_blocked: bool) {
        self.turn(sender);
        let verdict = if is_blocked { "blocked" } else { "unscanned" };
        let waiting = std::mem::take(of(&mut self.state.waiting, sender));
        let tickets = waiting.iter().map(|wait| wait.ticket);
        self.ctx.effects.abandoned.extend(tickets);
        for transfer in std::mem::take(of(&mut self.state.ended, sender)) {
            let is_complete = transfer.is_complete;
            self.conclude(sender, transfer, verdict, is_complete);
        }
        let beside = std::mem::take(of(&mut self.state.beside, sender));
        let current = of(&mut self.state.transfers, sender).take();
        let beside = beside.into_iter().map(|(_, transfer)| transfer);
        for mut transfer in current.into_iter().chain(beside) {
            let ticket = transfer.scanning.as_mut().and_then(Scanning::abandoned);
            self.ctx.effects.abandoned.extend(ticket);
            let verdict = if is_blocked {
                "blocked"
            } else {
                self.verdict_of(&transfer)
            };
            self.conclude(sender, transfer, verdict, false);
        }
    }

    /// Records a file that has ended and decides what becomes of its copy.
    fn conclude(
        &mut self,
        sender: Side,
        mut transfer: Box<Transfer>,
        verdict: &'static str,
        is_complete: bool,
    ) {
        self.give_back(&mut transfer);
        if let Some(id) = transfer.file {
            let end = if verdict == "infected" && self.rule.inspect.quarantine {
                FileEnd::Quarantine
            } else {
                end_of(self.rule, is_complete && verdict != "blocked")
            };
            if end == FileEnd::Discard {
                transfer.stored.clear();
            }
            self.ctx.effects.files.push(FileOp::End { id, end });
        }
        self.ctx.stats.files += 1;
        if !self.rule.inspect.audit {
            return;
        }
        let row = GatewayRow {
            event: GatewayEventKind::File,
            sender_side: sender.as_str(),
            verdict,
            size: Some(transfer.size),
            announced_size: transfer.announced,
            is_complete: Some(is_complete),
            sha256: transfer.sha256(),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            file_name: &transfer.name,
            from: &transfer.from,
            to: &transfer.to,
            detail: transfer.unscanned.as_deref().unwrap_or_default().as_bytes(),
            stored: transfer.stored.as_bytes(),
            ..GatewayText::default()
        };
        self.record(row, &text);
    }

    /// The report of a scanner.
    pub(super) fn on_report(&mut self, report: &ScanReport) -> Option<Side> {
        let (side, wait) = [Side::Client, Side::Server].into_iter().find_map(|side| {
            let waiting = of(&mut self.state.waiting, side);
            let at = waiting
                .iter()
                .position(|wait| wait.ticket == report.ticket)?;
            Some((side, waiting.swap_remove(at)))
        })?;
        self.turn(side);
        let file = self.file_of(side, wait.file);
        let name = file.map_or_else(Vec::new, |file| file.name.clone());
        match &report.outcome {
            ScanOutcome::Clean => {}
            ScanOutcome::Infected(virus) => {
                let row = GatewayRow {
                    event: GatewayEventKind::Infected,
                    action: "reject",
                    sender_side: side.as_str(),
                    verdict: "infected",
                    ..GatewayRow::default()
                };
                let text = GatewayText {
                    file_name: &name,
                    detail: virus.as_bytes(),
                    ..GatewayText::default()
                };
                self.record(row, &text);
                if let Some(transfer) = self.take_file(side, wait.file) {
                    let is_complete = transfer.is_complete;
                    self.conclude(side, transfer, "infected", is_complete);
                }
                self.block(OnMatch::Reject, b"infected");
            }
            ScanOutcome::Failed(why) => {
                self.on_unscanned(&name, why);
                if let Some(transfer) = self.file_of(side, wait.file) {
                    transfer.unscanned.get_or_insert_with(|| why.clone());
                }
                let timeout = self.rule.inspect.scan.map(|scan| scan.timeout_ns);
                if timeout.is_some_and(|timeout| report.latency_ns >= timeout) {
                    self.scan_no_further(side, wait.file);
                }
            }
        }
        self.conclude_scanned(side);
        Some(side)
    }
}

/// Tells names of one connection apart.
fn hash_of(sender: Side, name: &[u8]) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    hasher.hash_one((sender, name))
}

impl Found for Findings<'_, '_> {
    fn text(&mut self, sender: Side, bytes: &[u8]) {
        self.reported(sender, bytes.len());
        self.turn(sender);
        self.find_in_head(sender, bytes);
    }

    fn request(&mut self, sender: Side, request: &RequestInfo<'_>) {
        self.on_request(sender, request);
    }

    fn no_request(&mut self, sender: Side) {
        self.on_no_request(sender);
    }

    fn response(&mut self, sender: Side, response: &ResponseInfo<'_>) {
        self.on_response(sender, response);
    }

    fn host(&mut self, host: &[u8]) {
        self.state.set_host(host);
    }

    fn message(&mut self, sender: Side, message: &ChatMessage<'_>) {
        self.ctx.stats.messages += 1;
        if !self.rule.inspect.audit {
            return;
        }
        let row = GatewayRow {
            event: GatewayEventKind::Message,
            sender_side: sender.as_str(),
            size: Some(message.text.len() as u64),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            from: message.from,
            to: message.to,
            message: message.text,
            ..GatewayText::default()
        };
        self.record(row, &text);
    }

    fn file_named(&mut self, sender: Side, file: &FileInfo<'_>) {
        let before = self.state.matches;
        self.check_name(sender, file.name);
        if self.state.matches != before {
            self.state.matched = Some(hash_of(sender, file.name));
        }
        // Where the bytes never can be followed, the name is all there is to record.
        if !self.rule.inspect.audit || !matches!(self.application, "edonkey" | "bittorrent") {
            return;
        }
        let hash = hash_of(sender, &[file.name, file.identifier].concat());
        if self.state.named.contains(&hash) || self.state.named.len() >= MAX_NAMED {
            return;
        }
        self.state.named.push(hash);
        let row = GatewayRow {
            event: GatewayEventKind::File,
            sender_side: sender.as_str(),
            verdict: "passed",
            announced_size: file.announced_size,
            ..GatewayRow::default()
        };
        let text = GatewayText {
            file_name: file.name,
            detail: file.identifier,
            from: file.from,
            to: file.to,
            ..GatewayText::default()
        };
        self.record(row, &text);
    }

    fn stream(&mut self, sender: Side, stream: u32) {
        let before = std::mem::replace(of(&mut self.state.streams, sender), stream);
        if before == stream {
            return;
        }
        let current = of(&mut self.state.transfers, sender).take();
        let beside = of(&mut self.state.beside, sender);
        beside.extend(current.map(|transfer| (before, transfer)));
        let at = beside.iter().position(|(other, _)| *other == stream);
        let transfer = at.map(|at| beside.swap_remove(at).1);
        *of(&mut self.state.transfers, sender) = transfer;
    }

    fn file_begin(&mut self, sender: Side, file: &FileInfo<'_>) {
        // Judged by the rule of its side from here on.
        self.end_file(sender, false);
        if self.state.blocked.is_some() {
            return;
        }
        if self.state.matched.take() != Some(hash_of(sender, file.name)) {
            self.check_name(sender, file.name);
        }
        let mut transfer = Box::new(Transfer::new(self.rule, self.next_number(), file));
        match file.coding {
            Coding::Identity => {}
            Coding::Gzip | Coding::Deflate => {
                let limit = DecodeLimit {
                    total: self.ctx.policy.limits.decoded_bytes,
                    ..DecodeLimit::default()
                };
                transfer.decoder = Some(Box::new(Decoder::new(file.coding, limit)));
            }
            Coding::Other => {
                self.give_up_decoding(&mut transfer, "its content coding is not taken off");
            }
        }
        self.reserve(&mut transfer);
        let inspect = &self.rule.inspect;
        if inspect.record || (inspect.quarantine && inspect.scan.is_some()) {
            let id = self.ctx.ids.file();
            let name = safe_name(&transfer.name);
            transfer.stored = format!(
                "{}-{}-{name}",
                self.ctx.now.as_nanos() / 1_000_000_000,
                self.ctx.ids.file_suffix(id)
            );
            transfer.file = Some(id);
            let origin = Box::new(FileOrigin {
                time: self.ctx.now,
                sender: self.ends.address(sender),
                receiver: self.ends.address(sender.other()),
                application: self.application.to_owned(),
                name: transfer.name.clone(),
                stored_name: transfer.stored.clone(),
            });
            self.ctx.effects.files.push(FileOp::Begin { id, origin });
        }
        *of(&mut self.state.transfers, sender) = Some(transfer);
    }

    fn file_data(&mut self, sender: Side, bytes: &[u8]) {
        self.reported(sender, bytes.len());
        self.on_body(sender, bytes.len());
        self.turn(sender);
        let Some(mut transfer) = of(&mut self.state.transfers, sender).take() else {
            return;
        };
        if let Some(mut decoder) = transfer.decoder.take() {
            let mut on_plain = |plain: &[u8]| self.on_plain(sender, &mut transfer, plain);
            match decoder.push(bytes, &mut on_plain) {
                Ok(()) => transfer.decoder = Some(decoder),
                Err(error) => self.give_up_decoding(&mut transfer, error.as_str()),
            }
        } else {
            self.on_plain(sender, &mut transfer, bytes);
        }
        *of(&mut self.state.transfers, sender) = Some(transfer);
    }

    fn file_end(&mut self, sender: Side, is_complete: bool) {
        self.end_file(sender, is_complete);
    }

    fn invitation(&mut self, sender: Side, invitation: &Invitation<'_>) {
        self.check_name(sender, invitation.file.name);
        self.ctx
            .invitations
            .remember(invitation.cookie, &invitation.file);
    }

    fn invited(&mut self, cookie: &[u8], use_it: &mut dyn FnMut(&FileInfo<'_>)) {
        self.ctx.invitations.find(cookie, use_it);
    }

    fn not_followed(&mut self, what: &'static str) {
        if self.rule.inspect.scan.is_some() {
            self.on_unscanned(b"", what);
        }
    }

    fn malformed(&mut self, sender: Side, why: &'static str) {
        // Of rules that a request may get none can be known to be the right one.
        let mut rules = self.rules.iter();
        let is_closed =
            self.rule.fail == Fail::Closed || rules.any(|rule| rule.fail == Fail::Closed);
        let row = GatewayRow {
            event: GatewayEventKind::Malformed,
            action: if is_closed { "reject" } else { "allow" },
            sender_side: sender.as_str(),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            detail: why.as_bytes(),
            ..GatewayText::default()
        };
        self.record(row, &text);
        if is_closed {
            self.block(OnMatch::Reject, b"malformed");
        }
    }
}
