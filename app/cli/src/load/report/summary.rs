//! The figures as JSON.

use linkweir_load::measure::{Failures, Figures, Group, Times};
use serde_json::{Map, Value, json};

use super::{Report, arrival_check, stages};

/// The key `load` of the summary.
pub(super) fn load(report: Report<'_>) -> Value {
    let Report {
        figures, verdict, ..
    } = report;
    let lag = &figures.stages.lag;
    let micros = |nanos: Option<u64>| nanos.map(|nanos| seconds(nanos) * 1e6);
    let mut load = Map::new();
    let entries = [
        ("planned", figures.planned.into()),
        ("started", figures.started.into()),
        ("completed", figures.completed.into()),
        ("failed", causes(&figures.failed)),
        ("response_time_s", times(&figures.stages.response)),
        ("rate_per_s", figures.rate_per_s().into()),
        (
            "schedule_lag_us",
            json!({
                "p50": micros(lag.quantile(0.5)),
                "p99": micros(lag.quantile(0.99)),
                "max": micros(lag.histogram().max()),
            }),
        ),
        ("valid", verdict.is_valid().into()),
        ("invalid", verdict.reasons().into()),
        ("requests", figures.requests.into()),
        ("responses", figures.responses.into()),
        ("failed_requests", causes(&figures.failed_requests)),
        ("pages", figures.pages.into()),
        ("connections", figures.connections.into()),
        ("request_bytes", figures.request_bytes.into()),
        ("response_bytes", figures.response_bytes.into()),
        ("status_codes", status_codes(figures)),
        ("status_classes", status_classes(figures)),
        ("times_s", stage_times(figures)),
        ("peak_open", figures.open.peak().into()),
        ("little", little(figures)),
        ("arrivals", arrivals(report)),
        ("tcp", json!(figures.tcp)),
        ("generator", json!(figures.generator)),
        ("groups", figures.groups.iter().map(group).collect()),
    ];
    load.extend(entries.map(|(key, value)| (key.to_owned(), value)));
    Value::Object(load)
}

/// What happened in each bin.
pub(super) fn series(figures: &Figures) -> Value {
    let series = &figures.series;
    let bins: Vec<Value> = series
        .bins()
        .map(|(start, bin)| {
            let at = |per_mille| bin.response.quantile(per_mille).map(seconds);
            json!({
                "start_ns": start.as_nanos(),
                "planned": bin.planned,
                "started": bin.started,
                "completed": bin.completed,
                "failed": bin.failed,
                "open": series.open(bin),
                "requests": bin.requests,
                "responses": bin.responses,
                "response_bytes": bin.response_bytes,
                "response_time_s": {
                    "avg": bin.response_mean_ns().map(seconds),
                    "p50": at(500),
                    "p99": at(990),
                    "max": bin.response.max().map(seconds),
                },
            })
        })
        .collect();
    json!({ "bin_s": seconds(series.width_ns()), "bins": bins })
}

/// The paper's row, and percentiles; seconds.
fn times(times: &Times) -> Value {
    let histogram = times.histogram();
    let at = |q| times.quantile(q).map(seconds);
    json!({
        "count": times.count(),
        "min": histogram.min().map(seconds),
        "max": histogram.max().map(seconds),
        "avg": times.mean_ns().map(|nanos| nanos / 1e9),
        "stdev": times.stdev_ns().map(|nanos| nanos / 1e9),
        "median": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "p999": at(0.999),
    })
}

fn stage_times(figures: &Figures) -> Value {
    stages(&figures.stages)
        .map(|stage| (stage.key.to_owned(), times(stage.times)))
        .collect()
}

/// Every cause, also with zero.
fn causes(failures: &Failures) -> Value {
    failures
        .iter()
        .map(|(cause, count)| (cause.as_str().to_owned(), Value::from(count)))
        .collect()
}

fn status_codes(figures: &Figures) -> Value {
    let codes = figures.statuses.iter();
    codes
        .map(|(code, count)| (code.to_string(), Value::from(count)))
        .collect()
}

fn status_classes(figures: &Figures) -> Value {
    ["1xx", "2xx", "3xx", "4xx", "5xx"]
        .into_iter()
        .zip(figures.statuses.classes())
        .map(|(class, count)| (class.to_owned(), Value::from(count)))
        .collect()
}

fn little(figures: &Figures) -> Value {
    figures.open.little().map_or(Value::Null, |little| {
        json!({
            "mean_open": little.mean_open,
            "rate_per_s": little.rate_per_s,
            "mean_s": little.mean_s,
            "error": little.error,
        })
    })
}

fn arrivals(report: Report<'_>) -> Value {
    let check = arrival_check(report.figures);
    json!({
        "bin_s": check.bin_s,
        "bins": check.bins,
        "asked_per_s": report.rates.map(|rates| rates.asked_per_s),
        "drawn_per_s": report.rates.map(|rates| rates.drawn_per_s),
        "planned_mean": check.planned_mean,
        "started_mean": check.started_mean,
        "total_variation": check.distance,
        "lags": check.lags,
        "inequality_coefficient": check.agreement.map(|agreement| agreement.ic),
        "theil": check.agreement.map(|agreement| agreement.theil),
        "autocovariance": check.autocovariance,
    })
}

fn group(group: &Group) -> Value {
    json!({
        "name": group.name,
        "started": group.started,
        "completed": group.completed,
        "failed": group.failed,
        "requests": group.requests,
        "responses": group.responses,
        "response_bytes": group.response_bytes,
        "response_time_s": times(&group.response),
        "connect_s": times(&group.connect),
    })
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of at most months")]
pub(super) const fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
