//! Signals as flags that the run loop looks at between batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use linkweir_sys::signals::ask_to_stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// The flag of the first [`Signals::install`], for those who are handed functions and no state.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether the process was asked to finish.
pub fn is_stopping() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Signals that come together count as one.
const REPEAT_INTERVAL: Duration = Duration::from_millis(500);

/// What was asked of the process since it started.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    rotate: Arc<AtomicBool>,
    report: Arc<AtomicBool>,
}

impl Signals {
    /// Takes SIGINT, SIGTERM, SIGHUP and SIGUSR1 over.
    ///
    /// The first SIGINT or SIGTERM asks to finish; one that comes half a second later or more kills, as
    /// it would have without us.
    ///
    /// # Errors
    /// The kernel refuses a handler.
    pub fn install() -> anyhow::Result<Self> {
        let signals = Self::default();
        ask_to_stop(&[SIGINT, SIGTERM], &signals.stop, REPEAT_INTERVAL).context("signals")?;
        signal_hook::flag::register(SIGHUP, Arc::clone(&signals.rotate)).context("signals")?;
        signal_hook::flag::register(SIGUSR1, Arc::clone(&signals.report)).context("signals")?;
        STOP.get_or_init(|| Arc::clone(&signals.stop));
        Ok(signals)
    }

    /// The flag that is set when the run is to finish, for those who wait elsewhere.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether to finish.
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether new files were asked for since the last look.
    pub fn take_rotate(&self) -> bool {
        self.rotate.load(Ordering::Relaxed) && self.rotate.swap(false, Ordering::Relaxed)
    }

    /// Whether a line of progress was asked for since the last look.
    pub fn take_report(&self) -> bool {
        self.report.load(Ordering::Relaxed) && self.report.swap(false, Ordering::Relaxed)
    }
}
