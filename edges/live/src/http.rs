//! HTTP transactions as the content of intervals.

use std::net::IpAddr;

use linkweir_record::{HttpKind, HttpRow, HttpState, HttpTransaction};
use linkweir_sketch::{TopEntry, TopK};

use crate::alert::{Metric, Rule, Scope};
use crate::api::{By, HttpCounts, HttpFigures, HttpKeyed, HttpOf, Sort, TopRow};
use crate::exposition::{Family, Samples, families};
use crate::hosts::{HostCounts, Hosts};
use crate::interval::LiveOptions;
use crate::kind::{Behind, Clock, KeyTable, Kind, Records, behind_server, system};
use crate::part::{count_places, octets, socket_key};
use crate::recent::{is_text, literal};
use crate::scopes::{is_same, names_host};
use crate::servers::{BOUNDS, Servers};
use crate::text::to_f64;
use crate::url_template::{MAX_TEMPLATE_BYTES, path_template};

/// Maximum length of a host name in a table, bytes.
pub(crate) const HOST_BYTES: usize = 128;

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

/// What `/metrics` has of the whole run and of nothing shorter.
#[derive(Debug, Default, Clone)]
pub struct HttpRun {
    pub(crate) servers: Servers,
    pub(crate) hosts: Hosts,
}

/// A figure of every host that is shown.
fn by_host(all: &Records<HttpKind>, out: &mut Samples<'_>, count: fn(&HostCounts) -> u64) {
    let hosts = all.series.hosts.sorted().into_iter();
    out.by(hosts.map(|(name, counts)| (name, count(&counts))));
}

/// What is behind a URL template; the expression says less exactly what an identifier is.
fn behind_url(key: &str) -> Behind {
    let (host, path) = key.split_at(key.find(['/', '*']).unwrap_or(key.len()));
    let mut pattern = literal(path);
    for (folded, any) in [
        (r"/\{rest\}", "/.*"),
        (r"\{n\}", "[^/?#;]+"),
        (r"\{id\}", "[^/?#;]+"),
    ] {
        pattern = pattern.replace(folded, any);
    }
    let host = if host.is_empty() {
        "not host".to_owned()
    } else {
        is_text("host", host)
    };
    Behind {
        condition: format!(
            "{host} and uri ~ \"^([a-z]+://[^/]*)?{pattern}([;?#].*)?$\" and state != orphan"
        ),
        scope: Scope::Url(key.to_owned()),
    }
}

impl Kind for HttpKind {
    const SUBJECT: &'static str = "http";
    const HAS_RECORDS: bool = true;
    const TABLES: &'static [KeyTable] = &[
        KeyTable::of_names("hosts", HOST_BYTES),
        KeyTable::of_addresses("servers"),
        KeyTable::of_names("urls", MAX_TEMPLATE_BYTES),
        KeyTable::of_addresses("clients"),
        KeyTable::of_countries("client_countries"),
        KeyTable::of_countries("server_countries"),
        KeyTable::of_systems("client_asns"),
        KeyTable::of_systems("server_asns"),
    ];
    const METRICS: &'static [Family<Records<Self>>] = FAMILIES;
    const STATS: &'static [&'static str] =
        &["min", "mean", "p50", "p90", "p95", "p99", "p999", "max"];
    type Figures = HttpFigures;
    type Counts = HttpCounts;
    type Keyed = HttpKeyed;
    type Series = HttpRun;
    type Scratch = HttpScratch;
    type By = By;
    type Sort = Sort;
    type Of = HttpOf;
    type Row = TopRow;
    type Status = ();
    type Event = ();

    fn series(options: &LiveOptions) -> HttpRun {
        HttpRun {
            hosts: Hosts::new(options.metrics_hosts),
            ..HttpRun::default()
        }
    }

    fn time(view: &HttpTransaction<'_>, clock: Clock) -> u64 {
        // What has no response is known to have none only now.
        match view.row.response_ts_ns {
            Some(time) if view.row.state != HttpState::Unanswered => time,
            _ => clock.records_to.max(clock.ticks_to),
        }
    }

    fn prepare(view: &HttpTransaction<'_>, series: &mut HttpRun, scratch: &mut HttpScratch) {
        let row = view.row;
        if let (Some(nanos), Some(code)) = (response_time(row), row.status_code) {
            let servers = &mut series.servers;
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
            series.hosts.record(&scratch.host, row);
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
        counts.versions.record(row.version_name().as_bytes());
        if let Some(status) = view.web().and_then(|web| web.grpc?.status) {
            counts.grpc_statuses.record(status.to_string().as_bytes());
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
            Scope::Name(_) | Scope::Application(_) | Scope::Where { .. } => false,
        }
    }

    fn behind(by: By, key: &str) -> Option<Behind> {
        let condition = match by {
            By::Host if key.is_empty() => "not host".to_owned(),
            By::Host => is_text("host", key),
            By::Url => return Some(behind_url(key)),
            By::Server => behind_server(key, "server_ip", "server_port")?,
            By::Client => format!("client_ip = {}", key.parse::<IpAddr>().ok()?),
            By::ClientCountry => is_text("client_country", key),
            By::ServerCountry => is_text("server_country", key),
            By::ClientAsn => format!("client_asn = {}", system(key)?),
            By::ServerAsn => format!("server_asn = {}", system(key)?),
        };
        // Orphans are in no table.
        Some(Behind {
            condition: format!("{condition} and state != orphan"),
            scope: Scope::Run,
        })
    }

    fn behind_rule(rule: &Rule) -> Option<Behind> {
        let scope = match &rule.scope {
            Scope::Run => None,
            Scope::Host(host) => {
                let port = if host.contains(':') { "" } else { "(:[0-9]+)?" };
                Some(format!("host ~ \"^{}{port}$\"", literal(host)))
            }
            Scope::Url(url) => Some(behind_url(url).condition),
            Scope::Client(address) => Some(format!("client_ip = {address}")),
            Scope::Server(address, None) => Some(format!("server_ip = {address}")),
            Scope::Server(address, Some(port)) => {
                Some(format!("server_ip = {address} and server_port = {port}"))
            }
            Scope::Where { condition, .. } => Some(format!("({condition})")),
            Scope::Name(_) | Scope::Application(_) => return None,
        };
        let metric = match &rule.metric {
            Metric::Share(name) if name == "4xx" => "status_code >= 400 and status_code < 500",
            Metric::Share(name) if name == "5xx" => "status_code >= 500",
            Metric::Share(name) if name == "unanswered" => "state = unanswered",
            Metric::Of(..) => "response_time",
            Metric::Rate(_) | Metric::Share(_) => "state",
            Metric::Drops | Metric::TableFill | Metric::Active => return None,
        };
        let both: Vec<_> = scope.into_iter().chain([metric.to_owned()]).collect();
        Some(Behind {
            condition: both.join(" and "),
            scope: rule.scope.clone(),
        })
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
        let [hosts, servers, urls, clients, places @ ..] = tables else {
            return;
        };
        let time = response_time(row);
        let mut client = clients.record(&octets(row.client_ip));
        if let (Some(client), Some(web)) = (&mut client, view.web()) {
            let ja4 = web.ja4.as_ref().map_or(&[][..], |ja4| ja4);
            client.about.note(web.places.first().copied(), ja4);
        }
        for keyed in [
            hosts.record(&scratch.host),
            urls.record(&scratch.url),
            servers.record(&socket_key(row.server_ip, row.server_port)),
            client,
        ]
        .into_iter()
        .flatten()
        {
            count_keyed(keyed, row, time);
        }
        count_places(view.places(), places, 1, |keyed| {
            count_keyed(keyed, row, time);
        });
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

families! {
    pub(crate) FAMILIES: Records<HttpKind>;
    counter "linkweir_http_transactions_total" ["state"] "Transactions whose outcome is known, by state."
        => |all, out| {
            let totals = &all.totals;
            out.by([
                ("complete", totals.complete),
                ("unanswered", totals.unanswered),
                ("orphan", totals.orphans),
            ]);
        };
    counter "linkweir_http_requests_total" ["method"] "Requests, by method."
        => |all, out| out.by(&all.totals.methods);
    counter "linkweir_http_responses_total" ["code"] "Final responses, by status code."
        => |all, out| {
            let codes = all.totals.codes.iter();
            out.by(codes.map(|(code, count)| (code.to_string(), count)));
        };
    counter "linkweir_http_version_transactions_total" ["version"] "Transactions whose outcome is known, by version of HTTP."
        => |all, out| out.by(&all.totals.versions);
    counter "linkweir_grpc_calls_total" ["status"] "Calls of gRPC whose status is known, by its number."
        => |all, out| out.by(&all.totals.grpc_statuses);
    counter "linkweir_http_retransmissions_total" [] "Retransmitted heads of requests and responses."
        => |all, out| out.one(all.totals.retransmissions);
    counter "linkweir_late_records_total" [] "Records that were counted in a later interval than their own."
        => |all, out| out.one(all.totals.late_records);
    gauge "linkweir_http_response_time_percentile_seconds" ["percentile"] "Response time that a share of all transactions of the run did not exceed, within 0.1 percent."
        => |all, out| {
            if let Some(times) = all.totals.response_time_ns {
                let percentiles = [
                    ("50", times.p50),
                    ("90", times.p90),
                    ("95", times.p95),
                    ("99", times.p99),
                    ("99.9", times.p999),
                ];
                out.by(percentiles.map(|(q, nanos)| (q, to_f64(nanos) / 1e9)));
            }
        };
    histogram "linkweir_http_response_time_seconds" ["server", "code"] "Time from the first packet of a request to the first packet of its response, by server and status code."
        => |all, out| {
            for (server, codes) in all.series.servers.sorted() {
                let server = server.map_or_else(|| "other".to_owned(), |server| server.to_string());
                for (code, times) in codes.sorted() {
                    let code = match code {
                        0 => "other".to_owned(),
                        code => code.to_string(),
                    };
                    out.times(&[&server, &code], &BOUNDS, times);
                }
            }
        };
    counter "linkweir_http_host_requests_total" ["host"] "Requests, by host; of the busiest hosts (--metrics-hosts), since their series began."
        => |all, out| by_host(all, out, |host| host.requests);
    counter "linkweir_http_host_server_errors_total" ["host"] "Responses with a status code of 5xx, by host."
        => |all, out| by_host(all, out, |host| host.server_errors);
    counter "linkweir_http_host_unanswered_total" ["host"] "Requests without a response, by host."
        => |all, out| by_host(all, out, |host| host.unanswered);
    counter "linkweir_http_host_bytes_total" ["host"] "Bytes of requests and responses, by host."
        => |all, out| by_host(all, out, |host| host.bytes);
    summary "linkweir_http_host_response_time_seconds" ["host"] "Time from the first packet of a request to the first packet of its response, by host: sum and count."
        => |all, out| {
            for (name, host) in all.series.hosts.sorted() {
                out.summary(name, &[], host.time_ns, host.timed);
            }
        };
}
