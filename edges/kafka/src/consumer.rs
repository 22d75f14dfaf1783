//! Reads topics from all their partitions, without a group.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linkweir_sys::wait::monotonic_ns;
use rdkafka::config::FromClientConfigAndContext as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};

use crate::ClientError;
use crate::reports::Reports;
use crate::settings::{self, of_client};

/// How often topics and partitions that are new are looked for.
const DISCOVER_NS: u64 = 2_000_000_000;

/// How long a question to a broker may take.
const ASK_LIMIT: Duration = Duration::from_secs(2);

/// A message of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// The number of its partition.
    pub partition: i32,
    /// Its number in the partition.
    pub offset: i64,
    /// The key; empty where there is none.
    pub key: Vec<u8>,
    /// The value; empty where there is none.
    pub value: Vec<u8>,
    /// When it was sent, milliseconds since the epoch; `None` where the broker does not know.
    pub timestamp_ms: Option<i64>,
}

/// A consumer of whole topics.
///
/// Topics need not be there, nor brokers: both are looked for again and again. Topics and partitions
/// that turn up later are read from their beginning.
pub struct Consumer {
    client: BaseConsumer<Reports>,
    topics: Vec<String>,
    /// Where to begin with what a topic held when it was first looked at.
    begin: Offset,
    /// Topics of which a broker has said what they held, or that they are not there.
    known: BTreeSet<String>,
    /// The offset of the message after the last one read, of each partition that is read.
    next: BTreeMap<(String, i32), i64>,
    /// When partitions were looked for last.
    discovered_ns: Option<u64>,
    trouble: Option<String>,
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer")
            .field("topics", &self.topics)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// How often a topic that does not come to its end is asked for more, a tenth of a second each time.
const FRUITLESS_POLLS: u32 = 900;

impl Consumer {
    /// All messages that a topic holds now, in the order of each partition.
    ///
    /// # Errors
    /// The broker does not answer, or nothing comes for 90 s before the topic's end.
    pub fn read_to_end(brokers: &str, topic: &str) -> Result<Vec<Message>, ClientError> {
        let mut consumer = Self::from_beginning(brokers, &[topic], &[])?;
        let mut all = Vec::new();
        let mut outcome = Ok(0);
        for _ in 0..FRUITLESS_POLLS {
            while let Some(message) = consumer.poll(Duration::from_millis(100)) {
                all.push(message);
            }
            outcome = consumer.remaining();
            // Of a new topic a partition may have no leader yet: until all were seen it has no end.
            if outcome == Ok(0) && consumer.known.contains(topic) {
                return Ok(all);
            }
        }
        outcome.and_then(|left| {
            Err(ClientError::Client(format!(
                "{topic} does not end; {} messages were read, {left} are left",
                all.len()
            )))
        })
    }

    /// Reads all messages that topics hold, and then those that come.
    ///
    /// # Errors
    /// [`ClientError::Setting`] where a setting is wrong.
    pub fn from_beginning(
        brokers: &str,
        topics: &[&str],
        given: &[(String, String)],
    ) -> Result<Self, ClientError> {
        Self::open(brokers, topics, given, Offset::Beginning)
    }

    /// Reads the messages that come from now on.
    ///
    /// # Errors
    /// [`ClientError::Setting`] where a setting is wrong.
    pub fn from_end(
        brokers: &str,
        topics: &[&str],
        given: &[(String, String)],
    ) -> Result<Self, ClientError> {
        Self::open(brokers, topics, given, Offset::End)
    }

    fn open(
        brokers: &str,
        topics: &[&str],
        given: &[(String, String)],
        begin: Offset,
    ) -> Result<Self, ClientError> {
        let config = settings::consumer(brokers, given)?;
        let client = BaseConsumer::from_config_and_context(&config, Reports::new(|_| {}))
            .map_err(|error| of_client(&error))?;
        Ok(Self {
            client,
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            begin,
            known: BTreeSet::new(),
            next: BTreeMap::new(),
            discovered_ns: None,
            trouble: None,
        })
    }

    /// The next message; `None` where none comes within `timeout`, which a broker that is away may
    /// lengthen by two seconds.
    pub fn poll(&mut self, timeout: Duration) -> Option<Message> {
        self.discover();
        let polled = match self.client.poll(timeout)? {
            Ok(message) => Ok(Message {
                topic: message.topic().to_owned(),
                partition: message.partition(),
                offset: message.offset(),
                key: message.key().unwrap_or_default().to_vec(),
                value: message.payload().unwrap_or_default().to_vec(),
                timestamp_ms: message.timestamp().to_millis(),
            }),
            Err(error) => Err(error),
        };
        match polled {
            Ok(message) => {
                self.trouble = None;
                self.client.context().brokers_answer();
                let at = (message.topic.clone(), message.partition);
                self.next.insert(at, message.offset + 1);
                Some(message)
            }
            Err(error) => {
                self.note(&error);
                None
            }
        }
    }

    /// Why nothing comes; `None` while all is well.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Messages that the topics hold now and that are not read yet; of partitions that are not known
    /// yet, none.
    ///
    /// # Errors
    /// No broker answers.
    pub fn remaining(&mut self) -> Result<u64, ClientError> {
        self.discovered_ns = None;
        self.discover();
        if let (true, Some(trouble)) = (self.next.is_empty(), &self.trouble) {
            return Err(ClientError::Client(trouble.clone()));
        }
        let mut all = 0;
        for ((topic, partition), next) in &self.next {
            let (low, high) = self
                .client
                .fetch_watermarks(topic, *partition, ASK_LIMIT)
                .map_err(|error| of_client(&error))?;
            all += u64::try_from(high - (*next).max(low)).unwrap_or(0);
        }
        Ok(all)
    }

    /// Looks for partitions that are not read yet, now and then.
    fn discover(&mut self) {
        let now = monotonic_ns();
        let is_soon = |last| now.saturating_sub(last) < DISCOVER_NS;
        if self.discovered_ns.is_some_and(is_soon) {
            return;
        }
        let is_first = self.next.is_empty();
        let mut fresh = TopicPartitionList::new();
        for topic in self.topics.clone() {
            match self.look_at(&topic, &mut fresh) {
                Ok(()) => {
                    self.known.insert(topic);
                    self.trouble = None;
                }
                Err(error) => self.note(&error),
            }
        }
        self.discovered_ns = Some(monotonic_ns());
        if fresh.count() == 0 {
            return;
        }
        let assigned = if is_first {
            self.client.assign(&fresh)
        } else {
            self.client.incremental_assign(&fresh)
        };
        if let Err(error) = assigned {
            self.note(&error);
        }
    }

    /// Notes where to begin with each partition of a topic that is not read yet.
    fn look_at(&mut self, topic: &str, fresh: &mut TopicPartitionList) -> Result<(), KafkaError> {
        let metadata = self.client.fetch_metadata(Some(topic), ASK_LIMIT)?;
        let found = metadata.topics().iter().filter(|one| one.name() == topic);
        for partition in found.flat_map(|one| one.partitions()) {
            let at = (topic.to_owned(), partition.id());
            if self.next.contains_key(&at) {
                continue;
            }
            let (low, high) = self
                .client
                .fetch_watermarks(topic, partition.id(), ASK_LIMIT)?;
            // What is made after the first look has no past that is not wanted.
            let is_past_wanted = self.begin != Offset::End || self.known.contains(topic);
            let next = if is_past_wanted { low } else { high };
            fresh.add_partition_offset(topic, partition.id(), Offset::Offset(next))?;
            self.next.insert(at, next);
        }
        Ok(())
    }

    fn note(&mut self, error: &KafkaError) {
        let word = self.client.context().last_error();
        self.trouble = Some(word.unwrap_or_else(|| error.to_string()));
    }
}
