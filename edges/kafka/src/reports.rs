//! What the client reports while it runs: deliveries, failures, brokers that are away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use linkweir_engine::Failures;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;

/// Counts and the state of the brokers; written when events are served, read by the owner.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    delivered: AtomicU64,
    failed: AtomicU64,
    failures: Mutex<Failures>,
    all_away: AtomicBool,
    /// The last error of a connection.
    last_error: Mutex<Option<String>>,
}

impl Reports {
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
    /// What matters comes as an event too.
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

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
    fn brokers_are_away_until_one_answers() {
        let reports = Reports::default();
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
