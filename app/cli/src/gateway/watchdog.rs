//! A thread that ends the process when a worker stands still: with the queue unbound, the kernel does
//! what the rules say (`--queue-bypass`: packets pass), and a supervisor starts the gateway again. It also
//! tells systemd that all is well, as long as it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linkweir_sys::signals::kill_this_process;

use super::notify::Notifier;
use super::shared::Shared;
use crate::clock;
use crate::exit::warn;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(100);

/// Looks at the workers until the run stops.
pub(super) fn watch(shared: &Arc<Shared>, patience: Duration, notifier: &Notifier) {
    let mut seen: Vec<(u64, Instant)> = shared.workers.iter().map(|_| (0, clock::now())).collect();
    let mut notified = clock::now();
    notifier.is_ready();
    while !shared.is_stopping() {
        std::thread::park_timeout(EVERY);
        for (number, (worker, (beats, since))) in shared.workers.iter().zip(&mut seen).enumerate() {
            let now = worker.beats.load(Ordering::Relaxed);
            if now != *beats {
                (*beats, *since) = (now, clock::now());
            } else if since.elapsed() >= patience {
                warn(&format!(
                    "worker {number} has made no progress for {:.1} s: the gateway ends to free its queue",
                    since.elapsed().as_secs_f64()
                ));
                kill_this_process();
            }
        }
        if notified.elapsed() >= Duration::from_secs(1) {
            notified = clock::now();
            notifier.is_well();
        }
    }
    notifier.is_stopping();
}
