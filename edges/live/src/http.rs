//! HTTP transactions as the content of intervals.

use linkweir_record::{HttpKind, HttpRow, HttpState, HttpTransaction};
use linkweir_sketch::{TopEntry, TopK};

use crate::alert::Scope;
use crate::api::{By, HttpCounts, HttpFigures, HttpKeyed, HttpOf, Sort, TopRow};
use crate::http_metrics;
use crate::kind::{Clock, KeyTable, Kind};
use crate::metrics::{Family, Records};
use crate::part::{octets, socket_key};
use crate::scopes::{is_same, names_host};
use crate::servers::Servers;
use crate::url_template::{MAX_TEMPLATE_BYTES, path_template};

/// Longest host name that is told from others (RFC 1035: 253, a port, and some).
const HOST_BYTES: usize = 128;

/// Counts a transaction with a key.
fn count_keyed(keyed: &mut HttpKeyed, row: &HttpRow, response_time: Option<u64>) {
    match row.status_code {
        Some(400..=499) => keyed.errors_4xx += 1,
        Some(500..=599) => keyed.errors_5xx += 1,
        _ => {}
    }
    keyed.unanswered += u64::from(row.state == HttpState::Unanswered);
    let bytes = row
        .request_bytes
        .unwrap_or(0)
        .saturating_add(row.response_bytes.unwrap_or(0));
    keyed.bytes = keyed.bytes.saturating_add(bytes);
    if let Some(time) = response_time {
        keyed.response_time.record(time);
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

impl Kind for HttpKind {
    const SUBJECT: &'static str = "http";
    const TABLES: &'static [KeyTable] = &[
        KeyTable::of_names("hosts", HOST_BYTES),
        KeyTable::of_addresses("servers"),
        KeyTable::of_names("urls", MAX_TEMPLATE_BYTES),
        KeyTable::of_addresses("clients"),
    ];
    const METRICS: &'static [Family<Records<Self>>] = http_metrics::FAMILIES;
    const STATS: &'static [&'static str] =
        &["min", "mean", "p50", "p90", "p95", "p99", "p999", "max"];
    type Figures = HttpFigures;
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

    fn time(view: &HttpTransaction<'_>, clock: Clock) -> u64 {
        // What has no response is known to have none only now.
        match view.row.response_ts_ns {
            Some(time) if view.row.state != HttpState::Unanswered => time,
            _ => clock.records_to.max(clock.ticks_to),
        }
    }

    fn prepare(view: &HttpTransaction<'_>, servers: &mut Servers, scratch: &mut HttpScratch) {
        let row = view.row;
        if let (Some(nanos), Some(code)) = (response_time(row), row.status_code) {
            servers.record((row.server_ip, row.server_port), code, nanos);
        }
        scratch.host.clear();
        scratch.url.clear();
        if row.state != HttpState::Orphan {
            scratch.host.extend_from_slice(view.text.host);
            scratch.host.make_ascii_lowercase();
            let host = scratch.host.get(..96).unwrap_or(&scratch.host);
            scratch.url.extend_from_slice(host);
            path_template(view.text.uri, &mut scratch.url);
        }
    }

    fn count(view: &HttpTransaction<'_>, _scratch: &HttpScratch, counts: &mut HttpCounts) {
        let row = view.row;
        let (is_request, is_response) = match row.state {
            HttpState::Complete => (true, true),
            HttpState::Unanswered => (true, false),
            HttpState::Orphan => (false, true),
        };
        counts.requests += u64::from(is_request);
        counts.responses += u64::from(is_response);
        counts.unanswered += u64::from(!is_response);
        counts.orphans += u64::from(!is_request);
        counts.retransmissions += u64::from(row.retransmissions);
        if is_request {
            counts.methods.record(view.text.method);
        }
        if let Some(code) = row.status_code {
            counts.errors_4xx.0 += u64::from(code / 100 == 4);
            counts.errors_5xx.0 += u64::from(code / 100 == 5);
            counts.codes.record(code);
        }
        if let Some(time) = response_time(row) {
            counts.response_time_ns.record(time);
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
            count_keyed(keyed, row, time);
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
}
