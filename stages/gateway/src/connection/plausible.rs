//! Segments that their receiver ignores: an inspector that took them for the stream would be shown other
//! bytes than the receiver.
//!
//! They are dropped. That is safe for an honest sender: what it sends again has a current timestamp and
//! acknowledgment.

use linkweir_wire::{SeqNumber, Tcp, TcpFlags, TcpOption};

/// How far an acknowledgment may lie behind the newest one (RFC 5961 sec. 5.2: the largest window).
const OLDEST_ACK: u32 = 64 * 1024;

/// What one direction of a connection has shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plausible {
    /// Newest timestamp of a segment in order.
    timestamp: Option<u32>,
    /// Newest acknowledgment.
    ack: Option<SeqNumber>,
}

impl Plausible {
    /// Whether the receiver takes a segment with payload or FIN; `sent` is what it has sent itself so
    /// far, as far as that is known. `is_next`: whether it continues the stream.
    pub(crate) fn takes(&mut self, tcp: &Tcp<'_>, sent: Option<SeqNumber>, is_next: bool) -> bool {
        // RFC 9293 sec. 3.10.7.4: without ACK a segment is dropped.
        if !tcp.flags().contains(TcpFlags::ACK) {
            return false;
        }
        let mut timestamp = None;
        for option in tcp.options() {
            match option {
                TcpOption::Timestamps { value, .. } => timestamp = Some(value),
                // RFC 2385 and RFC 5925: whoever has not agreed on it drops the segment.
                TcpOption::Other { kind: 19 | 29, .. } => return false,
                _ => {}
            }
        }
        let ack = tcp.ack();
        if sent.is_some_and(|sent| ack.after(sent)) {
            return false;
        }
        let behind = self.ack.map_or(0, |newest| newest.0.wrapping_sub(ack.0));
        if (OLDEST_ACK + 1..u32::MAX / 2).contains(&behind) {
            return false;
        }
        // PAWS (RFC 7323 sec. 5.3).
        if let (Some(value), Some(newest)) = (timestamp, self.timestamp)
            && value != newest
            && newest.wrapping_sub(value) < u32::MAX / 2
        {
            return false;
        }
        if is_next {
            self.timestamp = timestamp.or(self.timestamp);
        }
        if self.ack.is_none_or(|newest| ack.after(newest)) {
            self.ack = Some(ack);
        }
        true
    }
}
