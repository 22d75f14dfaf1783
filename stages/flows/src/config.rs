//! What a run of the stage is told.

use std::time::Duration;

use linkweir_record::Anonymizer;

use crate::subnets::Subnets;

/// Whose rules classify out-of-sequence segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Classifier {
    /// Timestamps and selective acknowledgments first; the published rules where they are silent.
    #[default]
    Evidence,
    /// The rules of Mellia et al. 2008 exactly, as Tstat applies them.
    Tstat,
}

/// Settings of the stage.
#[derive(Debug, Clone)]
pub struct FlowsConfig {
    /// A TCP flow without packets for this long has ended.
    pub tcp_idle: Duration,
    /// A UDP flow without packets for this long has ended.
    pub udp_idle: Duration,
    /// A TCP flow of which only SYNs were seen, or a UDP flow of one packet, has ended after this.
    pub syn_timeout: Duration,
    /// How long a closed flow stays at least, so that what still comes of it counts with it; ten
    /// times as long where it was reset, and two round trips where that is longer.
    pub linger: Duration,
    /// Flows at most; with more the one idle longest leaves.
    pub max_flows: usize,
    /// Which addresses are internal; none given: all.
    pub internal: Subnets,
    /// Whose rules classify.
    pub classifier: Classifier,
    /// Write partial records of this period.
    pub periodic: Option<Duration>,
    /// Measure steps of this length: histograms and cells of the archive.
    pub step: Option<Duration>,
    /// Give the heads of HTTP messages ([`linkweir_record::flow::Message`]).
    pub with_messages: bool,
    /// Look at payloads: application, names.
    pub with_names: bool,
    /// Mixed into the hash of the table, so that nobody outside can choose collisions.
    pub hash_seed: u64,
    /// Replaces addresses in all that leaves.
    pub anonymizer: Option<Anonymizer>,
    /// Which of several workers this is, and how many there are.
    pub shard: (u32, u32),
    /// Whether IP fragments were reassembled before: one that still comes is the start of a packet whose
    /// rest is lost.
    pub is_reassembled: bool,
}

impl Default for FlowsConfig {
    /// Tstat's timeouts and its tables' sizes together.
    fn default() -> Self {
        Self {
            tcp_idle: Duration::from_secs(300),
            udp_idle: Duration::from_secs(200),
            syn_timeout: Duration::from_secs(10),
            linger: Duration::from_millis(150),
            max_flows: 1 << 20,
            internal: Subnets::default(),
            classifier: Classifier::Evidence,
            periodic: None,
            step: None,
            with_messages: false,
            with_names: true,
            hash_seed: 0,
            anonymizer: None,
            shard: (0, 1),
            is_reassembled: false,
        }
    }
}
