//! What the mark of a connection says: decided or not, how, and by which rule.

use thiserror::Error;

/// Bits of the mark that say what was decided.
const DECISION_BITS: u32 = 3;
/// Bits of the mark that say by which rule.
const RULE_BITS: u32 = 9;
/// In place of a decision: the packet goes to a local proxy.
const TO_PROXY: u32 = 5;

/// What was decided about a connection, as the kernel's rules see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Decision {
    /// Nothing yet: its packets are queued.
    Undecided = 0,
    /// It passes, and the kernel asks no more.
    Pass = 1,
    /// The kernel drops its packets.
    Drop = 2,
    /// The kernel answers its packets with a reset (TCP) or port unreachable.
    Reject = 3,
    /// It passes while it is looked at: its packets are queued.
    Inspect = 4,
}

/// A mark, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    /// What was decided.
    pub decision: Decision,
    /// Number of the rule, 1 to [`MarkLayout::MAX_RULE`]; 0 is no rule.
    pub rule: u16,
}

/// Where in the 32 bits of a mark ours are: 12 bits in a row. The others belong to somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkLayout {
    shift: u32,
}

/// Why bits cannot be used for marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a mark mask has exactly 12 bits set, in a row; {0:#010x} has not")]
pub struct MarkLayoutError(pub u32);

impl Default for MarkLayout {
    /// `0x0fff0000`.
    fn default() -> Self {
        Self { shift: 16 }
    }
}

impl MarkLayout {
    /// The highest number of a rule.
    pub const MAX_RULE: u16 = (1 << RULE_BITS) - 1;

    /// The layout with this mask.
    ///
    /// # Errors
    /// The mask has not 12 bits in a row.
    pub const fn from_mask(mask: u32) -> Result<Self, MarkLayoutError> {
        let shift = mask.trailing_zeros();
        if mask.count_ones() == DECISION_BITS + RULE_BITS
            && mask.count_ones() + shift + mask.leading_zeros() == 32
        {
            Ok(Self { shift })
        } else {
            Err(MarkLayoutError(mask))
        }
    }

    /// The bits that are ours.
    #[must_use]
    pub const fn mask(self) -> u32 {
        0xfff << self.shift
    }

    /// The bits of the decision alone.
    #[must_use]
    pub const fn decision_mask(self) -> u32 {
        ((1 << DECISION_BITS) - 1) << self.shift
    }

    /// `mark` in place, all other bits 0.
    #[inline]
    #[must_use]
    pub const fn bits(self, mark: Mark) -> u32 {
        let rule = (mark.rule & Self::MAX_RULE) as u32;
        ((mark.decision as u32) | (rule << DECISION_BITS)) << self.shift
    }

    /// The mark of a packet that a rule leads to a local proxy. It is the packet's alone: no connection is
    /// kept with it, and [`MarkLayout::read`] takes it for no decision.
    #[must_use]
    pub const fn to_proxy(self, rule: u16) -> u32 {
        (TO_PROXY | (((rule & Self::MAX_RULE) as u32) << DECISION_BITS)) << self.shift
    }

    /// `old` with `mark` in place of what was there of ours.
    #[inline]
    #[must_use]
    pub const fn replace(self, old: u32, mark: Mark) -> u32 {
        (old & !self.mask()) | self.bits(mark)
    }

    /// What `bits` say; a decision we never make counts as none.
    #[inline]
    #[must_use]
    pub const fn read(self, bits: u32) -> Mark {
        let ours = (bits & self.mask()) >> self.shift;
        let decision = match ours & ((1 << DECISION_BITS) - 1) {
            1 => Decision::Pass,
            2 => Decision::Drop,
            3 => Decision::Reject,
            4 => Decision::Inspect,
            _ => Decision::Undecided,
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "nine bits are left of the twelve"
        )]
        let rule = (ours >> DECISION_BITS) as u16;
        Mark { decision, rule }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_keeps_the_bits_of_others() {
        let layout = MarkLayout::default();
        let mark = Mark {
            decision: Decision::Inspect,
            rule: MarkLayout::MAX_RULE,
        };
        let bits = layout.replace(0xf000_beef, mark);
        assert_eq!(bits & !layout.mask(), 0xf000_beef);
        assert_eq!(layout.read(bits), mark);
        assert_eq!(layout.read(0xf000_beef).decision, Decision::Undecided);
        let to_proxy = layout.read(layout.to_proxy(7));
        assert_eq!((to_proxy.decision, to_proxy.rule), (Decision::Undecided, 7));
    }

    #[test]
    fn a_mask_has_twelve_bits_in_a_row() {
        assert_eq!(
            MarkLayout::from_mask(0xfff).map(MarkLayout::mask),
            Ok(0xfff)
        );
        assert_eq!(
            MarkLayout::from_mask(0xfff0_0000).map(MarkLayout::mask),
            Ok(0xfff0_0000)
        );
        for wrong in [0, 0xff, 0x1fff, 0x7ff_0001, u32::MAX] {
            assert_eq!(MarkLayout::from_mask(wrong), Err(MarkLayoutError(wrong)));
        }
    }
}
