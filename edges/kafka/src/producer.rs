//! Sends messages to one topic, out of a buffer with a limit.

use std::time::Duration;

use linkweir_sys::wait::monotonic_ns;
use rdkafka::config::FromClientConfigAndContext as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, PurgeConfig};
use rdkafka::{ClientConfig, util::Timeout};

use crate::ClientError;
use crate::reports::{Reports, cause_of};
use crate::settings::{self, of_client};
use linkweir_engine::Failures;
use linkweir_record::Topic;

/// Brokers are reported away after so long without a delivery and with no connection.
const AWAY_NS: u64 = 1_000_000_000;

/// ... and after so long without a delivery whatever the connections are: those to a broker that is
/// stopped stay open.
const SILENT_NS: u64 = 10_000_000_000;

/// Maximum number of events taken by one call that does not wait.
const EVENTS: u32 = 64;

/// How long the reports of messages that were given up may take to come.
const PURGE_LIMIT: Duration = Duration::from_secs(2);

/// What became of a message that was to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// It is in the buffer.
    Yes,
    /// There is no room for it now.
    Full,
    /// It can never be sent, and is counted as failed.
    No,
}

/// A producer of one topic.
///
/// It has no thread of its own for reports: [`Producer::serve`] takes them, and must be called regularly, since a message keeps its place in the buffer until its report is taken. Dropping it
/// discards what is still in the buffer.
pub struct Producer {
    client: BaseProducer<Reports>,
    config: ClientConfig,
    topic: String,
    announce: fn(&str),
    /// Messages handed to this client: every one is delivered, has failed or waits.
    handed: u64,
    /// Counts of clients before this one.
    delivered_before: u64,
    failures_before: Failures,
    /// Deliveries when last looked, and when they last became more or nothing waited.
    seen: u64,
    progress_ns: u64,
    is_away: bool,
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer")
            .field("topic", &self.topic)
            .field("waiting", &self.waiting())
            .field("delivered", &self.delivered())
            .finish_non_exhaustive()
    }
}

impl Producer {
    /// A producer for the topic, with these settings over its own. Brokers need not be
    /// there: `announce` is called when they are away while messages wait, and when they are back.
    ///
    /// # Errors
    /// [`ClientError::Setting`] where a setting is wrong.
    pub fn open(
        topic: &Topic,
        given: &[(String, String)],
        announce: fn(&str),
    ) -> Result<Self, ClientError> {
        let config = settings::producer(&topic.brokers, given)?;
        Ok(Self {
            client: client(&config, announce)?,
            config,
            topic: topic.name.clone(),
            announce,
            handed: 0,
            delivered_before: 0,
            failures_before: Failures::default(),
            seen: 0,
            progress_ns: monotonic_ns(),
            is_away: false,
        })
    }

    /// Puts a message into the buffer; never waits.
    pub fn send(&mut self, key: &[u8], value: &[u8]) -> Sent {
        let record = BaseRecord::to(&self.topic).key(key).payload(value);
        let Err((error, _)) = self.client.send(record) else {
            self.handed += 1;
            return Sent::Yes;
        };
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::QueueFull) => Sent::Full,
            Some(RDKafkaErrorCode::Fatal) if self.renew() => Sent::Full,
            _ => {
                self.handed += 1;
                self.reports().fail(&cause_of(&error), 1);
                Sent::No
            }
        }
    }

    /// Takes reports for `limit` (zero: those that are there), and announces brokers that are away or back.
    pub fn serve(&mut self, limit: Duration) {
        if limit.is_zero() {
            // One call takes one event, which holds the reports of a batch.
            let mut before = self.client.in_flight_count();
            for _ in 0..EVENTS {
                self.client.poll(Timeout::After(Duration::ZERO));
                let now = self.client.in_flight_count();
                if now >= before {
                    break;
                }
                before = now;
            }
        } else {
            self.client.poll(Timeout::After(limit));
        }
        self.check_progress(monotonic_ns());
    }

    fn check_progress(&mut self, now: u64) {
        let delivered = self.delivered();
        let waiting = self.waiting();
        if delivered > self.seen {
            self.seen = delivered;
            self.progress_ns = now;
            self.reports().brokers_answer();
            if std::mem::take(&mut self.is_away) {
                (self.announce)(&format!(
                    "{}: the broker accepts messages again",
                    self.name()
                ));
            }
        } else if waiting == 0 {
            self.progress_ns = now;
        } else if !self.is_away {
            let idle = now.saturating_sub(self.progress_ns);
            if (idle >= AWAY_NS && self.reports().is_all_away()) || idle >= SILENT_NS {
                self.is_away = true;
                let why = self
                    .reports()
                    .last_error()
                    .unwrap_or_else(|| "it does not answer".to_owned());
                (self.announce)(&format!(
                    "{}: no broker accepts messages ({why}); {waiting} wait in the buffer",
                    self.name()
                ));
            }
        }
    }

    /// How long nothing has been delivered although something waits.
    #[must_use]
    pub fn idle(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.progress_ns))
    }

    /// Messages in the buffer, on their way, or with a report that is not taken yet.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let reports = self.reports();
        self.handed
            .saturating_sub(reports.delivered() + reports.failed())
    }

    /// Messages that a broker has acknowledged.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered_before + self.reports().delivered()
    }

    /// Messages that did not arrive, as far as can be known: the broker may have taken one and not
    /// have been able to say so.
    #[must_use]
    pub fn failures(&self) -> Failures {
        let mut all = self.failures_before.clone();
        all.merge(&self.reports().failures());
        all
    }

    /// Forgets every message that still waits; each is counted as failed.
    pub fn give_up(&mut self) {
        self.client.purge(PurgeConfig::default().queue().inflight());
        // Reports are made by the client's threads; a few milliseconds.
        if self.client.flush(Timeout::After(PURGE_LIMIT)).is_err() {
            let left = self.waiting();
            self.reports()
                .fail("given up, and the client did not say more", left);
        }
    }

    /// A client that has met an error it cannot go on after takes no more messages: another one can.
    fn renew(&mut self) -> bool {
        let Some((_, why)) = self.client.client().fatal_error() else {
            return false;
        };
        let Ok(fresh) = client(&self.config, self.announce) else {
            return false;
        };
        (self.announce)(&format!("{}: begins anew after: {why}", self.name()));
        self.give_up();
        self.delivered_before = self.delivered();
        self.failures_before = self.failures();
        self.handed = 0;
        self.client = fresh;
        true
    }

    fn reports(&self) -> &Reports {
        self.client.context()
    }

    fn name(&self) -> String {
        let brokers = self.config.get("bootstrap.servers").unwrap_or_default();
        format!("kafka://{brokers}/{}", self.topic)
    }
}

fn client(config: &ClientConfig, announce: fn(&str)) -> Result<BaseProducer<Reports>, ClientError> {
    BaseProducer::from_config_and_context(config, Reports::new(announce))
        .map_err(|error: KafkaError| of_client(&error))
}
