//! What time it is. Only here is the clock asked.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike as _, Local, Timelike as _};
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

/// The time of the first packet of the run, of which there is one in a process.
static BEGIN: OnceLock<u64> = OnceLock::new();

/// Takes the time of the first packet; that of a later one changes nothing.
pub fn begin(first: Timestamp) {
    BEGIN.get_or_init(|| first.as_nanos());
}

/// The time of the first packet, nanoseconds since the epoch, once it was seen.
#[must_use]
pub fn begun_ns() -> Option<u64> {
    BEGIN.get().copied()
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

/// The minute of the week by the local time of this machine, 0 on Monday 00:00.
#[must_use]
pub fn local_minute(time: Timestamp) -> u16 {
    let seconds = i64::try_from(time.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
    let utc = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let local = utc.with_timezone(&Local);
    let minute = local.weekday().num_days_from_monday() * 1440 + local.hour() * 60 + local.minute();
    u16::try_from(minute).unwrap_or(0)
}
