//! Waiting for a file descriptor with a limit.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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
