//! What hosts and network of a case are like.

use crate::conversation::Side;

/// Version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6, which has no identification field.
    V6,
}

/// How hosts fill the identification field of IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpId {
    /// One more with each packet.
    Increasing,
    /// Always zero, as RFC 6864 allows for packets that may not be fragmented.
    Zero,
    /// Random.
    Random,
}

/// The parameters of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Version of IP.
    pub version: Version,
    /// Whether both sides send timestamps (RFC 7323), in milliseconds.
    pub timestamps: bool,
    /// Whether both sides agreed on selective acknowledgments (RFC 2018), with duplicate ones
    /// (RFC 2883).
    pub sack: bool,
    /// The identification field.
    pub ip_id: IpId,
    /// The side that sends the data to which things happen.
    pub sender: Side,
    /// Whether the sequence numbers of both sides pass 2^32, those of the sender in the middle of
    /// the first segment to which something happens.
    pub wraps: bool,
}

impl Options {
    /// IPv4, increasing identification, neither timestamps nor SACK, the server sends.
    pub const PLAIN: Self = Self {
        version: Version::V4,
        timestamps: false,
        sack: false,
        ip_id: IpId::Increasing,
        sender: Side::Server,
        wraps: false,
    };

    /// Every combination: 64 (the identification field matters for IPv4 only).
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        let bools = [false, true];
        let networks = [
            (Version::V4, IpId::Increasing),
            (Version::V4, IpId::Zero),
            (Version::V4, IpId::Random),
            (Version::V6, IpId::Zero),
        ];
        for (version, ip_id) in networks {
            for timestamps in bools {
                for sack in bools {
                    for sender in [Side::Server, Side::Client] {
                        for wraps in bools {
                            all.push(Self {
                                version,
                                timestamps,
                                sack,
                                ip_id,
                                sender,
                                wraps,
                            });
                        }
                    }
                }
            }
        }
        all
    }

    /// A few words.
    #[must_use]
    pub fn name(&self) -> String {
        let mut words = vec![match (self.version, self.ip_id) {
            (Version::V6, _) => "ipv6",
            (Version::V4, IpId::Increasing) => "ipv4 id+1",
            (Version::V4, IpId::Zero) => "ipv4 id=0",
            (Version::V4, IpId::Random) => "ipv4 id=random",
        }];
        let words_if = [
            (self.timestamps, "ts"),
            (self.sack, "sack"),
            (self.sender == Side::Client, "client sends"),
            (self.wraps, "wraps"),
        ];
        words.extend(words_if.iter().filter(|(is, _)| *is).map(|(_, word)| *word));
        words.join(" ")
    }

    /// Whether two copies of a packet can be told from two packets with the same bytes.
    pub(super) fn tells_copies(&self) -> bool {
        self.timestamps || self.has_ip_id()
    }

    /// Whether the identification field says anything.
    pub(super) fn has_ip_id(&self) -> bool {
        self.version == Version::V4 && self.ip_id != IpId::Zero
    }

    /// Whether the published rules, which do not except zero, take every segment that was seen
    /// before for a copy.
    pub(super) fn is_constant_id(&self) -> bool {
        self.version == Version::V4 && self.ip_id == IpId::Zero
    }
}
