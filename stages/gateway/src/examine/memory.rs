//! Memory for the inspection of files: what waits for the scanner, and decoders. Heads that are not whole count
//! with it.
//!
//! It is counted as it is taken. A file that stands still costs what came of it and no whole window, so
//! that many of them leave room for others.

use linkweir_engine::effect::Ticket;

use super::found::Findings;
use super::of;
use super::transfer::Transfer;
use super::transfer::Waiting;
use crate::inspect::Side;

/// Memory of one decoder (measured: 48,576 bytes).
const DECODER_BYTES: usize = 48 * 1024;

/// Why a file cannot be inspected.
pub(super) const NO_MEMORY: &str = "no more memory for inspection (inspect-bytes)";

impl Findings<'_, '_> {
    fn has_memory(&self, more: usize) -> bool {
        self.ctx.memory.saturating_add(more) <= self.ctx.policy.limits.inspect_bytes
    }

    /// Counts what a file has now.
    fn count_memory(&mut self, transfer: &mut Transfer, now: usize) {
        *self.ctx.memory = self.ctx.memory.saturating_sub(transfer.memory) + now;
        transfer.memory = now;
    }

    /// A file is over.
    pub(super) fn give_back(&mut self, transfer: &mut Transfer) {
        self.count_memory(transfer, 0);
    }

    /// Memory for the decoder of a file; without it the file passes or not as the rule says.
    pub(super) fn reserve(&mut self, transfer: &mut Transfer) {
        if transfer.decoder.is_none() {
            return;
        }
        if self.has_memory(DECODER_BYTES) {
            self.count_memory(transfer, DECODER_BYTES);
        } else {
            transfer.scanning = None;
            self.give_up_decoding(transfer, NO_MEMORY);
        }
    }

    /// Bytes of a file for the scanner, as far as there is memory for them.
    pub(super) fn scan(&mut self, sender: Side, transfer: &mut Transfer, plain: &[u8]) {
        let Some(scanning) = &mut transfer.scanning else {
            return;
        };
        let others = transfer.memory.saturating_sub(scanning.memory());
        if !self.has_memory(scanning.growth(plain.len())) {
            self.stop_scanning(transfer);
            self.on_unscanned(&transfer.name, NO_MEMORY);
            transfer.unscanned = Some(NO_MEMORY.to_owned());
            return;
        }
        let ticket = scanning.push(plain, self.ctx);
        let now = others + scanning.memory();
        self.count_memory(transfer, now);
        self.wait_for(sender, transfer.number, ticket);
    }

    /// Nothing more of a file goes to the scanner.
    pub(super) fn stop_scanning(&mut self, transfer: &mut Transfer) {
        if let Some(mut scanning) = transfer.scanning.take() {
            self.ctx.effects.abandoned.extend(scanning.abandoned());
            let others = transfer.memory.saturating_sub(scanning.memory());
            self.count_memory(transfer, others);
        }
    }

    /// Scans what came of a side's files so far. Whether there is anything to wait for.
    pub(super) fn scan_now(&mut self, sender: Side) -> bool {
        let mut tickets = Vec::new();
        for transfer in self.state.open(sender) {
            let scanning = transfer.scanning.as_mut();
            if let Some(ticket) = scanning.and_then(|scanning| scanning.flush(self.ctx)) {
                tickets.push((transfer.number, ticket));
            }
        }
        for (number, ticket) in &tickets {
            self.wait_for(sender, *number, Some(*ticket));
        }
        !tickets.is_empty()
    }

    pub(super) fn wait_for(&mut self, sender: Side, file: u32, ticket: Option<Ticket>) {
        if let Some(ticket) = ticket {
            of(&mut self.state.waiting, sender).push(Waiting { ticket, file });
            *of(&mut self.state.last_scans, sender) = Some(ticket);
        }
    }
}
