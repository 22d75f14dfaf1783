//! Records as messages of a Kafka topic: `kafka://broker[:port][,broker...]/topic`.
//!
//! A message is one record. Its value is the record's `jsonl` object with `kind`, `schema_version`,
//! `probe` and `record_id` before the fields; its key, four bytes, is the symmetric hash of the record's
//! connection, so that the records of one connection are in one partition, in order. The same record has
//! the same `record_id` whatever became of it on the way: who reads a topic may keep the first message
//! of each id and so has every record once (see [`Message`]).
//!
//! Records wait in a buffer of the client with a limit (`queue.buffering.max.messages`, `.kbytes`). What
//! happens when it is full depends on where records come from: an interface does not wait, so the record
//! is dropped and counted; a file does. Nothing waits forever: see [`DeliveryTimeout`].

use std::marker::PhantomData;
use std::time::Duration;

use linkweir_engine::{DeliveryTimeout, Sink, SinkError, SinkLosses};
use linkweir_kafka::{ClientError, Producer, Sent, take_timeout};
use linkweir_record::{RecordBatch, RecordKind, Topic, TopicError};

use crate::delivery::LastWait;
use crate::message::{Message, run_number};
use crate::options::OutputOptions;

/// How long reports are waited for before looking again whether there is room.
const SERVE: Duration = Duration::from_millis(10);

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
    /// The end of the run, once it waits.
    end: Option<LastWait>,
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
        let (timeout, settings) = take_timeout(&options.kafka, options.timeout).map_err(refuse)?;
        let producer = Producer::open(&topic, &settings, options.announce).map_err(|error| {
            refuse(match error {
                ClientError::Setting { .. } => format!("--kafka: {error}"),
                ClientError::Client(message) => message,
            })
        })?;
        let run = run_number(options.wall_clock_ns);
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
            end: None,
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

    fn close(&mut self) {
        self.end.get_or_insert_with(LastWait::begin);
    }

    /// Waits until everything is delivered, or for as long as is reasonable.
    fn finish(&mut self) -> Result<(), SinkError> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Ok(());
        }
        Sink::<K>::close(self);
        let mut end = self.end.unwrap_or_else(LastWait::begin);
        self.serve(Duration::ZERO);
        while self.producer.waiting() > 0 {
            let is_stopping = (self.options.is_stopping)();
            let here_alone = self.options.is_live || is_stopping;
            let idle = end.idle(self.producer.idle(), here_alone);
            if idle >= self.timeout.of(is_stopping) {
                self.producer.give_up();
                break;
            }
            self.serve(SERVE);
            if end.is_to_tell() {
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

#[cfg(test)]
mod tests {
    use super::*;

    use linkweir_engine::hash::flow_hash;
    use std::collections::BTreeSet;
    use std::net::{IpAddr, Ipv4Addr, TcpListener};

    use linkweir_engine::Sink;
    use linkweir_record::{FlowKind, HttpBatch, HttpKind, HttpRow, RecordBatch, RecordKind, Text};

    fn batch(ports: std::ops::Range<u16>) -> HttpBatch {
        let mut batch = HttpBatch::default();
        for client_port in ports {
            let row = HttpRow {
                client_ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
                client_port,
                server_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
                server_port: 80,
                ..HttpRow::default()
            };
            let text = Text {
                uri: b"/\"\xff",
                ..Text::default()
            };
            batch.push(row, &text);
        }
        batch
    }

    /// A port of this machine at which nobody listens.
    fn deaf_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    }

    fn options(settings: &[(&str, &str)], is_live: bool) -> OutputOptions {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        OutputOptions {
            is_live,
            probe: "p".to_owned(),
            kafka: settings.iter().map(own).collect(),
            ..OutputOptions::default()
        }
    }

    fn refusal(destination: &str, options: OutputOptions) -> String {
        match KafkaSink::<HttpKind>::open(destination, options) {
            Ok(_) => panic!("{destination} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_message_is_the_jsonl_object_with_four_keys_before_it() {
        let records = batch(40_000..40_003);
        let mut message = Message::new::<HttpKind>("north\"1", 0xab);
        let mut ids = BTreeSet::new();
        for (number, view) in records.views().enumerate() {
            message.encode::<HttpKind>(&view);
            let (key, value) = message.parts();
            let [a, b] = HttpKind::endpoints(&view);
            assert_eq!(key, flow_hash(a, b).to_be_bytes());
            let object: serde_json::Value = serde_json::from_slice(value).unwrap();
            let object = object.as_object().unwrap();
            assert_eq!(object["kind"], "http_transaction");
            assert_eq!(object["schema_version"], HttpKind::VERSION);
            assert_eq!(object["probe"], "north\"1");
            assert_eq!(object["record_id"], format!("00000000000000ab-{number}"));
            assert_eq!(object["uri"], "/\"\\xff");
            assert_eq!(object["client_port"], 40_000 + number);
            // Of HTTP/1.x in clear.
            let columns = (0..HttpKind::fields().len()).filter(|at| HttpKind::has_column(0, *at));
            assert_eq!(object.len(), columns.count() + 4);
            assert!(value.starts_with(b"{\"kind\"") && value.ends_with(b"}"));
            ids.insert(object["record_id"].to_string());
        }
        assert_eq!(ids.len(), 3);
    }

    #[test]
    fn no_kind_has_a_field_of_its_own_with_such_a_name() {
        for own in ["kind", "schema_version", "probe", "record_id"] {
            assert_eq!(HttpKind::column(own), None);
            assert_eq!(FlowKind::column(own), None);
            assert_eq!(linkweir_record::GatewayKind::column(own), None);
            assert_eq!(linkweir_record::LoadKind::column(own), None);
        }
    }

    #[test]
    fn what_is_wrong_is_said_before_anything_is_sent() {
        let no_topic = refusal("kafka://a:1", options(&[], false));
        assert!(no_topic.contains("kafka://a:1: has no topic"), "{no_topic}");
        let unknown = refusal("kafka://a/t", options(&[("linger", "1")], false));
        assert!(unknown.contains("--kafka: setting `linger`"), "{unknown}");
        let ours = refusal("kafka://a/t", options(&[("linkweir.x", "1")], false));
        assert!(ours.contains("`linkweir.x`"), "{ours}");
        let acks = refusal("kafka://a/t", options(&[("acks", "1")], false));
        assert!(acks.contains("acks"), "{acks}");
        let rotated = OutputOptions {
            rotation: Some("1h".parse().unwrap()),
            ..options(&[], false)
        };
        assert!(refusal("kafka://a/t", rotated).contains("rotated"));
    }

    /// Sends `count` records to a broker that is not there.
    fn in_vain(settings: &[(&str, &str)], is_live: bool, count: u16) -> (u64, String) {
        let destination = format!("kafka://127.0.0.1:{}/t", deaf_port());
        let mut sink =
            KafkaSink::<HttpKind>::open(&destination, options(settings, is_live)).unwrap();
        sink.write(&batch(0..count)).unwrap();
        sink.flush().unwrap();
        sink.finish().unwrap();
        let losses = sink.losses();
        (losses.count, losses.first.unwrap())
    }

    #[test]
    fn live_records_that_find_no_room_are_dropped_and_the_rest_given_up_in_the_end() {
        let settings = [
            ("queue.buffering.max.messages", "100"),
            ("linkweir.patience.ms", "200"),
        ];
        let (count, first) = in_vain(&settings, true, 1000);
        assert_eq!(count, 1000, "100 given up and 900 dropped");
        assert!(
            first.contains("the buffer is full, 100 messages wait"),
            "{first}"
        );
    }

    #[test]
    fn records_of_a_file_are_waited_for_only_so_long() {
        let settings = [
            ("queue.buffering.max.messages", "100"),
            ("linkweir.patience.ms", "300"),
        ];
        let (count, _) = in_vain(&settings, false, 1000);
        assert_eq!(count, 1000);
        let (count, first) = in_vain(&[("linkweir.patience.ms", "300")], false, 50);
        assert_eq!(count, 50);
        assert!(first.contains("waited for a broker"), "{first}");
    }
}
