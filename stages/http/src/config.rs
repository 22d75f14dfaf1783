//! Settings of a run of the stage.

use std::sync::Arc;
use std::time::Duration;

use linkweir_keys::LiveLog;
use linkweir_record::{Anonymizer, HeaderNames, Places};

/// A set of TCP ports.
#[derive(Debug, Clone)]
pub struct PortSet(Box<[u64; 1024]>);

impl PortSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self(Box::new([0; 1024]))
    }

    /// Adds a port.
    #[inline]
    pub fn insert(&mut self, port: u16) {
        if let Some(word) = self.0.get_mut(usize::from(port >> 6)) {
            *word |= 1 << (port & 63);
        }
    }

    /// Whether a port is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        self.0
            .get(usize::from(port >> 6))
            .is_some_and(|word| word >> (port & 63) & 1 == 1)
    }
}

impl Default for PortSet {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<u16> for PortSet {
    fn from_iter<I: IntoIterator<Item = u16>>(ports: I) -> Self {
        let mut set = Self::new();
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

/// Which of several stages one is, where every packet is distributed by itself, by Eq. (3)
/// ([`linkweir_engine::TransactionSplitter`]): then it hands over what belongs to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

/// Settings of [`crate::HttpStage`].
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Capture time after which a message without its counterpart leaves the table.
    ///
    /// 60 s: Vega et al. 2017, sec. 2.2.4.
    pub timeout: Duration,
    /// Messages that may wait at once; with more, the oldest leaves and is counted.
    pub max_pending: usize,
    /// Messages that are remembered at least (16 bytes each), to know them when they come again: each
    /// connection has a place for four, and where several shards share a table's capacity each of them still
    /// sees all connections.
    pub remembered: usize,
    /// Whether a retransmitted message gives a record of its own (the paper's behaviour, sec. 2.2.2).
    pub keep_duplicates: bool,
    /// Only segments from or to one of these ports; `None`: all.
    pub ports: Option<PortSet>,
    /// Whether to wait for the last byte of each response.
    pub ttlb: bool,
    /// Only records whose host contains this.
    pub host_contains: Vec<u8>,
    /// Only records whose host and request target, one after the other, contain this.
    pub url_contains: Vec<u8>,
    /// How addresses are replaced in records.
    pub anonymizer: Option<Anonymizer>,
    /// Says where addresses are, those before they are replaced.
    pub places: Option<Arc<dyn Places>>,
    /// Header fields of requests and responses that records keep, beside those of every run.
    pub headers: HeaderNames,
    /// Seed of the table's hash: a secret one prevents attacks on a bucket. Records do not
    /// depend on it.
    pub hash_seed: u64,
    /// Which shard this is, where shards hand over to one another.
    pub shard: Option<Shard>,
    /// Whether IP fragments were reassembled before: one that still comes is the start of a packet whose
    /// rest is lost.
    pub is_reassembled: bool,
    /// Whether every segment of a connection comes to this stage. Then pipelines are followed through loss
    /// and reordering, and unrequested responses are found behind the end of a body; a stage that gets only
    /// a part of them would wait for the rest in vain.
    pub has_whole_connections: bool,
    /// Whether every segment of a connection of HTTP/2 or TLS comes to this stage, which then follows it.
    pub may_join: bool,
    /// Whether both packets of a connection's handshake come to this stage, so that it knows the round trip.
    pub has_round_trips: bool,
    /// The secrets that open TLS.
    pub keys: Option<Arc<LiveLog>>,
    /// Whether connections of TLS are followed though no secret is there yet.
    pub awaits_keys: bool,
    /// Whether transactions of TLS are estimated where no secret opens them.
    pub estimates: bool,
    /// Whether they are estimated where a secret opens them too, to be compared.
    pub checks_estimates: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            max_pending: 100_000,
            remembered: 1 << 19,
            keep_duplicates: false,
            ports: None,
            ttlb: false,
            host_contains: Vec::new(),
            url_contains: Vec::new(),
            anonymizer: None,
            places: None,
            headers: HeaderNames::default(),
            hash_seed: 0x6c69_6e6b_7765_6972,
            shard: None,
            is_reassembled: false,
            has_whole_connections: true,
            may_join: true,
            has_round_trips: true,
            keys: None,
            awaits_keys: false,
            estimates: true,
            checks_estimates: false,
        }
    }
}
