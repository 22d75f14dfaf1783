//! What the HTTP report remembers of the records: sketches of bounded size.
//!
//! Cost: about 2 MB for any number of records; three hash look-ups a record.

use linkweir_engine::{Sink, SinkError};
use linkweir_record::{HttpBatch, HttpKind, HttpState, HttpTransaction, RecordBatch, path_of};
use linkweir_sketch::{BoundedCounts, Coarse, LogLinear, RateSeries, TopK};

/// Hosts and URLs that are counted one by one: those with more than 1/1024 (1/2048) of all requests
/// are certainly among them.
const HOSTS: usize = 1024;
const URLS: usize = 2048;
/// Longer names are cut off.
const KEY_BYTES: usize = 200;
/// Finest bin of the series over time, and their greatest number: 41 s at 10 ms, 11 hours at 10 s.
const BIN_NS: u64 = 10_000_000;
const BINS: usize = 4096;

/// Collects what the report of `http` shows. Mergeable: workers collect apart.
#[derive(Debug)]
pub struct HttpReport {
    pub(super) response_time: LogLinear,
    /// Response times less the round trip to the server, where that is known.
    pub(super) server_time: LogLinear,
    pub(super) uri_bytes: LogLinear,
    pub(super) response_bytes: LogLinear,
    pub(super) requests_at: RateSeries,
    pub(super) unanswered_at: RateSeries,
    pub(super) orphans_at: RateSeries,
    /// By status code; 0 where it is above 999.
    pub(super) codes: Vec<u64>,
    pub(super) methods: BoundedCounts,
    pub(super) hosts: TopK<Coarse>,
    pub(super) urls: TopK<Coarse>,
    pub(super) requests: u64,
    pub(super) responses: u64,
    pub(super) unanswered: u64,
    pub(super) orphans: u64,
    key: Vec<u8>,
}

impl Default for HttpReport {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpReport {
    /// A report of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let series = || RateSeries::new(BIN_NS, BINS);
        Self {
            response_time: LogLinear::new(),
            server_time: LogLinear::new(),
            uri_bytes: LogLinear::new(),
            response_bytes: LogLinear::new(),
            requests_at: series(),
            unanswered_at: series(),
            orphans_at: series(),
            codes: vec![0; 1000],
            methods: BoundedCounts::new(32),
            hosts: TopK::new(HOSTS, KEY_BYTES),
            urls: TopK::new(URLS, KEY_BYTES),
            requests: 0,
            responses: 0,
            unanswered: 0,
            orphans: 0,
            key: Vec::new(),
        }
    }

    /// Takes one record.
    pub fn record(&mut self, view: &HttpTransaction<'_>) {
        let (row, text) = (view.row, &view.text);
        match row.state {
            HttpState::Complete => {
                self.requests += 1;
                self.responses += 1;
            }
            HttpState::Unanswered => {
                self.requests += 1;
                self.unanswered += 1;
            }
            HttpState::Orphan => {
                self.responses += 1;
                self.orphans += 1;
            }
        }
        let response_time = row.response_time_ns();
        if let Some(time) = response_time {
            self.response_time.record(time);
        }
        if let Some(time) = row.server_time_ns() {
            self.server_time.record(time);
        }
        if let Some(code) = row.status_code {
            let at = if code < 1000 { usize::from(code) } else { 0 };
            if let Some(count) = self.codes.get_mut(at) {
                *count += 1;
            }
        }
        if let Some(bytes) = row.response_bytes {
            self.response_bytes.record(bytes);
        }
        if row.state == HttpState::Orphan {
            if let Some(time) = row.response_ts_ns {
                self.orphans_at.record(time);
            }
            return;
        }
        if let Some(time) = row.request_ts_ns {
            self.requests_at.record(time);
            if row.state == HttpState::Unanswered {
                self.unanswered_at.record(time);
            }
        }
        self.methods.record(text.method);
        self.uri_bytes.record(text.uri.len() as u64);
        self.key.clear();
        self.key.extend_from_slice(text.host);
        self.key.make_ascii_lowercase();
        if let (Some(times), Some(time)) = (self.hosts.record(&self.key), response_time) {
            times.record(time);
        }
        self.key.extend_from_slice(path_of(text.uri));
        if let (Some(times), Some(time)) = (self.urls.record(&self.key), response_time) {
            times.record(time);
        }
    }

    /// Adds what another worker has collected.
    pub fn merge(&mut self, other: &Self) {
        self.response_time.merge(&other.response_time);
        self.server_time.merge(&other.server_time);
        self.uri_bytes.merge(&other.uri_bytes);
        self.response_bytes.merge(&other.response_bytes);
        self.requests_at.merge(&other.requests_at);
        self.unanswered_at.merge(&other.unanswered_at);
        self.orphans_at.merge(&other.orphans_at);
        for (a, b) in self.codes.iter_mut().zip(&other.codes) {
            *a += b;
        }
        self.methods.merge(&other.methods);
        self.hosts.merge(&other.hosts);
        self.urls.merge(&other.urls);
        self.requests += other.requests;
        self.responses += other.responses;
        self.unanswered += other.unanswered;
        self.orphans += other.orphans;
    }
}

impl Sink<HttpKind> for HttpReport {
    fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
        for view in batch.views() {
            self.record(&view);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (target, path) in [
            ("/a/b?c=http://d", "/a/b"),
            ("http://host:80/a?b", "/a"),
            ("http://host", ""),
            ("http://host?q", ""),
            ("*", "*"),
            ("/x#y", "/x"),
            ("/a://b", "/a://b"),
            ("", ""),
        ] {
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
