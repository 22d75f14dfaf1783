//! What time it is. Only here is the clock asked.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use linkweir_wire::Timestamp;

/// The time that only goes forward, for spans.
#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the clock is asked"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// The time by the clock of the kernel's stamps.
#[must_use]
pub fn timestamp() -> Timestamp {
    Timestamp::from_nanos(wall_clock())
}

/// Nanoseconds since the epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the clock is asked"
)]
pub fn wall_clock() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
