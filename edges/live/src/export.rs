//! What became of metrics and spans that were sent elsewhere.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exposition::families;

/// Counters of an exporter.
#[derive(Debug, Default)]
pub struct ExportCounts {
    /// Messages with metrics that were taken, and that were not.
    pub metrics: [AtomicU64; 2],
    /// Spans that were taken, and that were lost: no room in the queue, refused, or not delivered.
    pub spans: [AtomicU64; 2],
    /// Why the first attempt that failed did.
    pub first_failure: OnceLock<String>,
}

/// The counters at a time.
pub(crate) struct Exported {
    metrics: [u64; 2],
    spans: [u64; 2],
}

/// What counters of taken and lost are called.
const OUTCOMES: [&str; 2] = ["delivered", "lost"];

fn by_outcome(counts: [u64; 2]) -> impl Iterator<Item = (&'static str, u64)> {
    let is_used = counts.iter().any(|count| *count > 0);
    OUTCOMES.into_iter().zip(counts).filter(move |_| is_used)
}

families! {
    pub(crate) FAMILIES: Exported;
    counter "linkweir_otlp_metrics_messages_total" ["outcome"] "Messages with metrics sent by OTLP, by outcome."
        => |counts, out| out.by(by_outcome(counts.metrics));
    counter "linkweir_otlp_spans_total" ["outcome"] "Spans sent by OTLP, by outcome; lost ones found no room in the queue or did not reach the receiver."
        => |counts, out| out.by(by_outcome(counts.spans));
}

impl ExportCounts {
    pub(crate) fn exported(&self) -> Exported {
        let read = |counts: &[AtomicU64; 2]| {
            let [taken, lost] = counts;
            [taken, lost].map(|count| count.load(Ordering::Relaxed))
        };
        Exported {
            metrics: read(&self.metrics),
            spans: read(&self.spans),
        }
    }

    /// Messages with metrics, and spans, that were not delivered, and why the first attempt that failed did.
    #[must_use]
    pub fn losses(&self) -> ([u64; 2], Option<&str>) {
        let now = self.exported();
        let [_, metrics] = now.metrics;
        let [_, spans] = now.spans;
        (
            [metrics, spans],
            self.first_failure.get().map(String::as_str),
        )
    }
}
