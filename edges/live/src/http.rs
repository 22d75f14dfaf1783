//! HTTP transactions as the content of intervals.

use std::collections::BTreeMap;

use linkweir_record::{HttpKind, HttpRow, HttpState, HttpTransaction};
use linkweir_sketch::{BoundedCounts, Coarse, LogLinear, Payload, TopEntry, TopK};
use serde_json::Value;

use crate::alert::{Rule, RuleError, Scope, ScopeNumbers};
use crate::api::{By, HttpFigures, HttpOf, Percentiles, Sort, Tick, TopRow, Totals};
use crate::kind::{Clock, Column, Kind};
use crate::metrics::Exposition;
use crate::part::{ADDRESS_BYTES, address_text, octets, socket_key};
use crate::scopes::{is_same, names_host};
use crate::servers::{BOUNDS, Servers};
use crate::text::{clean, to_f64};
use crate::url_template::{MAX_TEMPLATE_BYTES, path_template};

/// Methods with a counter of their own.
const MAX_METHODS: usize = 32;
/// Status codes; larger ones count as 0.
pub(super) const CODES: usize = 1000;
/// Longest host name that is told from others (RFC 1035: 253, a port, and some).
const HOST_BYTES: usize = 128;

/// Counts of an interval, or of a run.
#[derive(Debug)]
pub struct HttpCounts {
    pub(super) all: ScopeNumbers,
    /// By code; allocated with the first.
    pub(super) codes: Vec<u64>,
    pub(super) methods: BoundedCounts,
}

impl Default for HttpCounts {
    fn default() -> Self {
        Self {
            all: ScopeNumbers::default(),
            codes: Vec::new(),
            methods: BoundedCounts::new(MAX_METHODS),
        }
    }
}

impl HttpCounts {
    #[cfg(test)]
    pub(super) fn of_times(response_time: LogLinear) -> Self {
        let mut counts = Self::default();
        counts.all.response_time = response_time;
        counts
    }

    pub(super) fn codes(&self) -> BTreeMap<u16, u64> {
        (0..)
            .zip(&self.codes)
            .filter(|(_, count)| **count > 0)
            .map(|(code, count)| (code, *count))
            .collect()
    }

    fn methods(&self) -> BTreeMap<String, u64> {
        let mut methods = BTreeMap::new();
        for (method, count) in self.methods.iter() {
            *methods.entry(clean(method)).or_insert(0) += count;
        }
        if self.methods.other() > 0 {
            *methods.entry("other".to_owned()).or_insert(0) += self.methods.other();
        }
        methods
    }
}

/// What is kept with a key.
#[derive(Debug, Clone, Default)]
pub struct HttpKeyed {
    pub(super) errors_4xx: u64,
    pub(super) errors_5xx: u64,
    pub(super) unanswered: u64,
    pub(super) bytes: u64,
    pub(super) response_time: Coarse,
}

impl Payload for HttpKeyed {
    fn merge(&mut self, other: &Self) {
        self.errors_4xx = self.errors_4xx.saturating_add(other.errors_4xx);
        self.errors_5xx = self.errors_5xx.saturating_add(other.errors_5xx);
        self.unanswered = self.unanswered.saturating_add(other.unanswered);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.response_time.merge(&other.response_time);
    }

    fn reset(&mut self) {
        (self.errors_4xx, self.errors_5xx) = (0, 0);
        (self.unanswered, self.bytes) = (0, 0);
        self.response_time.reset();
    }
}

impl HttpKeyed {
    fn record(&mut self, row: &HttpRow, response_time: Option<u64>) {
        match row.status_code {
            Some(400..=499) => self.errors_4xx += 1,
            Some(500..=599) => self.errors_5xx += 1,
            _ => {}
        }
        self.unanswered += u64::from(row.state == HttpState::Unanswered);
        let bytes = row
            .request_bytes
            .unwrap_or(0)
            .saturating_add(row.response_bytes.unwrap_or(0));
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(time) = response_time {
            self.response_time.record(time);
        }
    }
}

/// The texts of a transaction as tables and scopes want them.
#[derive(Debug, Default)]
pub struct HttpScratch {
    /// Lower case.
    host: Vec<u8>,
    /// Host and path template.
    url: Vec<u8>,
}

/// Response time of a pair.
fn response_time(row: &HttpRow) -> Option<u64> {
    match row.state {
        HttpState::Complete => row.response_time_ns(),
        _ => None,
    }
}

/// Counts a transaction in a scope.
fn record_scope(row: &HttpRow, scope: &mut ScopeNumbers) {
    match row.state {
        HttpState::Complete => {
            scope.requests += 1;
            scope.responses += 1;
        }
        HttpState::Unanswered => {
            scope.requests += 1;
            scope.unanswered += 1;
        }
        HttpState::Orphan => {
            scope.responses += 1;
            scope.orphans += 1;
        }
    }
    scope.retransmissions += u64::from(row.retransmissions);
    match row.status_code {
        Some(400..=499) => scope.errors_4xx += 1,
        Some(500..=599) => scope.errors_5xx += 1,
        _ => {}
    }
    if let Some(time) = response_time(row) {
        scope.response_time.record(time);
    }
}

impl Kind for HttpKind {
    const SUBJECT: &'static str = "http";
    type Figures = HttpFigures;
    type Numbers = ScopeNumbers;
    type Counts = HttpCounts;
    type Keyed = HttpKeyed;
    type Series = Servers;
    type Scratch = HttpScratch;
    type By = By;
    type Sort = Sort;
    type Of = HttpOf;
    type Row = TopRow;
    type Status = ();
    type Event = ();

    fn rule(text: &str) -> Result<Rule, RuleError> {
        text.parse()
    }

    fn time(view: &HttpTransaction<'_>, clock: Clock) -> u64 {
        // What has no response is known to have none only now.
        match view.row.response_ts_ns {
            Some(time) if view.row.state != HttpState::Unanswered => time,
            _ => clock.records_to.max(clock.ticks_to),
        }
    }

    fn count(
        view: &HttpTransaction<'_>,
        counts: &mut HttpCounts,
        servers: &mut Servers,
        scratch: &mut HttpScratch,
    ) {
        let row = view.row;
        record_scope(row, &mut counts.all);
        if let Some(code) = row.status_code {
            if counts.codes.is_empty() {
                counts.codes.resize(CODES, 0);
            }
            let at = usize::from(code);
            let at = if at < CODES { at } else { 0 };
            if let Some(count) = counts.codes.get_mut(at) {
                *count += 1;
            }
        }
        if let (Some(nanos), Some(code)) = (response_time(row), row.status_code) {
            servers.record((row.server_ip, row.server_port), code, nanos);
        }
        scratch.host.clear();
        scratch.url.clear();
        if row.state != HttpState::Orphan {
            counts.methods.record(view.text.method);
            scratch.host.extend_from_slice(view.text.host);
            scratch.host.make_ascii_lowercase();
            let host = scratch.host.get(..96).unwrap_or(&scratch.host);
            scratch.url.extend_from_slice(host);
            path_template(view.text.uri, &mut scratch.url);
        }
    }

    fn is_in(view: &HttpTransaction<'_>, scope: &Scope, scratch: &HttpScratch) -> bool {
        let row = view.row;
        match scope {
            Scope::Run => true,
            Scope::Host(host) => names_host(&scratch.host, host.as_bytes()),
            Scope::Url(url) => scratch.url == url.as_bytes(),
            Scope::Client(address) => is_same(row.client_ip, *address),
            Scope::Server(address, port) => {
                port.is_none_or(|port| port == row.server_port) && is_same(row.server_ip, *address)
            }
            Scope::Name(_) | Scope::Application(_) => false,
        }
    }

    fn count_in(view: &HttpTransaction<'_>, _scratch: &HttpScratch, scope: &mut ScopeNumbers) {
        record_scope(view.row, scope);
    }

    fn has_keys(view: &HttpTransaction<'_>) -> bool {
        view.row.state != HttpState::Orphan
    }

    fn count_keys(
        view: &HttpTransaction<'_>,
        tables: &mut [TopK<HttpKeyed>],
        scratch: &HttpScratch,
    ) {
        let row = view.row;
        let [hosts, servers, urls, clients] = tables else {
            return;
        };
        let time = response_time(row);
        for keyed in [
            hosts.record(&scratch.host),
            urls.record(&scratch.url),
            servers.record(&socket_key(row.server_ip, row.server_port)),
            clients.record(&octets(row.client_ip)),
        ]
        .into_iter()
        .flatten()
        {
            keyed.record(row, time);
        }
    }

    fn merge(mine: &mut HttpCounts, theirs: &HttpCounts) {
        let (all, other) = (&mut mine.all, &theirs.all);
        all.requests = all.requests.saturating_add(other.requests);
        all.responses = all.responses.saturating_add(other.responses);
        all.unanswered = all.unanswered.saturating_add(other.unanswered);
        all.orphans = all.orphans.saturating_add(other.orphans);
        all.retransmissions = all.retransmissions.saturating_add(other.retransmissions);
        all.errors_4xx = all.errors_4xx.saturating_add(other.errors_4xx);
        all.errors_5xx = all.errors_5xx.saturating_add(other.errors_5xx);
        all.response_time.merge(&other.response_time);
        if !theirs.codes.is_empty() {
            mine.codes.resize(CODES, 0);
            for (mine, theirs) in mine.codes.iter_mut().zip(&theirs.codes) {
                *mine = mine.saturating_add(*theirs);
            }
        }
        mine.methods.merge(&theirs.methods);
    }

    fn all(counts: &HttpCounts) -> &ScopeNumbers {
        &counts.all
    }

    fn distribution(counts: &HttpCounts, of: HttpOf) -> &LogLinear {
        match of {
            HttpOf::ResponseTime => &counts.all.response_time,
        }
    }

    fn figures(counts: &HttpCounts) -> HttpFigures {
        let all = &counts.all;
        HttpFigures {
            requests: all.requests,
            responses: all.responses,
            complete: all.requests.saturating_sub(all.unanswered),
            unanswered: all.unanswered,
            orphans: all.orphans,
            retransmissions: all.retransmissions,
            codes: counts.codes(),
            methods: counts.methods(),
            response_time_ns: crate::interval::percentiles(&all.response_time),
        }
    }

    fn add(mine: &mut HttpFigures, theirs: HttpFigures) {
        mine.requests = mine.requests.saturating_add(theirs.requests);
        mine.responses = mine.responses.saturating_add(theirs.responses);
        mine.complete = mine.complete.saturating_add(theirs.complete);
        mine.unanswered = mine.unanswered.saturating_add(theirs.unanswered);
        mine.orphans = mine.orphans.saturating_add(theirs.orphans);
        mine.retransmissions = mine.retransmissions.saturating_add(theirs.retransmissions);
        for (code, count) in theirs.codes {
            let sum = mine.codes.entry(code).or_insert(0);
            *sum = sum.saturating_add(count);
        }
    }

    fn put(figures: &mut HttpFigures, of: HttpOf, percentiles: Option<Percentiles>) {
        match of {
            HttpOf::ResponseTime => figures.response_time_ns = percentiles,
        }
    }

    fn key_bytes(by: By) -> usize {
        match by {
            By::Host => HOST_BYTES,
            By::Url => MAX_TEMPLATE_BYTES,
            By::Server | By::Client => ADDRESS_BYTES,
        }
    }

    fn rank(entry: &TopEntry<'_, HttpKeyed>, sort: Sort) -> u64 {
        let keyed = entry.payload;
        match sort {
            Sort::Requests => entry.count,
            Sort::Errors => keyed.errors_4xx.saturating_add(keyed.errors_5xx),
            Sort::P95 => keyed.response_time.quantile(950).unwrap_or(0),
            Sort::Bytes => keyed.bytes,
            Sort::Unanswered => keyed.unanswered,
        }
    }

    fn row(by: By, entry: &TopEntry<'_, HttpKeyed>) -> TopRow {
        let keyed = entry.payload;
        let mut key = match by {
            By::Host | By::Url => clean(entry.key),
            By::Server | By::Client => address_text(entry.key),
        };
        if entry.is_truncated {
            key.push_str("...");
        }
        TopRow {
            key,
            requests: entry.count,
            errors_4xx: keyed.errors_4xx,
            errors_5xx: keyed.errors_5xx,
            unanswered: keyed.unanswered,
            bytes: keyed.bytes,
            p50: keyed.response_time.quantile(500),
            p95: keyed.response_time.quantile(950),
            p99: keyed.response_time.quantile(990),
            max: keyed.response_time.max(),
        }
    }

    fn columns(tick: &Tick) -> (Vec<Column>, Vec<(String, Value)>) {
        let times = tick.response_time_ns;
        let columns = vec![
            ("requests", tick.requests.into()),
            ("responses", tick.responses.into()),
            ("complete", tick.complete.into()),
            ("unanswered", tick.unanswered.into()),
            ("orphans", tick.orphans.into()),
            ("retransmissions", tick.retransmissions.into()),
            ("response_time_min_ns", times.map(|t| t.min).into()),
            ("response_time_mean_ns", times.map(|t| t.mean).into()),
            ("response_time_p50_ns", times.map(|t| t.p50).into()),
            ("response_time_p90_ns", times.map(|t| t.p90).into()),
            ("response_time_p95_ns", times.map(|t| t.p95).into()),
            ("response_time_p99_ns", times.map(|t| t.p99).into()),
            ("response_time_p999_ns", times.map(|t| t.p999).into()),
            ("response_time_max_ns", times.map(|t| t.max).into()),
        ];
        let codes = tick.codes.iter();
        let codes = codes.map(|(code, count)| (format!("code_{code}"), (*count).into()));
        (columns, codes.collect())
    }

    fn table_name(by: By) -> &'static str {
        match by {
            By::Host => "hosts",
            By::Server => "servers",
            By::Url => "urls",
            By::Client => "clients",
        }
    }

    fn row_columns() -> &'static [&'static str] {
        &[
            "key",
            "requests",
            "errors_4xx",
            "errors_5xx",
            "unanswered",
            "bytes",
            "p50",
            "p95",
            "p99",
            "max",
        ]
    }

    fn expose(out: &mut Exposition, totals: &Totals, servers: &Servers) {
        transactions(out, totals);
        response_times(out, servers);
    }
}

fn transactions(out: &mut Exposition, totals: &Totals) {
    out.by_label(
        (
            "linkweir_http_transactions_total",
            "counter",
            "Transactions whose fate is known, by state.",
        ),
        "state",
        [
            ("complete", totals.complete),
            ("unanswered", totals.unanswered),
            ("orphan", totals.orphans),
        ],
    );
    out.by_label(
        (
            "linkweir_http_requests_total",
            "counter",
            "Requests, by method.",
        ),
        "method",
        totals
            .methods
            .iter()
            .map(|(method, count)| (method.as_str(), *count)),
    );
    let codes: Vec<(String, u64)> = totals
        .codes
        .iter()
        .map(|(code, count)| (code.to_string(), *count))
        .collect();
    out.by_label(
        (
            "linkweir_http_responses_total",
            "counter",
            "Final responses, by status code.",
        ),
        "code",
        codes.iter().map(|(code, count)| (code.as_str(), *count)),
    );
    out.single(
        "linkweir_http_retransmissions_total",
        "counter",
        "Retransmitted heads of requests and responses.",
        totals.retransmissions,
    );
    out.single(
        "linkweir_late_records_total",
        "counter",
        "Records that were counted in a later interval than their own.",
        totals.late_records,
    );
    if let Some(times) = totals.response_time_ns {
        out.by_label(
            ("linkweir_http_response_time_percentile_seconds", "gauge",
             "Response time that a share of all transactions of the run did not exceed, within 0.1 percent."),
            "percentile",
            [("50", times.p50), ("90", times.p90), ("95", times.p95), ("99", times.p99), ("99.9", times.p999)]
                .map(|(q, nanos)| (q, to_f64(nanos) / 1e9)),
        );
    }
}

fn response_times(out: &mut Exposition, servers: &Servers) {
    const NAME: &str = "linkweir_http_response_time_seconds";
    out.family(
        NAME,
        "histogram",
        "Time from the first packet of a request to the first packet of its response, by server and status code.",
    );
    for (server, codes) in servers.sorted() {
        let server = server.map_or_else(|| "other".to_owned(), |server| server.to_string());
        for (code, histogram) in codes.sorted() {
            let code = if code == 0 {
                "other".to_owned()
            } else {
                code.to_string()
            };
            out.histogram(
                NAME,
                &[("server", &server), ("code", &code)],
                &BOUNDS,
                histogram,
            );
        }
    }
}
