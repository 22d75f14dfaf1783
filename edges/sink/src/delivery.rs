//! What is known of records on their way to a network: shared by the run that hands them over and the thread that delivers
//! them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linkweir_engine::Failures;
use linkweir_record::human::thousands;
use linkweir_sys::wait::monotonic_ns;

/// Why records are lost that nobody waited for any longer.
pub(crate) const GIVEN_UP: &str = "given up while they waited";

/// The state of a delivery.
pub(crate) struct Delivery {
    destination: String,
    announce: fn(&str),
    /// Records handed over: every one is delivered, lost or waits.
    handed: AtomicU64,
    delivered: AtomicU64,
    lost: Mutex<Failures>,
    /// When the destination last took something, or nothing waited.
    taken_ns: AtomicU64,
    is_away: AtomicBool,
    /// Nobody waits any longer.
    is_given_up: Mutex<bool>,
    gave_up: Condvar,
    /// The counts are final: what a thread that hangs says later is not counted.
    is_final: AtomicBool,
}

/// A lock that is only held for a few assignments; a panic in them leaves nothing half done.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Delivery {
    /// To a destination; `announce` gets what people should know.
    pub(crate) fn new(destination: &str, announce: fn(&str)) -> Self {
        Self {
            destination: destination.to_owned(),
            announce,
            handed: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            lost: Mutex::default(),
            taken_ns: AtomicU64::new(monotonic_ns()),
            is_away: AtomicBool::new(false),
            is_given_up: Mutex::new(false),
            gave_up: Condvar::new(),
            is_final: AtomicBool::new(false),
        }
    }

    /// The destination as the user sees it.
    pub(crate) fn destination(&self) -> &str {
        &self.destination
    }

    /// Tells people something about the destination.
    pub(crate) fn say(&self, message: &str) {
        (self.announce)(&format!("{}: {message}", self.destination));
    }

    /// Counts records that are handed over.
    pub(crate) fn hand_over(&self, records: u64) {
        if self.waiting() == 0 {
            self.take();
        }
        self.handed.fetch_add(records, Ordering::Relaxed);
    }

    /// The destination has taken something: bytes at least.
    pub(crate) fn take(&self) {
        self.taken_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    /// Counts records that have arrived, as far as can be known.
    pub(crate) fn deliver(&self, records: u64) {
        if self.is_final.load(Ordering::Acquire) {
            return;
        }
        self.delivered.fetch_add(records, Ordering::Relaxed);
        self.take();
        if self.is_away.swap(false, Ordering::Relaxed) {
            self.say("takes records again");
        }
    }

    /// Counts records that are lost.
    pub(crate) fn lose(&self, cause: &str, records: u64) {
        if !self.is_final.load(Ordering::Acquire) && records > 0 {
            locked(&self.lost).fail(cause, records);
        }
    }

    /// Counts records as lost that were taken for delivered.
    pub(crate) fn lose_delivered(&self, cause: &str, records: u64) {
        self.delivered.fetch_sub(records, Ordering::Relaxed);
        self.lose(cause, records);
    }

    /// The destination takes nothing now; said once until it does.
    pub(crate) fn away(&self, why: &str) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            let waiting = thousands(self.waiting());
            self.say(&format!("{why}; it is tried again, {waiting} records wait"));
        }
    }

    /// Records that have arrived.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Records that are lost, by cause.
    pub(crate) fn lost(&self) -> Failures {
        locked(&self.lost).clone()
    }

    /// How many records are lost.
    pub(crate) fn lost_count(&self) -> u64 {
        locked(&self.lost).count
    }

    /// Records that are neither delivered nor lost.
    pub(crate) fn waiting(&self) -> u64 {
        let handed = self.handed.load(Ordering::Relaxed);
        handed.saturating_sub(self.delivered() + self.lost_count())
    }

    /// How long the destination has taken nothing although something waits.
    pub(crate) fn idle(&self) -> Duration {
        let taken = self.taken_ns.load(Ordering::Relaxed);
        Duration::from_nanos(monotonic_ns().saturating_sub(taken))
    }

    /// Waits on the thread that delivers; false where nobody waits for it any longer.
    pub(crate) fn rest(&self, limit: Duration) -> bool {
        let guard = locked(&self.is_given_up);
        let waited = self
            .gave_up
            .wait_timeout_while(guard, limit, |given_up| !*given_up);
        let (given_up, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*given_up
    }

    /// Whether nobody waits any longer.
    pub(crate) fn is_given_up(&self) -> bool {
        *locked(&self.is_given_up)
    }

    /// Nobody waits any longer.
    pub(crate) fn give_up(&self) {
        *locked(&self.is_given_up) = true;
        self.gave_up.notify_all();
    }

    /// Ends the counting: what still waits is lost.
    pub(crate) fn conclude(&self) {
        self.lose(GIVEN_UP, self.waiting());
        self.is_final.store(true, Ordering::Release);
    }
}

/// When to say that the end of the run waits.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// The end of a run, which waits for a destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastWait {
    /// When the last record was handed over.
    closed_ns: u64,
    is_told: bool,
}

impl LastWait {
    /// Begins now.
    pub(crate) fn begin() -> Self {
        Self {
            closed_ns: monotonic_ns(),
            is_told: false,
        }
    }

    /// How long it has taken.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.closed_ns))
    }

    /// How long the destination has taken nothing, of what it is waited `here_alone` or also of what came before: a live run may
    /// stand without it for hours.
    pub(crate) fn idle(&self, idle: Duration, here_alone: bool) -> Duration {
        match here_alone {
            true => idle.min(self.waited()),
            false => idle,
        }
    }

    /// Whether it is time to say that the run waits: once.
    pub(crate) fn is_to_tell(&mut self) -> bool {
        self.waited() >= TELL_AFTER && !std::mem::replace(&mut self.is_told, true)
    }
}

/// The first pause between attempts; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Pauses between attempts.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Backoff {
    /// Waits for the next pause; false where nobody waits for the delivery any longer.
    pub(crate) fn rest(&mut self, delivery: &Delivery) -> bool {
        let goes_on = delivery.rest(self.0);
        self.0 = self.0.saturating_mul(2).min(LONGEST_PAUSE);
        goes_on
    }

    /// The next pause is the first again.
    pub(crate) fn reset(&mut self) {
        self.0 = FIRST_PAUSE;
    }
}

/// A destination as it is shown: `SCHEME://USER:PASSWORD@REST` without the password.
#[must_use]
pub fn without_password(destination: &str) -> std::borrow::Cow<'_, str> {
    let parts = destination.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let (userinfo, host) = authority.rsplit_once('@')?;
        let (user, _) = userinfo.split_once(':')?;
        Some((scheme, user, host, path))
    });
    match parts {
        Some((scheme, user, host, path)) => format!("{scheme}://{user}@{host}{path}").into(),
        None => destination.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (given, shown) in [
            ("elasticsearch://u:p@h:9200/i", "elasticsearch://u@h:9200/i"),
            (
                "elasticsearch+https://u:p@q:x@h/i",
                "elasticsearch+https://u@h/i",
            ),
            ("kafka://a:9092,b:9092/t", "kafka://a:9092,b:9092/t"),
            ("syslog://[::1]:514", "syslog://[::1]:514"),
            ("a:b@c.jsonl", "a:b@c.jsonl"),
        ] {
            assert_eq!(without_password(given), shown);
        }
    }
}
