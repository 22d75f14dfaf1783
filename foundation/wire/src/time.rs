//! Time of the data: nanoseconds since the Unix epoch, as a capture says it.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of capture time.
///
/// Units: nanoseconds since 1970-01-01T00:00:00Z, no leap seconds (what pcap and pcapng carry).
/// Arithmetic saturates: hostile captures hold any 64-bit value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch itself; also "before anything" for a maximum.
    pub const ZERO: Self = Self(0);
    /// Later than any packet.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds since the epoch.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`; zero where `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A span in nanoseconds, or the longest that 64 bits hold, which is 584 years.
#[inline]
#[must_use]
pub const fn nanos(span: Duration) -> u64 {
    // By parts: division of 128 bits would cost more than all the rest.
    span.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(span.subsec_nanos() as u64)
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    #[inline]
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09}",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}
