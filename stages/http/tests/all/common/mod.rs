//! Runs of one stage and of several, and what they have come to.

pub(crate) mod halves;

use std::path::Path;

use linkweir_engine::Frame;
use linkweir_engine::split::shard_of;
use linkweir_engine::{Batch, FrameRef, Router, Splitter, Stage};
use linkweir_http::{HttpConfig, HttpStage, HttpStats};
use linkweir_record::{HttpBatch, HttpTransaction, RecordBatch};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::Conversation;
use linkweir_wire::{DecodeFaults, FragmentStats, LinkType, Timestamp, Transport, decode};

/// The settings for a few connections: with the default, a stage takes 8 MB that it fills when it is made, which
/// is nearly all the time of a short run.
pub(crate) fn settings() -> HttpConfig {
    HttpConfig {
        remembered: 1 << 12,
        has_whole_connections: false,
        ..HttpConfig::default()
    }
}

/// The same where the two packets of a handshake may go to different stages, or to none.
pub(crate) fn settings_by_packet() -> HttpConfig {
    HttpConfig {
        has_round_trips: false,
        ..settings()
    }
}

/// The settings for a capture: tables for as much as it may hold, for they take time to make.
pub(crate) fn settings_of(capture: &Path) -> HttpConfig {
    let len = std::fs::metadata(capture).unwrap().len();
    // No packet is shorter.
    let packets = usize::try_from(len / 64).unwrap();
    HttpConfig {
        has_whole_connections: false,
        max_pending: packets.clamp(1 << 13, 100_000),
        remembered: packets.clamp(1 << 12, 1 << 19),
        ..HttpConfig::default()
    }
}

/// Heads as nobody should send them, among others.
pub(crate) fn odd_heads_talk(mss: usize) -> Conversation {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let requests = [
        "\r\nGET /lines HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET /plain HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "\n\r\nPOST /body HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
        "POST /folded HTTP/1.1\r\nHost:\r\n a.test\r\nUser-Agent: b\r\n\tc\r\nContent-Length:\r\n 5\r\n\r\nhello",
        "POST /unclear HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody",
        "POST /coded HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\nContent-Length: 4\r\n\r\nbody",
    ];
    let mut talk = Conversation::v4(40_000).mss(mss);
    // A pipeline of several segments, one by one, a pipeline in one piece, and one by one again.
    for request in requests {
        talk.client_sends(request);
    }
    talk.server_sends(ok.repeat(requests.len()));
    for request in requests {
        talk.client_sends(request).server_sends(ok);
    }
    talk.client_sends(requests.concat())
        .server_sends(ok.repeat(requests.len()));
    for request in requests {
        talk.client_sends(request).server_sends(ok);
    }
    talk
}

/// Records and counters of a run, comparable.
#[derive(Debug)]
pub(crate) struct Run {
    /// Every record in one line, sorted.
    pub(crate) records: Vec<String>,
    pub(crate) counters: Vec<String>,
    pub(crate) stats: HttpStats,
    pub(crate) fragments: FragmentStats,
    /// Frames and complete transactions of each shard.
    pub(crate) shares: Vec<(u64, u64)>,
}

impl Run {
    pub(crate) fn new(stages: &[HttpStage], batch: &HttpBatch, frames: &[u64]) -> Self {
        Self::with_faults(stages, [], batch, frames)
    }

    /// Of stages that saw only a part of the packets; `others` has what else did not decode.
    pub(crate) fn with_faults<'a>(
        stages: &[HttpStage],
        others: impl IntoIterator<Item = &'a DecodeFaults>,
        batch: &HttpBatch,
        frames: &[u64],
    ) -> Self {
        let mut stats = HttpStats::default();
        let mut faults = DecodeFaults::default();
        let mut fragments = FragmentStats::default();
        for stage in stages {
            stats.merge(stage.stats());
            faults.merge(stage.faults());
            fragments += stage.fragments();
        }
        others.into_iter().for_each(|other| faults.merge(other));
        let mut records: Vec<String> = batch.views().map(|view| line(&view)).collect();
        records.sort_unstable();
        let transactions = stages.iter().map(|stage| stage.stats().transactions);
        Self {
            records,
            counters: counters(&stats, &faults),
            shares: frames.iter().copied().zip(transactions).collect(),
            stats,
            fragments,
        }
    }

    /// With what the dispatcher says of the packets that came in parts.
    pub(crate) fn distributed(mut self, parts: FragmentStats) -> Self {
        self.fragments += parts;
        self
    }

    /// What differs, if anything does.
    pub(crate) fn same_as(&self, other: &Self) -> Result<(), String> {
        let differing = |ours: &[String], theirs: &[String]| -> Vec<String> {
            let lacking = |a: &[String], b: &[String], sign: &str| {
                let mut rest = b.to_vec();
                a.iter()
                    .filter(|line| match rest.iter().position(|l| l == *line) {
                        Some(at) => {
                            rest.swap_remove(at);
                            false
                        }
                        None => true,
                    })
                    .map(|line| format!("{sign} {line}"))
                    .collect::<Vec<_>>()
            };
            [lacking(ours, theirs, "-"), lacking(theirs, ours, "+")].concat()
        };
        if self.records != other.records {
            return Err(differing(&self.records, &other.records).join("\n"));
        }
        if self.counters != other.counters {
            return Err(differing(&self.counters, &other.counters).join("\n"));
        }
        Ok(())
    }
}

fn line(view: &HttpTransaction<'_>) -> String {
    let text = &view.text;
    let texts = [
        text.method,
        text.uri,
        text.host,
        text.user_agent,
        text.reason_phrase,
        text.content_type,
    ];
    let texts = texts.map(|text| text.escape_ascii().to_string()).join("|");
    format!("{texts} {:?}", view.row)
}

fn counters(stats: &HttpStats, faults: &DecodeFaults) -> Vec<String> {
    let mut lines = vec![
        format!("requests {}", stats.requests),
        format!("responses {}", stats.responses),
        format!("transactions {}", stats.transactions),
        format!("unanswered {}", stats.unanswered),
        format!("orphans {}", stats.orphans),
        format!("interim {}", stats.interim_responses),
        format!("requests again {}", stats.retransmitted_requests),
        format!("responses again {}", stats.retransmitted_responses),
        format!("truncated {}", stats.truncated_heads),
        format!("malformed {}", stats.malformed_heads),
        format!("full {}", stats.table_full),
        format!("filtered {}", stats.filtered),
        format!("other methods {}", stats.other_methods()),
        format!(
            "times {:?}",
            stats.response_time.buckets().collect::<Vec<_>>()
        ),
        format!("time sum {}", stats.response_time.sum()),
    ];
    let mut methods: Vec<_> = stats
        .methods()
        .map(|(name, n)| format!("method {} {n}", name.escape_ascii()))
        .collect();
    methods.sort_unstable();
    lines.extend(methods);
    lines.extend(
        stats
            .status_codes()
            .map(|(code, n)| format!("status {code} {n}")),
    );
    lines.extend(faults.iter().map(|fault| format!("fault {fault:?}")));
    lines
}

pub(crate) fn finish(stages: &mut [HttpStage], out: &mut HttpBatch) {
    for stage in stages {
        let mut piece = HttpBatch::default();
        loop {
            let is_all = stage.finish(&mut piece);
            piece.views().for_each(|view| out.push_view(&view));
            piece.clear();
            if is_all {
                break;
            }
        }
    }
}

/// A batch of one frame for a stage.
pub(crate) fn give(stage: &mut HttpStage, frame: &Frame<'_>, out: &mut HttpBatch) {
    let index = [FrameRef {
        timestamp: frame.timestamp,
        offset: 0,
        captured_len: u32::try_from(frame.bytes.len()).unwrap(),
        wire_len: frame.wire_len,
        link: frame.link,
        interface: frame.interface,
    }];
    stage.on_batch(&Batch::new(frame.bytes, &index), out);
}

pub(crate) fn frame_of(frame: &CapturedFrame, link: LinkType) -> Frame<'_> {
    Frame {
        timestamp: Timestamp::from_nanos(frame.timestamp_ns),
        bytes: &frame.bytes,
        wire_len: frame.wire_len,
        link,
        interface: frame.interface,
    }
}

/// All frames through one stage.
pub(crate) fn run_one(config: &HttpConfig, frames: &[CapturedFrame], link: LinkType) -> Run {
    let mut stages = [HttpStage::new(config)];
    let mut out = HttpBatch::default();
    for frame in frames {
        give(&mut stages[0], &frame_of(frame, link), &mut out);
    }
    finish(&mut stages, &mut out);
    Run::new(&stages, &out, &[frames.len() as u64])
}

/// The frames distributed to several stages, packets in parts when they are whole.
pub(crate) fn run_shards(
    config: &HttpConfig,
    frames: &[CapturedFrame],
    link: LinkType,
    shards: u32,
    splitter: &mut impl Splitter,
) -> Run {
    let config = HttpConfig {
        is_reassembled: true,
        ..config.clone()
    };
    let mut stages: Vec<_> = (0..shards).map(|_| HttpStage::new(&config)).collect();
    let mut shares = vec![0; stages.len()];
    let mut out = HttpBatch::default();
    let mut router = Router::new(splitter, false);
    let mut distribute = |frame: &Frame<'_>, hash: Option<u32>| {
        let shard = hash.map(|hash| shard_of(hash, shards) as usize);
        shares[shard.unwrap_or(0)] += 1;
        for (stage, at) in stages.iter_mut().zip(0..) {
            if shard.is_none_or(|shard| shard == at) {
                give(stage, frame, &mut out);
            }
        }
    };
    for frame in frames {
        router.take(&frame_of(frame, link), &mut distribute);
    }
    router.give_up(None, &mut distribute);
    finish(&mut stages, &mut out);
    Run::new(&stages, &out, &shares).distributed(router.parts().stats)
}

/// The frames and where they go, a line each: to be read when a comparison fails.
pub(crate) fn describe(
    frames: &[CapturedFrame],
    link: LinkType,
    shards: u32,
    splitter: &mut impl Splitter,
) -> String {
    let mut text = String::new();
    for frame in frames {
        let frame = frame_of(frame, link);
        let shard = shard_of(splitter.hash(&frame), shards);
        let Ok(packet) = decode(link, frame.bytes, frame.wire_len) else {
            continue;
        };
        let Transport::Tcp(tcp) = &packet.transport else {
            continue;
        };
        let start = tcp
            .payload
            .get(..tcp.payload.len().min(16))
            .unwrap_or_default();
        text.push_str(&format!(
            "\n{:>10} us shard {shard} {}>{} {} +{} ack {} {:02x} {}",
            frame.timestamp.as_nanos() % 1_000_000_000_000 / 1000,
            tcp.src_port(),
            tcp.dst_port(),
            tcp.seq().0,
            tcp.payload_len,
            tcp.ack().0,
            tcp.flags().0,
            start.escape_ascii()
        ));
    }
    text
}
