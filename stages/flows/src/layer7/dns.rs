//! DNS within a flow: its messages go to the cache of names.

use linkweir_proto::dns::take_framed;

use super::{Ends, Layer7, Segment};
use crate::side::Side;

/// Whether a message says of itself that it answers (RFC 1035 sec. 4.1.1: QR).
pub(super) fn is_answer(message: &[u8]) -> bool {
    message.get(2).is_some_and(|flags| flags & 0x80 != 0)
}

impl Layer7 {
    /// A message of DNS in a flow. Who answers is the resolver: a flow whose question was not seen
    /// has its ends the wrong way round.
    pub(super) fn on_dns(&mut self, ends: &Ends, side: Side, message: &[u8], ts_ns: u64) {
        let is_as_opened = is_answer(message) == (side == Side::Server);
        let ((client, port), (resolver, _)) = if is_as_opened {
            (ends.client, ends.server)
        } else {
            (ends.server, ends.client)
        };
        self.dns.hear(client, port, resolver, message, ts_ns);
    }

    /// Payload of DNS over TCP (RFC 1035 sec. 4.2.2): the messages that are whole within a segment,
    /// as nearly all are.
    pub(super) fn on_dns_stream(&mut self, segment: &Segment<'_>) {
        let mut rest = segment.payload;
        while let Some((message, behind)) = take_framed(rest) {
            self.on_dns(segment.ends, segment.side, message, segment.ts_ns);
            rest = behind;
        }
    }
}
