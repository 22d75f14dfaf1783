//! What the tests of the stage share.

use linkweir_record::{HttpBatch, HttpRow, RecordBatch};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::memory::drive;
use linkweir_wire::LinkType;

use crate::{HttpConfig, HttpStage, HttpStats};

/// A record that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) row: HttpRow,
    pub(super) method: String,
    pub(super) uri: String,
    pub(super) host: String,
    pub(super) user_agent: String,
    pub(super) reason_phrase: String,
    pub(super) content_type: String,
}

impl Record {
    /// State, target and code in one line.
    pub(super) fn short(&self) -> String {
        let code = self.row.status_code.map(|code| code.to_string());
        [
            self.row.state.as_str(),
            &self.uri,
            code.as_deref().unwrap_or_default(),
        ]
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" ")
    }
}

/// What a run has come to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) records: Vec<Record>,
    pub(super) stats: HttpStats,
}

impl Outcome {
    /// [`Record::short`] of all records, in the order they came.
    pub(super) fn short(&self) -> Vec<String> {
        self.records.iter().map(Record::short).collect()
    }

    /// The one record there is.
    pub(super) fn only(&self) -> &Record {
        assert_eq!(self.records.len(), 1, "{:?}", self.short());
        &self.records[0]
    }
}

pub(super) fn records_of(batch: &HttpBatch) -> Vec<Record> {
    let own = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    batch
        .views()
        .map(|view| Record {
            row: *view.row,
            method: own(view.text.method),
            uri: own(view.text.uri),
            host: own(view.text.host),
            user_agent: own(view.text.user_agent),
            reason_phrase: own(view.text.reason_phrase),
            content_type: own(view.text.content_type),
        })
        .collect()
}

/// One run, whose counters must add up.
pub(super) fn observe_in(
    config: &HttpConfig,
    frames: &[CapturedFrame],
    link: LinkType,
    sizes: &[usize],
) -> Outcome {
    let mut stage = HttpStage::new(config);
    let batch = drive(&mut stage, frames, link, sizes);
    assert_eq!(stage.pending(), 0, "nothing waits after the end");
    let stats = stage.stats().clone();
    check_counters(&stats);
    let records = records_of(&batch);
    if !config.keep_duplicates {
        let ended = stats.transactions + stats.unanswered + stats.orphans;
        assert_eq!(records.len() as u64 + stats.filtered, ended, "{stats:?}");
    }
    Outcome { records, stats }
}

/// Whatever the input, these hold at the end of a run.
pub(super) fn check_counters(stats: &HttpStats) {
    assert_eq!(
        stats.requests,
        stats.transactions + stats.unanswered,
        "{stats:?}"
    );
    assert_eq!(
        stats.responses,
        stats.transactions + stats.orphans + stats.interim_responses,
        "{stats:?}"
    );
    let methods: u64 = stats.methods().map(|(_, n)| n).sum();
    assert_eq!(methods + stats.other_methods(), stats.requests);
    let codes: u64 = stats.status_codes().map(|(_, n)| n).sum();
    // Of a connection that was joined late a code may be unknown.
    assert!(codes == stats.responses || (codes < stats.responses && stats.unknown_names > 0));
    assert_eq!(stats.response_time.count(), stats.transactions);
}

/// A run in one batch, which must equal a run frame by frame.
pub(super) fn observe(config: &HttpConfig, frames: &[CapturedFrame], link: LinkType) -> Outcome {
    let whole = observe_in(config, frames, link, &[]);
    let single = observe_in(config, frames, link, &[1]);
    assert_eq!(whole.records, single.records, "a batch may be cut anywhere");
    whole
}

/// A conversation under default settings.
pub(super) fn look(talk: &Conversation) -> Outcome {
    look_with(&HttpConfig::default(), talk)
}

/// A conversation under other settings.
pub(super) fn look_with(config: &HttpConfig, talk: &Conversation) -> Outcome {
    observe(config, &talk.frames(), talk.link())
}

/// Several conversations under default settings.
pub(super) fn look_all(talks: &[Conversation]) -> Outcome {
    observe(&HttpConfig::default(), &together(talks), LinkType::ETHERNET)
}

/// The frames of several conversations in the order of their times.
pub(super) fn together(talks: &[Conversation]) -> Vec<CapturedFrame> {
    let mut frames: Vec<_> = talks.iter().flat_map(Conversation::frames).collect();
    frames.sort_by_key(|frame| frame.timestamp_ns);
    frames
}

/// A GET without a body.
pub(super) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: www.example.test\r\nUser-Agent: tests/1\r\n\r\n")
}

/// A response with `Content-Length` and a body.
pub(super) fn answer(code: u16, body: usize) -> String {
    format!(
        "HTTP/1.1 {code} Fine\r\nContent-Type: text/plain\r\nContent-Length: {body}\r\n\r\n{}",
        "x".repeat(body)
    )
}

/// The chunks of a body, with the last one.
pub(super) fn chunks(sizes: &[usize]) -> String {
    let mut text = String::new();
    for size in sizes {
        text.push_str(&format!("{size:x}\r\n{}\r\n", "c".repeat(*size)));
    }
    text + "0\r\n\r\n"
}

/// A chunked response.
pub(super) fn chunked_answer(sizes: &[usize]) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        chunks(sizes)
    )
}

/// All orders of `0..count`.
pub(super) fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in orders(count - 1) {
        for at in 0..count {
            let mut order = shorter.clone();
            order.insert(at, count - 1);
            all.push(order);
        }
    }
    all
}
