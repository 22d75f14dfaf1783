//! Records as messages: the `jsonl` object with the keys before it by which many probes are told apart.

use std::hash::{BuildHasher, RandomState};

use linkweir_engine::hash::flow_hash;
use linkweir_record::RecordKind;

use crate::format::Encoder;
use crate::jsonl::{JsonlEncoder, push_string};
use crate::number::push_u64;

/// A number for the outputs of a run: two runs have the same once in 2^64 pairs of them.
pub(crate) fn run_number(wall_clock_ns: fn() -> u64) -> u64 {
    RandomState::new().hash_one((wall_clock_ns(), std::process::id()))
}

/// Makes messages of records, one at a time, in one buffer.
///
/// `record_id` is `RUN-NUMBER`: 16 hexadecimal digits that name this output of this run of this probe,
/// drawn at random, and the number of the record in it, from 0. A record that is dropped has a number
/// too, so a gap in the numbers of a run is a loss.
///
/// A message has no time stamp of its own but that of its sending: the broker deletes by it, and would
/// delete the records of an old capture at once.
pub(crate) struct Message {
    encoder: JsonlEncoder,
    key: [u8; 4],
    /// The value, of which so many first bytes are the same in all messages.
    value: Vec<u8>,
    constant: usize,
    /// Where `record_id` ends in the value.
    id_end: usize,
    /// Records so far.
    count: u64,
}

/// Bytes of a run's number and the `-` behind it.
const RUN: usize = 17;

impl Message {
    /// For records of kind `K` of the probe with this name, and of the run with this number.
    pub(crate) fn new<K: RecordKind>(probe: &str, run: u64) -> Self {
        let mut value = Vec::with_capacity(1024);
        value.extend_from_slice(b"{\"kind\":");
        push_string(&mut value, K::NAME.as_bytes());
        value.extend_from_slice(b",\"schema_version\":");
        push_u64(&mut value, u64::from(K::VERSION));
        value.extend_from_slice(b",\"probe\":");
        push_string(&mut value, probe.as_bytes());
        value.extend_from_slice(format!(",\"record_id\":\"{run:016x}-").as_bytes());
        Self {
            encoder: JsonlEncoder::inside::<K>(),
            key: [0; 4],
            constant: value.len(),
            value,
            id_end: 0,
            count: 0,
        }
    }

    /// Makes the message of a record.
    pub(crate) fn encode<K: RecordKind>(&mut self, view: &K::View<'_>) {
        let [a, b] = K::endpoints(view);
        self.key = flow_hash(a, b).to_be_bytes();
        self.value.truncate(self.constant);
        push_u64(&mut self.value, self.count);
        self.id_end = self.value.len();
        self.value.push(b'"');
        Encoder::<K>::record(&mut self.encoder, view, &mut self.value);
        // A message is no line.
        self.value.pop();
        self.count += 1;
    }

    /// Key and value of the message that was made last.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.key, &self.value)
    }

    /// `record_id` of the message that was made last.
    pub(crate) fn id(&self) -> &[u8] {
        let begin = self.constant.saturating_sub(RUN);
        self.value.get(begin..self.id_end).unwrap_or_default()
    }
}
