//! How the kernel schedules the calling thread.

use std::io;
use std::num::NonZeroU64;

/// Priority of [`realtime`]: above ordinary programs, below the kernel's own threads for interrupts
/// (50).
const PRIORITY: i32 = 10;

/// Lets waits of this thread end when they are due: by default the kernel may end them up to 50 us
/// later, to wake fewer times (`PR_SET_TIMERSLACK`).
///
/// # Errors
/// What `prctl(2)` says.
pub fn precise_waits() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(
        NonZeroU64::MIN,
    ))?)
}

/// Gives this thread real-time priority (`SCHED_FIFO`): it runs whenever it wants to, before every
/// ordinary program. It has to sleep now and then: the kernel stops who takes more than 95 % of a
/// second, for the rest of it. Threads that it starts later are ordinary ones.
///
/// # Errors
/// `PermissionDenied` without `CAP_SYS_NICE` or a limit that allows it (`RLIMIT_RTPRIO`).
pub fn realtime() -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: PRIORITY,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is readable; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_ask_for_both() {
        // SAFETY: takes a number, 0 for the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let asked = std::thread::spawn(move || {
            precise_waits().unwrap();
            match realtime() {
                Ok(()) => {
                    assert_eq!(policy() & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO);
                    let later = std::thread::spawn(policy).join().unwrap();
                    assert_eq!(later, libc::SCHED_OTHER);
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
            }
        });
        asked.join().unwrap();
    }
}
