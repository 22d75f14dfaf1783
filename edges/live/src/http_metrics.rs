//! HTTP transactions in `/metrics`.

use linkweir_record::HttpKind;

use crate::metrics::{Records, families};
use crate::servers::BOUNDS;
use crate::text::to_f64;

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
            for (server, codes) in all.series.sorted() {
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
}
