//! From a client's segment to a frame on the link, over the client's line.
//!
//! What is looked at before a frame is anybody's.

use crate::frames::Frames;
use crate::path::{DelayLine, Fate, Paths};
use crate::population::Population;
use crate::seam::{Client, SegmentOut};
use linkweir_wire::Timestamp;
use linkweir_wire::emit::TcpFrame;

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

/// What the interface says of the checksum of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// It is right: the hardware has looked, or the sender is on this machine and never computed it.
    Trusted,
    /// Nobody has looked.
    Unknown,
}

/// Frames that came and did not reach a connection, by cause; and all that did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// TCP segments of the server to a client.
    pub segments: u64,
    /// ARP and neighbour discovery.
    pub neighbour: u64,
    /// Frames to or from somebody else, and other protocols.
    pub others: u64,
    /// Frames that do not decode.
    pub malformed: u64,
    /// Segments with a wrong checksum.
    pub bad_checksum: u64,
    /// Segments that were lost on the emulated lines.
    pub lost_down: u64,
}
