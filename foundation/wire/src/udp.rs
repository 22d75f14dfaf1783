//! UDP datagrams. Source: RFC 768.

/// A UDP datagram: its header and what was captured of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp<'a> {
    pub(crate) header: &'a [u8; 8],
    /// The payload as far as it was captured.
    pub payload: &'a [u8],
    /// Bytes of payload on the wire; of a first fragment, those in the fragment.
    pub payload_len: u32,
}

impl<'a> Udp<'a> {
    /// The header as it stands in the frame.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> &'a [u8; 8] {
        self.header
    }

    /// Source port.
    #[inline]
    #[must_use]
    pub const fn src_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// Destination port.
    #[inline]
    #[must_use]
    pub const fn dst_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The length field: header and payload, in bytes.
    #[inline]
    #[must_use]
    pub const fn length(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }

    /// The checksum field; zero says that the sender made none.
    #[inline]
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }
}
