//! An interface of a pcapng section: its link type and how it counts time.

use linkweir_wire::{LinkType, Timestamp};

/// `if_tsresol` and `if_tsoffset` (draft-ietf-opsawg-pcapng sec. 4.2).
const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;

/// One interface; 24 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interface {
    pub(super) link: LinkType,
    pub(super) snaplen: u32,
    scale: Scale,
    offset_seconds: i64,
}

/// How ticks become nanoseconds.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// Powers of ten up to nanoseconds.
    Multiply(u32),
    /// Finer powers of ten: ticks per nanosecond, 10 to the power of this.
    Divide(u8),
    /// Negative powers of two.
    Binary(u8),
}

impl Interface {
    pub(super) const fn new(link: LinkType, snaplen: u32) -> Self {
        Self {
            link,
            snaplen,
            scale: Scale::Multiply(1000),
            offset_seconds: 0,
        }
    }

    /// Whether [`Interface::set`] has use for an option.
    pub(super) const fn knows(code: u16, length: u16) -> bool {
        matches!((code, length), (TIME_RESOLUTION, 1) | (TIME_OFFSET, 8))
    }

    pub(super) fn set(&mut self, code: u16, value: &[u8], big_endian: bool) {
        match (code, value.first(), value.first_chunk()) {
            (TIME_RESOLUTION, Some(&resolution), _) => {
                let exponent = resolution & 0x7f;
                self.scale = match 9_u8.checked_sub(exponent) {
                    _ if resolution & 0x80 != 0 => Scale::Binary(exponent),
                    Some(missing) => Scale::Multiply(10_u32.pow(u32::from(missing))),
                    None => Scale::Divide(exponent - 9),
                };
            }
            (TIME_OFFSET, _, Some(seconds)) => {
                self.offset_seconds = if big_endian {
                    i64::from_be_bytes(*seconds)
                } else {
                    i64::from_le_bytes(*seconds)
                };
            }
            _ => {}
        }
    }

    /// Ticks of this interface as capture time; what no timestamp can hold saturates.
    #[inline]
    pub(super) fn timestamp(&self, ticks: u64) -> Timestamp {
        let nanos = match self.scale {
            Scale::Multiply(factor) => ticks.saturating_mul(u64::from(factor)),
            // More than 10^19 ticks in a nanosecond: 64 bits never fill one.
            Scale::Divide(exponent) => 10_u64
                .checked_pow(u32::from(exponent))
                .map_or(0, |ticks_per_nano| ticks / ticks_per_nano),
            Scale::Binary(exponent) => {
                let nanos = (u128::from(ticks) * 1_000_000_000) >> exponent;
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        };
        if self.offset_seconds == 0 {
            return Timestamp::from_nanos(nanos);
        }
        let moved = i128::from(nanos) + i128::from(self.offset_seconds) * 1_000_000_000;
        Timestamp::from_nanos(u64::try_from(moved.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(code: u16, value: &[u8]) -> Interface {
        let mut interface = Interface::new(LinkType::ETHERNET, 0);
        interface.set(code, value, true);
        interface
    }

    #[test]
    fn resolutions() {
        let at = |resolution: u8, ticks| {
            with(TIME_RESOLUTION, &[resolution])
                .timestamp(ticks)
                .as_nanos()
        };
        assert_eq!(
            Interface::new(LinkType::ETHERNET, 0)
                .timestamp(5)
                .as_nanos(),
            5000
        );
        assert_eq!(at(0, 5), 5_000_000_000);
        assert_eq!(at(6, 5), 5000);
        assert_eq!(at(9, 5), 5);
        assert_eq!(at(12, 5999), 5);
        assert_eq!(at(29, u64::MAX), 0);
        assert_eq!(at(127, u64::MAX), 0);
        assert_eq!(at(0x80, 3), 3_000_000_000);
        assert_eq!(at(0x80 | 1, 3), 1_500_000_000);
        assert_eq!(at(0x80 | 32, 1 << 31), 500_000_000);
        assert_eq!(at(0xff, u64::MAX), 0);
        assert_eq!(at(0, u64::MAX), u64::MAX);
    }

    #[test]
    fn offsets_saturate() {
        let at = |seconds: i64, ticks| {
            with(TIME_OFFSET, &seconds.to_be_bytes())
                .timestamp(ticks)
                .as_nanos()
        };
        assert_eq!(at(2, 5), 2_000_005_000);
        assert_eq!(at(-1, 5_000_000), 4_000_000_000);
        assert_eq!(at(-10, 5), 0);
        assert_eq!(at(i64::MAX, 5), u64::MAX);
        assert_eq!(at(i64::MIN, u64::MAX), 0);
    }
}
