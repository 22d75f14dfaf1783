//! Counters that move with every packet.

use linkweir_record::flow::Protocol;
use linkweir_sketch::Step;
use linkweir_wire::Packet;

use super::L7Class;

/// What the packets of the current step were.
#[derive(Debug, Default)]
pub(super) struct PacketCounts {
    packets: u64,
}

impl PacketCounts {
    pub(super) fn count(
        &mut self,
        packet: &Packet<'_>,
        src_internal: bool,
        dst_internal: bool,
        ip_len: u32,
        step: &mut Step,
    ) {
        let _ = (packet, src_internal, dst_internal, ip_len, step);
        self.packets += 1;
    }

    pub(super) fn count_class(
        &mut self,
        protocol: Protocol,
        class: L7Class,
        src_internal: bool,
        dst_internal: bool,
        ip_len: u32,
    ) {
        let _ = (self, protocol, class, src_internal, dst_internal, ip_len);
    }

    pub(super) fn drain(&mut self, step: &mut Step) {
        let _ = step;
        self.packets = 0;
    }
}
