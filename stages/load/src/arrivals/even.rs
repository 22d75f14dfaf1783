//! Equal gaps.

use super::{Arrivals, whole_nanos};

/// Session k begins at k / rate: the first at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Even {
    gap_ns: f64,
    number: u64,
}

impl Even {
    /// So many sessions a second; a rate that is not above zero has only the first.
    #[must_use]
    pub fn new(rate: f64) -> Self {
        Self {
            gap_ns: 1e9 / rate.max(f64::MIN_POSITIVE),
            number: 0,
        }
    }
}

impl Arrivals for Even {
    #[inline]
    fn next(&mut self) -> Option<u64> {
        // A product, not a sum: the error does not grow.
        #[expect(clippy::cast_precision_loss, reason = "exact to 2^53 sessions")]
        let at = self.number as f64 * self.gap_ns;
        self.number += 1;
        Some(whole_nanos(at))
    }
}
