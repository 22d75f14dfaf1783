//! DNS within a flow: its messages go to the cache of names.

use linkweir_proto::dns::take_framed;

use super::{Ends, Layer7, Segment};
use crate::side::Side;

impl Layer7 {
    /// A message of DNS in a flow.
    pub(super) fn on_dns(&mut self, ends: &Ends, side: Side, message: &[u8], ts_ns: u64) {
        let (client, port) = ends.client;
        let is_answer = side == Side::Server;
        self.overhear(client, port, ends.server.0, message, is_answer, ts_ns);
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
