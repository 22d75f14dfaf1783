//! Records as messages of a Kafka topic: `kafka://broker[:port][,broker...]/topic`.
//!
//! A message is one record. Its value is the record's `jsonl` object with `kind`, `schema_version`,
//! `probe` and `record_id` before the fields; its key, four bytes, is the symmetric hash of the record's
//! connection, so that the records of one connection are in one partition, in order. The same record has
//! the same `record_id` whatever became of it on the way: who reads a topic may keep the first message
//! of each id and so has every record once (see [`message`]).
//!
//! Records wait in a buffer of the client with a limit (`queue.buffering.max.messages`, `.kbytes`). What
//! happens when it is full depends on where records come from: an interface does not wait, so the record
//! is dropped and counted; a file does. Nothing waits for ever: see [`DeliveryTimeout`].

mod message;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::time::Duration;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_kafka::{ClientError, DeliveryTimeout, Producer, Sent};
use linkweir_record::{RecordBatch, RecordKind, Topic, TopicError};

use crate::options::OutputOptions;
use message::Message;

/// How long reports are waited for before looking again whether there is room.
const SERVE: Duration = Duration::from_millis(10);

/// When to say that the end of the run waits for the broker: a multiple of [`SERVE`].
const TELL_AFTER: Duration = Duration::from_secs(2);

/// Whether a destination is a topic.
pub(crate) fn is_topic(scheme: &str) -> bool {
    scheme == "kafka"
}

/// A sink that sends records to a topic.
pub(crate) struct KafkaSink<K> {
    destination: String,
    options: OutputOptions,
    producer: Producer,
    message: Message,
    timeout: DeliveryTimeout,
    /// Records for which there was no room.
    dropped: u64,
    /// Deliveries when a file's records were no longer waited for; `None` while they are.
    given_up_at: Option<u64>,
    first: Option<String>,
    is_finished: bool,
    kind: PhantomData<fn(K)>,
}

impl<K: RecordKind> KafkaSink<K> {
    /// Opens the way to the topic that `destination` names. Whether a broker is there turns out later.
    pub(crate) fn open(destination: &str, options: OutputOptions) -> Result<Self, SinkError> {
        let refuse = |message: String| SinkError::Refused {
            destination: destination.to_owned(),
            message,
        };
        let topic: Topic = destination
            .parse()
            .map_err(|error: TopicError| refuse(error.to_string()))?;
        if options.rotation.is_some() {
            return Err(refuse("only a file can be rotated".to_owned()));
        }
        let (timeout, settings) =
            DeliveryTimeout::take(&options.kafka, options.is_live).map_err(refuse)?;
        let producer = Producer::open(&topic, &settings, options.announce).map_err(|error| {
            refuse(match error {
                ClientError::Setting { .. } => format!("--kafka: {error}"),
                ClientError::Client(message) => message,
            })
        })?;
        // Two runs have the same name once in 2^64 pairs of them.
        let run = RandomState::new().hash_one(((options.wall_clock_ns)(), std::process::id()));
        Ok(Self {
            destination: destination.to_owned(),
            message: Message::new::<K>(&options.probe, run),
            options,
            producer,
            timeout,
            dropped: 0,
            given_up_at: None,
            first: None,
            is_finished: false,
            kind: PhantomData,
        })
    }

    /// Puts the message at hand into the buffer, or counts it as lost.
    fn put(&mut self) {
        let (key, value) = self.message.parts();
        loop {
            match self.producer.send(key, value) {
                Sent::Yes | Sent::No => return,
                Sent::Full if self.options.is_live || self.given_up_at.is_some() => {
                    self.dropped += 1;
                    return;
                }
                Sent::Full => {}
            }
            self.producer.serve(SERVE);
            let is_stopping = (self.options.is_stopping)();
            if self.producer.idle() >= self.timeout.of(is_stopping) {
                self.given_up_at = Some(self.producer.delivered());
            }
        }
    }

    /// Takes reports; notes the first cause of a loss.
    fn serve(&mut self, limit: Duration) {
        self.producer.serve(limit);
        if self
            .given_up_at
            .is_some_and(|at| self.producer.delivered() > at)
        {
            // The broker is back: there is something to wait for again.
            self.given_up_at = None;
        }
        if self.first.is_some() {
            return;
        }
        let why = if self.dropped > 0 {
            let waiting = self.producer.waiting();
            format!("the buffer is full, {waiting} messages wait for the broker")
        } else if let Some((cause, _)) = self.producer.failures().causes.first() {
            cause.clone()
        } else {
            return;
        };
        self.first = Some(format!("{}: records are lost: {why}", self.destination));
    }

    /// What was lost, by cause.
    fn tell_losses(&self) {
        let mut failures = self.producer.failures();
        if self.dropped > 0 {
            failures.count += self.dropped;
            let cause = "for which the buffer had no room".to_owned();
            failures.causes.push((cause, self.dropped));
        }
        if failures.count > 0 {
            let (destination, count) = (&self.destination, failures.count);
            (self.options.announce)(&format!(
                "{destination}: {count} records are lost: {failures}"
            ));
        }
    }
}

impl<K: RecordKind> Sink<K> for KafkaSink<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        // Reports that are there make room.
        self.serve(Duration::ZERO);
        for view in batch.views() {
            self.message.encode::<K>(&view);
            self.put();
        }
        Ok(())
    }

    /// The client sends by itself; this takes its reports.
    fn flush(&mut self) -> Result<(), SinkError> {
        self.serve(Duration::ZERO);
        Ok(())
    }

    /// Waits until everything is delivered, or for as long as is reasonable.
    fn finish(&mut self) -> Result<(), SinkError> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Ok(());
        }
        let mut waited = Duration::ZERO;
        self.serve(Duration::ZERO);
        while self.producer.waiting() > 0 {
            let is_stopping = (self.options.is_stopping)();
            // A live run may stand without a broker for hours: only what is waited here counts.
            let idle = if self.options.is_live || is_stopping {
                self.producer.idle().min(waited)
            } else {
                self.producer.idle()
            };
            if idle >= self.timeout.of(is_stopping) {
                self.producer.give_up();
                break;
            }
            self.serve(SERVE);
            waited += SERVE;
            if waited == TELL_AFTER {
                (self.options.announce)(&format!(
                    "{}: waiting for the broker to take {} messages, until nothing has come through for {} s",
                    self.destination,
                    self.producer.waiting(),
                    self.timeout.of(is_stopping).as_secs()
                ));
            }
        }
        self.serve(Duration::ZERO);
        self.tell_losses();
        Ok(())
    }

    fn losses(&self) -> SinkLosses {
        SinkLosses {
            count: self.dropped + self.producer.failures().count,
            first: self.first.clone(),
        }
    }
}
