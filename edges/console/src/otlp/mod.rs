//! Metrics and spans to a collector of OpenTelemetry: OTLP over HTTP, in Protocol Buffers.
//!
//! One thread sends, each message once more after a break where the receiver is down or busy; what is not taken then is
//! counted. Metrics are cumulative, so that a lost message costs nothing but its point in time. Spans wait in a
//! bounded queue ([`SpanQueue`]); the run never waits for the receiver.

mod metrics;
mod spans;
mod wire;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use linkweir_live::{Kind, LiveOf};
use linkweir_post::{Client, is_http};
use thiserror::Error;

use self::spans::Ready;
pub use self::spans::SpanQueue;
use self::wire::Message;
use crate::webhook::{Outcome, WebhookError, post};

/// How long the thread waits for spans before it looks for an interval or the end.
const LOOK: Duration = Duration::from_millis(200);
/// Break before the second attempt.
const BREAK: Duration = Duration::from_secs(1);
/// Time for one attempt.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Where metrics and spans go, and how often.
#[derive(Debug, Clone)]
pub struct OtlpOptions {
    /// The receiver, `http://` or `https://`; `/v1/metrics` and `/v1/traces` are added, as for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub url: String,
    /// How often metrics are sent.
    pub interval: Duration,
    /// Nanoseconds since the epoch, by the clock of the wall.
    pub clock: fn() -> u64,
}

/// Why the exporter did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The address is not one for HTTP.
    #[error("expected an address that begins with http:// or https:// and names a host")]
    Address,
    /// The certificates or the thread.
    #[error(transparent)]
    Start(#[from] WebhookError),
}

/// Who sends: the attributes of the resource.
#[derive(Debug)]
struct Origin {
    subject: &'static str,
    source: String,
}

/// Sends until dropped; dropping it sends what is left.
#[derive(Debug)]
pub struct Otlp {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Otlp {
    /// Starts to send the metrics of `live`, and what waits in `spans`.
    ///
    /// # Errors
    /// Where the address is not one for HTTP, the certificates cannot be read, or there is no thread.
    pub fn start<K: Kind>(
        options: OtlpOptions,
        live: LiveOf<K>,
        spans: SpanQueue,
    ) -> Result<Self, OtlpError> {
        if !is_http(&options.url) {
            return Err(OtlpError::Address);
        }
        let client = Client::new(TIMEOUT, None).map_err(WebhookError::from)?;
        let base = options.url.trim_end_matches('/');
        let exporter = Exporter {
            client,
            metrics_url: format!("{base}/v1/metrics"),
            spans_url: format!("{base}/v1/traces"),
            origin: Origin {
                subject: K::SUBJECT,
                source: live.meta().source,
            },
            start: (options.clock)(),
            waiting: spans.take(),
            options,
            live,
            spans,
        };
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || exporter.run(&stopped))
            .map_err(WebhookError::from)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the thread must not become one of the run.
            thread.join().ok();
        }
    }
}

/// `Resource` of a `ResourceMetrics` or `ResourceSpans`.
fn head(out: &mut Message, origin: &Origin) {
    out.within(1, |resource| {
        resource.attribute(1, "service.name", b"linkweir");
        let version = env!("CARGO_PKG_VERSION").as_bytes();
        resource.attribute(1, "service.version", version);
        resource.attribute(1, "linkweir.subject", origin.subject.as_bytes());
        resource.attribute(1, "linkweir.source", origin.source.as_bytes());
    });
}

/// `InstrumentationScope`.
fn scope(out: &mut Message) {
    out.within(1, |scope| {
        scope.text(1, b"linkweir");
        scope.text(2, env!("CARGO_PKG_VERSION").as_bytes());
    });
}

#[derive(Debug)]
struct Exporter<K: Kind> {
    client: Client,
    metrics_url: String,
    spans_url: String,
    origin: Origin,
    /// When it began, nanoseconds since the epoch.
    start: u64,
    waiting: Option<Receiver<Ready>>,
    options: OtlpOptions,
    live: LiveOf<K>,
    spans: SpanQueue,
}

impl<K: Kind> Exporter<K> {
    fn run(&self, stopped: &Receiver<()>) {
        let interval = u64::try_from(self.options.interval.as_nanos()).unwrap_or(u64::MAX);
        let mut due = self.start.saturating_add(interval);
        loop {
            let waiting = self.waiting.as_ref();
            let first = waiting.and_then(|waiting| waiting.recv_timeout(LOOK).ok());
            let wait = if waiting.is_some() {
                Duration::ZERO
            } else {
                LOOK
            };
            let is_over = !rest(stopped, wait);
            self.count_lost();
            if let Some(ready) = first {
                self.send_spans(&ready, stopped);
            }
            if is_over {
                self.send_last(stopped);
            }
            let now = (self.options.clock)();
            if is_over || now >= due {
                due = now.saturating_add(interval);
                self.send_metrics(now, stopped);
            }
            if is_over {
                return;
            }
        }
    }

    /// The run has ended: one attempt for each batch that is left, and none after the first that fails.
    fn send_last(&self, stopped: &Receiver<()>) {
        let mut is_taken = true;
        for ready in self.waiting.iter().flat_map(Receiver::try_iter) {
            if is_taken {
                is_taken = self.send_spans(&ready, stopped);
            } else {
                let counts = &self.live.export_counts().spans;
                count(counts, ready.count, ready.count);
            }
        }
        self.count_lost();
    }

    fn send_metrics(&self, now: u64, stopped: &Receiver<()>) {
        let values = self.live.metric_values();
        let body = metrics::request(&values, &self.origin, self.start, now);
        let refused = self.send(&self.metrics_url, &body, stopped);
        let counts = &self.live.export_counts().metrics;
        count(counts, 1, u64::from(refused.is_none()));
    }

    /// Counts the spans that found no room.
    fn count_lost(&self) {
        let lost = self.spans.take_lost();
        count(&self.live.export_counts().spans, lost, lost);
    }

    /// Sends a batch; says whether the receiver took the message.
    fn send_spans(&self, ready: &Ready, stopped: &Receiver<()>) -> bool {
        let mut request = Message::default();
        request.within(1, |resource| {
            head(resource, &self.origin);
            resource.within(2, |spans| {
                scope(spans);
                spans.0.extend_from_slice(&ready.fields);
            });
        });
        let refused = self.send(&self.spans_url, &request.0, stopped);
        let counts = &self.live.export_counts().spans;
        count(counts, ready.count, refused.unwrap_or(ready.count));
        refused.is_some()
    }

    /// Sends a message; gives how much of it was refused, `None` where it was not taken.
    fn send(&self, url: &str, body: &[u8], stopped: &Receiver<()>) -> Option<u64> {
        let mut is_second = false;
        loop {
            let (outcome, response) = post(&self.client, url, "application/x-protobuf", body);
            let why = match outcome {
                Outcome::Taken => return Some(wire::refused(&response)),
                Outcome::Failed(_) if !is_second && rest(stopped, BREAK) => {
                    is_second = true;
                    continue;
                }
                Outcome::Failed(why) | Outcome::Refused(why) => why,
            };
            self.live.export_counts().first_failure.get_or_init(|| why);
            return None;
        }
    }
}

/// Adds to counters of what was taken and of what was lost.
fn count([taken, lost]: &[AtomicU64; 2], all: u64, of_them_lost: u64) {
    taken.fetch_add(all.saturating_sub(of_them_lost), Ordering::Relaxed);
    lost.fetch_add(of_them_lost.min(all), Ordering::Relaxed);
}

/// Waits for the length of a break; says whether to go on.
fn rest(stopped: &Receiver<()>, length: Duration) -> bool {
    matches!(stopped.recv_timeout(length), Err(RecvTimeoutError::Timeout))
}
