//! Live sketches of a run on their way to a message broker: `<topic>.sketches` of a `kafka://`
//! destination of the records.

use std::time::Duration;

use anyhow::anyhow;
use linkweir_kafka::{Producer, Sent, take_timeout};
use linkweir_live::sketch::{Carrier, PublisherOptions};
use linkweir_record::Topic;

use crate::clock::wall_clock;
use crate::common_args::StoreArgs;
use crate::exit::Wrong;

/// What follows the topic of the records in the name of the topic of their sketches.
const SUFFIX: &str = ".sketches";

/// Bounds of the buffer: minutes of sketches, of which each is some ten KiB.
const BUFFER: [(&str, &str); 2] = [
    ("queue.buffering.max.messages", "10000"),
    ("queue.buffering.max.kbytes", "32768"),
];

/// How long the last sketches may take to arrive without anything arriving, where the user's timeout is not shorter.
const LAST_OF_FILES: Duration = Duration::from_secs(15);
const LAST_OF_INTERFACES: Duration = Duration::from_secs(5);
/// How long to take reports where there is nothing else to do.
const SERVE: Duration = Duration::from_millis(100);

/// The topic of the sketches that belong to the records at `destination`.
///
/// # Errors
/// `destination` is not a topic.
pub(crate) fn address(destination: &str) -> anyhow::Result<Topic> {
    let mut topic: Topic = destination
        .parse()
        .map_err(|error| anyhow!(Wrong(format!("{destination}: {error}"))))?;
    topic.name.push_str(SUFFIX);
    Ok(topic)
}

/// Sends sketches by a producer of their own, so that records do not wait for them.
#[derive(Debug)]
pub(crate) struct KafkaCarrier {
    producer: Producer,
    /// Whether what does not fit is waited for.
    waits: bool,
    /// How long the user would wait at the end.
    timeout: Duration,
}

/// Where the sketches of a run go that writes to `destinations`, and whose they are; `None` where none
/// of these is a broker.
pub(crate) fn carrier(
    destinations: &[String],
    store: &StoreArgs,
    is_live: bool,
) -> anyhow::Result<Option<(PublisherOptions, KafkaCarrier)>> {
    let Some(destination) = destinations.iter().find(|one| one.starts_with("kafka://")) else {
        return Ok(None);
    };
    let wrong = |message: String| anyhow!(Wrong(message));
    let (timeout, mut settings) =
        take_timeout(&store.kafka, store.timeout(is_live)).map_err(wrong)?;
    // The user's room is that of the records.
    settings.extend(BUFFER.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // The sink of the records says what there is to say about the broker.
    let producer = Producer::open(&address(destination)?, &settings, |_| {})
        .map_err(|error| wrong(format!("{destination}: {error}")))?;
    let options = PublisherOptions {
        probe: store.options(is_live).probe,
        run: wall_clock(),
        waits: !is_live,
    };
    let carrier = KafkaCarrier {
        producer,
        waits: !is_live,
        timeout: timeout.of(true),
    };
    Ok(Some((options, carrier)))
}

impl Carrier for KafkaCarrier {
    fn send(&mut self, key: &[u8], message: &[u8]) -> bool {
        loop {
            match self.producer.send(key, message) {
                Sent::Yes => return true,
                Sent::No => return false,
                Sent::Full if self.waits && self.producer.idle() < self.timeout => {
                    self.producer.serve(SERVE);
                }
                Sent::Full => return false,
            }
        }
    }

    fn serve(&mut self) {
        self.producer.serve(Duration::ZERO);
    }

    fn finish(&mut self) -> u64 {
        // The records may have waited for the broker until just now: time counts from here.
        let limit = if self.waits {
            LAST_OF_FILES
        } else {
            LAST_OF_INTERFACES
        };
        let limit = limit.min(self.timeout);
        let mut waited = Duration::ZERO;
        while self.producer.waiting() > 0 && self.producer.idle().min(waited) < limit {
            self.producer.serve(SERVE);
            waited += SERVE;
        }
        if self.producer.waiting() > 0 {
            self.producer.give_up();
        }
        self.producer.failures().count
    }
}
