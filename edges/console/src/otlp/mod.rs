//! Metrics and spans to a collector of OpenTelemetry: OTLP over HTTP, in Protocol Buffers.
//!
//! One thread sends, each message once more after a break where the receiver is down or busy; what is not taken then is
//! counted. Metrics are cumulative, so that a lost message costs nothing but its point in time. Spans wait in a
//! bounded queue ([`SpanQueue`]); the run never waits for the receiver.

mod metrics;
mod spans;
mod wire;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use linkweir_live::{Kind, LiveOf};
use linkweir_post::{Client, is_http};
use thiserror::Error;

use self::spans::Ready;
pub use self::spans::SpanQueue;
use self::wire::Message;
use crate::background::{Background, NO_RESPONSE, Stop};
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
    /// How long the end of the run waits for the receiver: at most 5 s, the time for one attempt.
    pub end: Duration,
}

/// Why the exporter did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The address is not one for HTTP.
    #[error("expected an address that begins with http:// or https:// and names a host")]
    Address,
    /// The address has the path of metrics or spans already.
    #[error("`{0}` is added to the address: leave it out")]
    Path(&'static str),
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

/// Sends until dropped; dropping it sends what is left, and counts as lost what is not taken in time.
#[derive(Debug)]
pub struct Otlp {
    thread: Background,
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
        let added = ["/v1/metrics", "/v1/traces"];
        if let Some(path) = added.into_iter().find(|path| base.ends_with(path)) {
            return Err(OtlpError::Path(path));
        }
        let (end, counted, given_up) = (options.end, live.clone(), spans.clone());
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
        let give_up = move || {
            let counts = counted.export_counts();
            let left = given_up.give_up() + given_up.take_lost();
            count(&counts.spans, left, left);
            // The last message: every run ends with one.
            count(&counts.metrics, 1, 1);
            counts.first_failure.get_or_init(|| NO_RESPONSE.to_owned());
        };
        let thread = Background::start("otlp", end, move |stop| exporter.run(stop), give_up)
            .map_err(WebhookError::from)?;
        Ok(Self { thread })
    }

    /// The run has ended: it sends what is left from now on, for which dropping it waits.
    pub fn stop(&mut self) {
        self.thread.stop();
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
    fn run(&self, stop: &Stop) {
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
            let is_over = !stop.rest(wait);
            self.count_lost();
            if is_over {
                return self.send_last(first, stop);
            }
            if let Some(ready) = first {
                self.send_spans(&ready, stop);
            }
            let now = (self.options.clock)();
            if now >= due {
                due = now.saturating_add(interval);
                self.send_metrics(now, stop);
            }
        }
    }

    /// The run has ended: one attempt for each batch that is left and for the metrics, and none after the first that fails.
    fn send_last(&self, first: Option<Ready>, stop: &Stop) {
        let mut is_taken = true;
        let left = self.waiting.iter().flat_map(Receiver::try_iter);
        for ready in first.into_iter().chain(left) {
            if is_taken {
                is_taken = self.send_spans(&ready, stop);
            } else {
                self.settle(ready.count, ready.count);
            }
        }
        self.count_lost();
        if is_taken {
            self.send_metrics((self.options.clock)(), stop);
        } else if !stop.is_given_up() {
            count(&self.live.export_counts().metrics, 1, 1);
        }
    }

    fn send_metrics(&self, now: u64, stop: &Stop) {
        let values = self.live.metric_values();
        let body = metrics::request(&values, &self.origin, self.start, now);
        let refused = self.send(&self.metrics_url, &body, stop);
        if !stop.is_given_up() {
            let counts = &self.live.export_counts().metrics;
            count(counts, 1, u64::from(refused.is_none()));
        }
    }

    /// Counts spans that were sent, unless they were given up.
    fn settle(&self, all: u64, of_them_lost: u64) {
        if self.spans.settle(all) {
            count(&self.live.export_counts().spans, all, of_them_lost);
        }
    }

    /// Counts the spans that found no room.
    fn count_lost(&self) {
        let lost = self.spans.take_lost();
        count(&self.live.export_counts().spans, lost, lost);
    }

    /// Sends a batch; says whether the receiver took the message.
    fn send_spans(&self, ready: &Ready, stop: &Stop) -> bool {
        let mut request = Message::default();
        request.within(1, |resource| {
            head(resource, &self.origin);
            resource.within(2, |spans| {
                scope(spans);
                spans.0.extend_from_slice(&ready.fields);
            });
        });
        let refused = self.send(&self.spans_url, &request.0, stop);
        self.settle(ready.count, refused.unwrap_or(ready.count));
        refused.is_some()
    }

    /// Sends a message; gives how much of it was refused, `None` where it was not taken.
    fn send(&self, url: &str, body: &[u8], stop: &Stop) -> Option<u64> {
        let mut is_second = false;
        loop {
            let (outcome, response) = post(&self.client, url, "application/x-protobuf", body);
            let why = match outcome {
                Outcome::Taken => return Some(wire::refused(&response)),
                Outcome::Failed(_) if !is_second && stop.rest(BREAK) => {
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
