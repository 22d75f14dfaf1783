//! Waiting for a file descriptor with a limit.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The time by the clock of the system, in nanoseconds since the epoch: what the kernel stamps
/// frames with.
#[must_use]
pub fn wall_clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// A clock that only goes forward, in nanoseconds since an arbitrary moment.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Waits until `file` can be read without blocking, or has ended; false after `limit`.
///
/// # Errors
/// What `poll(2)` says. A signal ends the wait early, as a limit does.
pub fn readable(file: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until one of `files` can be read without blocking; false after `limit`.
///
/// # Errors
/// What `poll(2)` says. A signal ends the wait early, as a limit does.
pub fn any_readable(files: &[impl AsFd], limit: Duration) -> io::Result<bool> {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    let mut all: Vec<PollFd<'_>> = files
        .iter()
        .map(|file| PollFd::new(file, PollFlags::IN))
        .collect();
    match poll(&mut all, Some(&limit)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
        Ok(_) => Ok(all.iter().any(|one| one.revents().contains(PollFlags::IN))),
        Err(error) => Err(error.into()),
    }
}

/// Waits for `limit`, or less where a signal comes.
pub fn pause(limit: Duration) {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    // Without descriptors the only failure is the signal that ends the wait.
    poll(&mut [], Some(&limit)).ok();
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_pipe_is_readable_when_something_is_in_it() {
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!readable(&reader, Duration::from_millis(1)).unwrap());
        writer.write_all(b"x").unwrap();
        assert!(readable(&reader, Duration::from_secs(5)).unwrap());
        drop(writer);
        assert!(
            readable(&reader, Duration::from_secs(5)).unwrap(),
            "an end is something to read"
        );
    }
}
