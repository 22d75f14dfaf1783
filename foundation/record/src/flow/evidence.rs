//! By what an out-of-sequence segment was classified.

use std::sync::LazyLock;

/// A kind of evidence; a set of them is an `u8` with their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Evidence {
    /// Timestamps: which copy was sent when, and which one was acknowledged (RFC 7323, RFC 3522).
    Timestamps = 1,
    /// A duplicate selective acknowledgment: the receiver had it twice (RFC 2883).
    Dsack = 2,
    /// Selective acknowledgments: the receiver had later segments (RFC 2018, RFC 8985).
    Sack = 4,
    /// The identification field of IPv4, where it is not zero.
    IpId = 8,
    /// Duplicate acknowledgments (RFC 5681).
    DupAcks = 16,
    /// Time alone, against round-trip and retransmission times (RFC 6298).
    Timing = 32,
    /// The window of the receiver.
    Window = 64,
}

impl Evidence {
    /// All kinds, strongest first.
    pub const ALL: [Self; 7] = [
        Self::Timestamps,
        Self::Dsack,
        Self::Sack,
        Self::IpId,
        Self::DupAcks,
        Self::Timing,
        Self::Window,
    ];

    /// Its bit.
    #[must_use]
    pub const fn bit(self) -> u8 {
        self as u8
    }

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timestamps => "timestamps",
            Self::Dsack => "dsack",
            Self::Sack => "sack",
            Self::IpId => "ip_id",
            Self::DupAcks => "dup_acks",
            Self::Timing => "timing",
            Self::Window => "window",
        }
    }

    /// The words of a set, joined by commas; empty for the empty set.
    #[must_use]
    pub fn words(set: u8) -> &'static str {
        static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
            let words = |set: u8| {
                let of_set = Evidence::ALL.into_iter().filter(|one| set & one.bit() != 0);
                of_set.map(Evidence::as_str).collect::<Vec<_>>().join(",")
            };
            (0..=u8::MAX).map(words).collect()
        });
        WORDS.get(usize::from(set)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::Evidence;

    #[test]
    fn sets_are_words() {
        assert_eq!(Evidence::words(0), "");
        let set = Evidence::IpId.bit() | Evidence::Timestamps.bit();
        assert_eq!(Evidence::words(set), "timestamps,ip_id");
    }
}
