//! From a client's segment to a frame on the link, over the client's line.

use linkweir_wire::Timestamp;
use linkweir_wire::emit::TcpFrame;

use crate::frames::Frames;
use crate::path::{DelayLine, Fate, Paths};
use crate::population::Population;
use crate::seam::{Client, SegmentOut};

/// Where segments of all clients go.
pub(super) struct Line<'a> {
    pub(super) population: &'a Population,
    pub(super) paths: &'a mut Paths,
    /// Frames that are still on their way.
    pub(super) delayed: &'a mut DelayLine,
    /// Address of the next hop.
    pub(super) next_hop: [u8; 6],
    pub(super) out: &'a mut Frames,
}

impl SegmentOut for Line<'_> {
    fn segment(&mut self, client: Client, frame: &TcpFrame<'_>, now: Timestamp) {
        let frame = TcpFrame {
            src_mac: self.population.mac(client),
            dst_mac: self.next_hop,
            vlans: self.population.vlans(),
            ttl: self.population.profile(client).ttl,
            ..*frame
        };
        self.out.push_with(|bytes| frame.append_to(bytes));
        if self.paths.is_plain() {
            return;
        }
        let bytes = self.out.last().unwrap_or_default();
        match self
            .paths
            .outgoing(self.population, client, bytes.len(), now)
        {
            Fate::Now => {}
            Fate::At(release) => {
                // One that finds no room is counted there.
                self.delayed.put(release, bytes);
                self.out.pop();
            }
            Fate::Lost => self.out.pop(),
        }
    }
}
