//! What can be wrong with a frame: located errors, and counters of them by layer and cause.

use std::fmt;

use crate::LinkType;

/// Why and where a frame did not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecodeError {
    /// The layer whose header is wrong.
    pub layer: Layer,
    /// Where that header starts, in bytes from the start of the frame.
    pub offset: u32,
    /// What is wrong with it.
    pub kind: DecodeErrorKind,
}

/// What is wrong with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The capture ends in the header (snap length); the wire had more. Of a packet that stands: its
    /// length field promises more than the record says of the frame, which was cut and the record
    /// rewritten.
    Cut {
        /// Bytes the header needs, or the length field promises.
        need: u16,
        /// Bytes captured from the header's start, or of what the field tells the length of.
        have: u16,
    },
    /// The packet around it, by its own length, ends in the header.
    TooShort {
        /// Bytes the header needs.
        need: u16,
        /// Bytes there were on the wire.
        have: u16,
    },
    /// The length field promises more than the packet around it has.
    BeyondEnd {
        /// Bytes by the length field.
        need: u16,
        /// Bytes there are in the packet around it.
        have: u16,
    },
    /// The version field is not one this layer has.
    BadVersion(u8),
    /// The header length field is below the least a header has.
    BadHeaderLength(u8),
    /// The length field is below the header's own length.
    BadLength(u16),
    /// More tags, extension headers or tunnels than are followed.
    TooDeep,
    /// Frames of this link type are not decoded.
    UnsupportedLinkType(u16),
}

impl DecodeErrorKind {
    const COUNT: usize = 8;
    const NAMES: [&str; Self::COUNT] = [
        "cut_by_capture",
        "too_short",
        "length_beyond_end",
        "bad_version",
        "bad_header_length",
        "bad_length",
        "nested_too_deep",
        "unsupported_link_type",
    ];

    /// Name of the cause in summaries.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.get(self.index()).copied().unwrap_or_default()
    }

    const fn index(self) -> usize {
        match self {
            Self::Cut { .. } => 0,
            Self::TooShort { .. } => 1,
            Self::BeyondEnd { .. } => 2,
            Self::BadVersion(_) => 3,
            Self::BadHeaderLength(_) => 4,
            Self::BadLength(_) => 5,
            Self::TooDeep => 6,
            Self::UnsupportedLinkType(_) => 7,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: ", self.layer.name(), self.offset)?;
        match self.kind {
            DecodeErrorKind::Cut { need, have } => {
                write!(f, "needs {need} bytes, {have} captured")
            }
            DecodeErrorKind::TooShort { need, have } => {
                write!(f, "header needs {need} bytes, the packet has {have}")
            }
            DecodeErrorKind::BeyondEnd { need, have } => {
                write!(
                    f,
                    "length field says {need} bytes, the packet around it has {have}"
                )
            }
            DecodeErrorKind::BadVersion(found) => write!(f, "version {found}"),
            DecodeErrorKind::BadHeaderLength(found) => write!(f, "header length field {found}"),
            DecodeErrorKind::BadLength(found) => write!(f, "length field {found}"),
            DecodeErrorKind::TooDeep => f.write_str("nested too deep"),
            DecodeErrorKind::UnsupportedLinkType(found) => {
                write!(f, "{} is not decoded", LinkType(found))
            }
        }
    }
}

impl std::error::Error for DecodeError {}

macro_rules! layers {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// A layer of a frame.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Layer { $($(#[$doc])* $variant,)* }

        impl Layer {
            const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Name of the layer in summaries.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

layers! {
    /// The link type of the capture.
    Link => "link",
    /// Ethernet II and IEEE 802.3.
    Ethernet => "ethernet",
    /// IEEE 802.2 LLC and SNAP.
    Llc => "llc",
    /// IEEE 802.1Q and 802.1ad tags.
    Vlan => "vlan",
    /// MPLS label stack (RFC 3032).
    Mpls => "mpls",
    /// PPP over Ethernet, session stage (RFC 2516).
    Pppoe => "pppoe",
    /// PPP (RFC 1661, RFC 1662).
    Ppp => "ppp",
    /// Cisco HDLC.
    CiscoHdlc => "cisco_hdlc",
    /// Linux cooked capture, version 1.
    LinuxSll => "linux_sll",
    /// Linux cooked capture, version 2.
    LinuxSll2 => "linux_sll2",
    /// BSD loopback.
    Null => "null",
    /// IEEE 802.11.
    Ieee80211 => "ieee_802_11",
    /// Radiotap, before IEEE 802.11.
    Radiotap => "radiotap",
    /// The header of Prism cards, before IEEE 802.11.
    Prism => "prism",
    /// AVS, before IEEE 802.11.
    Avs => "avs",
    /// Per-packet information.
    Ppi => "ppi",
    /// The log of netfilter.
    Nflog => "nflog",
    /// Frame Relay, also multilink.
    FrameRelay => "frame_relay",
    /// SLIP (RFC 1055).
    Slip => "slip",
    /// FDDI.
    Fddi => "fddi",
    /// ARCnet (RFC 1051, RFC 1201).
    Arcnet => "arcnet",
    /// Cisco FabricPath.
    FabricPath => "fabricpath",
    /// An IP packet whose version is still to be read.
    Ip => "ip",
    /// IPv4 (RFC 791).
    Ipv4 => "ipv4",
    /// IPv6 (RFC 8200).
    Ipv6 => "ipv6",
    /// Extension headers of IPv6 (RFC 8200 sec. 4).
    Ipv6Extension => "ipv6_extension",
    /// IP authentication header (RFC 4302).
    Authentication => "ah",
    /// TCP (RFC 9293).
    Tcp => "tcp",
    /// UDP (RFC 768).
    Udp => "udp",
    /// GRE (RFC 2784, RFC 2890, RFC 2637).
    Gre => "gre",
    /// ERSPAN types I to III.
    Erspan => "erspan",
    /// VXLAN (RFC 7348).
    Vxlan => "vxlan",
    /// Geneve (RFC 8926).
    Geneve => "geneve",
    /// GTP-U (3GPP TS 29.281).
    GtpU => "gtp_u",
    /// Teredo (RFC 4380).
    Teredo => "teredo",
    /// VXLAN-GPE.
    VxlanGpe => "vxlan_gpe",
    /// CAPWAP (RFC 5415).
    Capwap => "capwap",
    /// AYIYA.
    Ayiya => "ayiya",
}

const LAYERS: usize = Layer::ALL.len();

/// Counters of [`DecodeError`]s by layer and cause; merges by addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeFaults {
    counts: [[u64; DecodeErrorKind::COUNT]; LAYERS],
    /// Frames by link types that are not decoded, the first few that came.
    links: [(LinkType, u64); MAX_LINKS],
    /// Of these, those of packets that stand.
    noted: [[u64; DecodeErrorKind::COUNT]; LAYERS],
}

/// Link types that are distinguished; a capture has one, a directory of them several.
const MAX_LINKS: usize = 8;

impl Default for DecodeFaults {
    fn default() -> Self {
        Self {
            counts: [[0; DecodeErrorKind::COUNT]; LAYERS],
            links: [(LinkType(0), 0); MAX_LINKS],
            noted: [[0; DecodeErrorKind::COUNT]; LAYERS],
        }
    }
}

impl DecodeFaults {
    /// Counts what is wrong with a packet that stands ([`crate::Packet::fault`]).
    #[inline]
    pub fn note(&mut self, error: &DecodeError) {
        self.record(error);
        let row = self.noted.get_mut(error.layer as usize);
        if let Some(count) = row.and_then(|row| row.get_mut(error.kind.index())) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts one error.
    #[inline]
    pub fn record(&mut self, error: &DecodeError) {
        let row = self.counts.get_mut(error.layer as usize);
        if let Some(count) = row.and_then(|row| row.get_mut(error.kind.index())) {
            *count = count.saturating_add(1);
        }
        if let DecodeErrorKind::UnsupportedLinkType(number) = error.kind {
            self.add_link(LinkType(number), 1);
        }
    }

    fn add_link(&mut self, link: LinkType, times: u64) {
        let mut places = self.links.iter_mut();
        if let Some(place) = places.find(|(one, count)| *one == link || *count == 0) {
            *place = (link, place.1.saturating_add(times));
        }
    }

    /// Frames by link types that are not decoded, at most the first eight of these.
    pub fn link_types(&self) -> impl Iterator<Item = (LinkType, u64)> + '_ {
        self.links.iter().copied().filter(|&(_, count)| count > 0)
    }

    /// Counts `times` errors by the names that [`DecodeFaults::iter`] gives; whether there are such names.
    pub fn record_named(&mut self, layer: &str, cause: &str, times: u64) -> bool {
        let row = Layer::ALL.iter().position(|one| one.name() == layer);
        let cell = DecodeErrorKind::NAMES.iter().position(|one| *one == cause);
        let row = row.and_then(|row| self.counts.get_mut(row));
        let count = row.zip(cell).and_then(|(row, cell)| row.get_mut(cell));
        let is_known = count.is_some();
        if let Some(count) = count {
            *count = count.saturating_add(times);
        }
        is_known
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.counts, &other.counts),
            (&mut self.noted, &other.noted),
        ] {
            for (count, &their) in ours.iter_mut().flatten().zip(theirs.iter().flatten()) {
                *count = count.saturating_add(their);
            }
        }
        for (link, count) in other.link_types() {
            self.add_link(link, count);
        }
    }

    /// The counts that are not zero: layer name, cause name, count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let cells = self.cells();
        cells.map(|(layer, cause, count, _)| (layer, cause, count))
    }

    /// The same for errors for which nothing of a frame was decoded.
    pub fn iter_undecoded(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        self.cells()
            .filter(|(.., count, noted)| count > noted)
            .map(|(layer, cause, count, noted)| (layer, cause, count.saturating_sub(noted)))
    }

    /// The counts that are not zero, and behind each how many of it are of packets that stand.
    fn cells(&self) -> impl Iterator<Item = (&'static str, &'static str, u64, u64)> + '_ {
        let rows = Layer::ALL.iter().zip(self.counts.iter().zip(&self.noted));
        rows.flat_map(|(layer, (counts, noted))| {
            let cells = DecodeErrorKind::NAMES.iter().zip(counts.iter().zip(noted));
            cells
                .filter(|&(_, (&count, _))| count > 0)
                .map(|(&cause, (&count, &noted))| (layer.name(), cause, count, noted))
        })
    }

    /// All errors counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        let all = self.counts.iter().flatten();
        all.fold(0, |sum: u64, &count| sum.saturating_add(count))
    }

    /// Of these, errors for which nothing of a frame was decoded. A caller that counts by names alone
    /// ([`DecodeFaults::record_named`]) does not know those that were noted.
    #[must_use]
    pub fn undecoded(&self) -> u64 {
        let all = self.iter_undecoded();
        all.fold(0, |sum: u64, (.., count)| sum.saturating_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::{DecodeError, DecodeErrorKind, DecodeFaults, Layer};
    use crate::LinkType;

    #[test]
    fn counts_and_merges_by_layer_and_cause() {
        let cut = DecodeError {
            layer: Layer::Ipv4,
            offset: 14,
            kind: DecodeErrorKind::Cut { need: 20, have: 12 },
        };
        let deep = DecodeError {
            layer: Layer::Teredo,
            offset: 99,
            kind: DecodeErrorKind::TooDeep,
        };
        assert_eq!(
            cut.to_string(),
            "ipv4 at byte 14: needs 20 bytes, 12 captured"
        );
        let mut faults = DecodeFaults::default();
        assert_eq!((faults.total(), faults.iter().count()), (0, 0));
        faults.record(&cut);
        faults.record(&deep);
        let mut sum = faults.clone();
        sum.merge(&faults);
        sum.record(&cut);
        let all: Vec<_> = sum.iter().collect();
        assert_eq!(
            all,
            [
                ("ipv4", "cut_by_capture", 3),
                ("teredo", "nested_too_deep", 2)
            ]
        );
        assert_eq!(sum.total(), 5);
        let mut named = DecodeFaults::default();
        for (layer, cause, times) in all {
            assert!(named.record_named(layer, cause, times));
        }
        assert_eq!(named, sum);
        assert!(!named.record_named("ipv5", "cut_by_capture", 1));
        assert!(!named.record_named("ipv4", "cut", 1));
        assert_eq!(named, sum);
    }

    #[test]
    fn packets_that_stand_are_not_undecoded() {
        let error = DecodeError {
            layer: Layer::Ipv4,
            offset: 14,
            kind: DecodeErrorKind::BeyondEnd { need: 40, have: 30 },
        };
        let mut faults = DecodeFaults::default();
        faults.note(&error);
        faults.record(&error);
        let mut sum = faults.clone();
        sum.merge(&faults);
        assert_eq!((sum.total(), sum.undecoded()), (4, 2));
        assert_eq!(
            sum.iter().collect::<Vec<_>>(),
            [("ipv4", "length_beyond_end", 4)]
        );
        let udp = DecodeError {
            layer: Layer::Udp,
            ..error
        };
        sum.note(&udp);
        assert_eq!((sum.total(), sum.iter().count()), (5, 2));
        assert_eq!(
            sum.iter_undecoded().collect::<Vec<_>>(),
            [("ipv4", "length_beyond_end", 2)]
        );
    }

    #[test]
    fn link_types_are_told_apart_up_to_a_bound() {
        let unsupported = |link: u16| DecodeError {
            layer: Layer::Link,
            offset: 0,
            kind: DecodeErrorKind::UnsupportedLinkType(link),
        };
        let mut faults = DecodeFaults::default();
        for link in [195, 230, 195] {
            faults.record(&unsupported(link));
        }
        let mut sum = DecodeFaults::default();
        sum.record(&unsupported(230));
        sum.merge(&faults);
        let links: Vec<_> = sum.link_types().collect();
        assert_eq!(links, [(LinkType(230), 2), (LinkType(195), 2)]);
        for link in 1000..1100 {
            sum.record(&unsupported(link));
        }
        assert_eq!((sum.link_types().count(), sum.total()), (8, 104));
    }

    #[test]
    fn layers_index_their_own_row() {
        for (row, layer) in Layer::ALL.iter().enumerate() {
            assert_eq!(row, *layer as usize);
        }
    }
}
