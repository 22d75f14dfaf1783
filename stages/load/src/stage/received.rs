//! What is looked at before a frame is anybody's.

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
