//! What the client reports while it runs: deliveries, failures, brokers that are away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use linkweir_engine::Failures;
use linkweir_sys::wait::monotonic_ns;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;

/// Maximum number of lines of the client's log in each interval; the others are counted.
const LOG_LINES: u32 = 10;
const LOG_INTERVAL_NS: u64 = 10_000_000_000;

/// Facilities of the client's log whose lines come as errors too, and are said with the state of the brokers.
const SAID_BY_US: [&str; 3] = ["FAIL", "ERROR", "SASL"];

/// How much of the log was shown.
#[derive(Debug, Default)]
struct Log {
    interval: u64,
    lines: u32,
    suppressed: u64,
}

impl Log {
    /// Whether a line of this moment is shown, and how many were not before it.
    fn admit(&mut self, now_ns: u64) -> Option<u64> {
        let interval = now_ns / LOG_INTERVAL_NS;
        if interval != self.interval {
            self.interval = interval;
            self.lines = 0;
        }
        if self.lines >= LOG_LINES {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// Counts and the state of the brokers; written when events are served, read by the owner.
#[derive(Debug)]
pub(crate) struct Reports {
    /// Shows people a line.
    announce: fn(&str),
    log: Mutex<Log>,
    delivered: AtomicU64,
    failed: AtomicU64,
    failures: Mutex<Failures>,
    all_away: AtomicBool,
    /// The last error of a connection.
    last_error: Mutex<Option<String>>,
}

impl Reports {
    /// With what shows people a line of the client's log.
    pub(crate) fn new(announce: fn(&str)) -> Self {
        Self {
            announce,
            log: Mutex::default(),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            failures: Mutex::default(),
            all_away: AtomicBool::new(false),
            last_error: Mutex::new(None),
        }
    }

    /// Messages that the broker has taken.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// How many messages did not arrive.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Messages that did not arrive, by cause.
    pub(crate) fn failures(&self) -> Failures {
        locked(&self.failures).clone()
    }

    /// Counts `count` messages that did not arrive.
    pub(crate) fn fail(&self, cause: &str, count: u64) {
        self.failed.fetch_add(count, Ordering::Relaxed);
        locked(&self.failures).fail(cause, count);
    }

    /// Whether no broker can be reached, as far as the client has tried.
    pub(crate) fn is_all_away(&self) -> bool {
        self.all_away.load(Ordering::Relaxed)
    }

    /// Something came from a broker.
    pub(crate) fn brokers_answer(&self) {
        self.all_away.store(false, Ordering::Relaxed);
        *locked(&self.last_error) = None;
    }

    /// The last error of a connection.
    pub(crate) fn last_error(&self) -> Option<String> {
        locked(&self.last_error).clone()
    }
}

/// A lock that is only held for a few assignments; a panic in them leaves nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientContext for Reports {
    /// Warnings and worse, a few of them: the network decides how many there are.
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if level as i32 > RDKafkaLogLevel::Warning as i32 || SAID_BY_US.contains(&facility) {
            return;
        }
        let Some(suppressed) = locked(&self.log).admit(monotonic_ns()) else {
            return;
        };
        let others = match suppressed {
            0 => String::new(),
            count => format!(" ({count} lines before it are not shown)"),
        };
        (self.announce)(&format!("Kafka client: {facility}: {message}{others}"));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => self.all_away.store(true, Ordering::Relaxed),
            _ => *locked(&self.last_error) = Some(short(reason)),
        }
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => {
                self.delivered.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, _)) => self.fail(&cause_of(error), 1),
        }
    }
}

impl ConsumerContext for Reports {}

/// The cause of a failed delivery in words for a user.
pub(crate) fn cause_of(error: &KafkaError) -> String {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::PurgeQueue) => "given up while they waited for a broker".to_owned(),
        Some(RDKafkaErrorCode::PurgeInflight) => {
            "given up while the broker did not acknowledge them".to_owned()
        }
        Some(RDKafkaErrorCode::MessageTimedOut) => "older than message.timeout.ms".to_owned(),
        // "TopicAuthorizationFailed (Broker: Topic authorization failed)"
        Some(code) => code.to_string(),
        None => error.to_string(),
    }
}

/// `127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in
/// state CONNECT, 2 identical error(s) suppressed)` without the parenthesis.
fn short(reason: &str) -> String {
    let end = reason.find(" (after ").unwrap_or(reason.len());
    reason.get(..end).unwrap_or(reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_the_client_is_shown_up_to_a_rate() {
        let mut log = Log::default();
        let shown = (0..100).filter(|_| log.admit(5).is_some()).count();
        assert_eq!(shown, 10);
        assert_eq!(log.admit(LOG_INTERVAL_NS), Some(90));
        assert_eq!(log.admit(LOG_INTERVAL_NS), Some(0));
    }

    #[test]
    fn brokers_are_away_until_one_answers() {
        let reports = Reports::new(|_| {});
        reports.error(
            KafkaError::Global(RDKafkaErrorCode::BrokerTransportFailure),
            "h:1/bootstrap: Connect failed: Connection refused (after 0ms in state CONNECT)",
        );
        assert!(!reports.is_all_away());
        assert_eq!(
            reports.last_error().as_deref(),
            Some("h:1/bootstrap: Connect failed: Connection refused")
        );
        reports.error(
            KafkaError::Global(RDKafkaErrorCode::AllBrokersDown),
            "1/1 brokers are down",
        );
        assert!(reports.is_all_away());
        reports.brokers_answer();
        assert!(!reports.is_all_away() && reports.last_error().is_none());
    }
}
