//! Signals that ask a run to end: the first is a request, a later one an order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::wait::monotonic_ns;

/// Sets `stop` at the first of `signals`; one that comes more than `grace` after it acts as it would
/// have without us, so it ends the process.
///
/// Those within `grace` count as one: timeout(1) signals a process and then its group, which
/// makes two of one.
///
/// # Errors
/// Where a signal cannot be handled.
pub fn ask_to_stop(signals: &[i32], stop: &Arc<AtomicBool>, grace: Duration) -> io::Result<()> {
    let first_at = Arc::new(AtomicU64::new(0));
    let grace = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
    for signal in signals.iter().copied() {
        let (stop, first_at) = (Arc::clone(stop), Arc::clone(&first_at));
        let on_signal = move || {
            let now = monotonic_ns().max(1);
            let first =
                match first_at.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => now,
                    Err(first) => first,
                };
            stop.store(true, Ordering::Relaxed);
            if now.saturating_sub(first) > grace {
                // What fails here cannot be told from inside a signal handler.
                signal_hook::low_level::emulate_default_handler(signal).ok();
            }
        };
        // SAFETY: the action only loads and stores atomics, reads the clock and, in the end, calls
        // `emulate_default_handler`: all async-signal-safe. It neither allocates nor panics.
        unsafe { signal_hook::low_level::register(signal, on_signal) }?;
    }
    Ok(())
}

/// Ends this process at once, whatever its threads do: for a watchdog that finds them standing still.
///
/// Nothing is flushed; the kernel closes what is open.
pub fn kill_this_process() -> ! {
    loop {
        let this = rustix::process::getpid();
        if rustix::process::kill_process(this, rustix::process::Signal::KILL).is_err() {
            // Nobody can be refused this for himself.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_at_once_are_one() {
        let stop = Arc::default();
        let signal = signal_hook::consts::SIGUSR2;
        ask_to_stop(&[signal], &stop, Duration::from_secs(60)).unwrap();
        assert!(!stop.load(Ordering::Relaxed));
        for _ in 0..2 {
            signal_hook::low_level::raise(signal).unwrap();
            assert!(
                stop.load(Ordering::Relaxed),
                "and the process is still here"
            );
        }
    }
}
