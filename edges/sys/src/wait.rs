//! Waiting for a file descriptor with a limit.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The time by the clock of the system, in nanoseconds since the epoch: what the kernel stamps
/// frames with.
#[must_use]
pub fn wall_clock_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// A clock that only goes forward, in nanoseconds since an arbitrary moment.
#[must_use]
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// By the C library: rustix looks for the kernel's page of clocks itself, and takes valgrind down.
fn clock(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: one `timespec` is written, to a place that is ours and outlives the call. It fails for clocks that Linux does not
    // have, which these are not.
    unsafe { libc::clock_gettime(id, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Waits until `file` can be read without blocking, or has ended; false after `limit`.
///
/// # Errors
/// What `poll(2)` says. A signal ends the wait early, as a limit does.
pub fn readable(file: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = timespec(limit);
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until `file` can be written without blocking, or has ended; false after `limit`.
///
/// # Errors
/// What `poll(2)` says. A signal ends the wait early, as a limit does.
pub fn writable(file: &impl AsFd, limit: Duration) -> io::Result<bool> {
    match poll(
        &mut [PollFd::new(file, PollFlags::OUT)],
        Some(&timespec(limit)),
    ) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// So close before a deadline nothing but the clock is asked: looking at a file takes most of this.
const CLOSE_NS: u64 = 1500;

/// Waits until `file` can be read or has ended (true), or until the clock of the system says
/// `deadline_ns` (false).
///
/// Sleeps until `spin` before the deadline and asks the clock again and again from there on: a sleep
/// ends some 20 us late, a spin within a microsecond. Without [`precise_waits`] add 50 us to `spin`.
///
/// [`precise_waits`]: crate::schedule::precise_waits
///
/// # Errors
/// What `poll(2)` says. A signal ends the wait early, as a deadline does.
pub fn until(file: &impl AsFd, deadline_ns: u64, spin: Duration) -> io::Result<bool> {
    let spin_ns = u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX);
    loop {
        let left = deadline_ns.saturating_sub(wall_clock_ns());
        if (1..CLOSE_NS).contains(&left) {
            while wall_clock_ns() < deadline_ns {
                std::hint::spin_loop();
            }
            return Ok(false);
        }
        let asleep = left.saturating_sub(spin_ns);
        // The kernel takes a thousandth of a wait as its leave to end late (`select_estimate_accuracy`
        // in `fs/select.c`): the first sleep ends before that, and the next is short.
        let asleep = asleep - asleep / 256;
        match poll(
            &mut [PollFd::new(file, PollFlags::IN)],
            Some(&timespec(Duration::from_nanos(asleep))),
        ) {
            Ok(0) if left == 0 => return Ok(false),
            Ok(0) => {}
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}

/// Waits until one of `files` can be read without blocking; false after `limit`.
///
/// # Errors
/// What `poll(2)` says. A signal ends the wait early, as a limit does.
pub fn any_readable(files: &[impl AsFd], limit: Duration) -> io::Result<bool> {
    let limit = timespec(limit);
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
    let limit = timespec(limit);
    // Without descriptors the only failure is the signal that ends the wait.
    poll(&mut [], Some(&limit)).ok();
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_deadline_is_kept_and_an_arrival_ends_the_wait() {
        crate::schedule::precise_waits().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let spin = Duration::from_micros(80);
        for wait_ns in [0, 50_000, 3_000_000] {
            let deadline = wall_clock_ns() + wait_ns;
            assert!(!until(&reader, deadline, spin).unwrap());
            assert!(wall_clock_ns() >= deadline, "never early");
        }
        writer.write_all(b"x").unwrap();
        let far = wall_clock_ns() + 10_000_000_000;
        assert!(until(&reader, far, spin).unwrap());
        assert!(wall_clock_ns() < far);
    }

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
