//! What happened in each second, as CSV (RFC 4180; lines end with LF as everywhere here).

use std::fmt::Write as _;

use linkweir_load::measure::Series;

use super::summary::seconds;

const HEAD: &str = "start_ns,second,bin_s,planned,started,completed,failed,open,requests,responses,\
                    response_bytes,response_time_avg_s,response_time_p50_s,response_time_p99_s,response_time_max_s\n";

/// A row for each bin. Counts are those of the bin; response times are those of requests that were
/// wanted in it, and empty where there is none.
pub(super) fn text(series: &Series) -> String {
    let mut out = HEAD.to_owned();
    let origin = series
        .bins()
        .next()
        .map_or(0, |(start, _)| start.as_nanos());
    for (start, bin) in series.bins() {
        let start = start.as_nanos();
        // Writing to a string cannot fail.
        let _unfailing = write!(
            out,
            "{start},{},{},{},{},{},{},{:.3},{},{},{}",
            seconds(start - origin),
            seconds(series.width_ns()),
            bin.planned,
            bin.started,
            bin.completed,
            bin.failed,
            series.open(bin),
            bin.requests,
            bin.responses,
            bin.response_bytes
        );
        for time in [
            bin.response_mean_ns(),
            bin.response.quantile(500),
            bin.response.quantile(990),
            bin.response.max(),
        ] {
            let _unfailing = match time {
                Some(nanos) => write!(out, ",{:.9}", seconds(nanos)),
                None => write!(out, ","),
            };
        }
        out.push('\n');
    }
    out
}
