//! A load generator in `/metrics`.
//!
//! Counters are of the whole run and never go back. The label `cause` has words of the program, `generator`
//! interfaces and addresses of workers.

use crate::exposition::{Samples, families};
use crate::kind::Records;
use crate::load::{GeneratorStatus, LoadRun, LoadState, LoadStatus};
use crate::servers::BOUNDS;

/// Upper bounds of the buckets of schedule lags, nanoseconds, and as Prometheus writes them in seconds: from what a
/// spinning thread keeps to what no schedule may have.
pub(super) const LAG_BOUNDS: [(u64, &str); 12] = [
    (1_000, "0.000001"),
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (1_000_000, "0.001"),
    (5_000_000, "0.005"),
    (25_000_000, "0.025"),
    (100_000_000, "0.1"),
    (1_000_000_000, "1"),
];

families! {
    pub(crate) FAMILIES: Records<LoadRun>;
    counter "linkweir_load_sessions_planned_total" [] "Sessions of the schedule whose time has come."
        => |all, out| out.one(all.totals.planned);
    counter "linkweir_load_sessions_started_total" [] "Sessions whose first SYN was sent."
        => |all, out| out.one(all.totals.started);
    counter "linkweir_load_sessions_completed_total" [] "Sessions that did all that their script says."
        => |all, out| out.one(all.totals.completed);
    counter "linkweir_load_sessions_failed_total" ["cause"] "Sessions that failed, by their first cause."
        => |all, out| out.by(&all.totals.causes);
    counter "linkweir_load_requests_total" [] "Requests that were sent."
        => |all, out| out.one(all.totals.requests);
    counter "linkweir_load_responses_total" ["code"] "Complete responses, by status code."
        => |all, out| out.by(all.totals.codes.iter().map(|(code, count)| (code.to_string(), count)));
    counter "linkweir_load_unanswered_requests_total" [] "Requests without a complete response."
        => |all, out| out.one(all.totals.unanswered);
    counter "linkweir_load_pages_total" [] "Pages that are complete, with all their objects."
        => |all, out| out.one(all.totals.pages);
    counter "linkweir_load_connections_total" [] "Handshakes that are complete."
        => |all, out| out.one(all.totals.connections);
    counter "linkweir_load_request_bytes_total" [] "Bytes of requests."
        => |all, out| out.one(all.totals.request_bytes);
    counter "linkweir_load_response_bytes_total" [] "Bytes of responses."
        => |all, out| out.one(all.totals.response_bytes);
    histogram "linkweir_load_response_time_seconds" [] "Time from when a request was wanted to the last byte of its response."
        => |all, out| out.times(&[], &BOUNDS, &all.series.response);
    histogram "linkweir_load_service_time_seconds" [] "Time from the first byte of a request to the last byte of its response."
        => |all, out| out.times(&[], &BOUNDS, &all.series.service);
    histogram "linkweir_load_connect_seconds" [] "Time from the first SYN to the SYN ACK."
        => |all, out| out.times(&[], &BOUNDS, &all.series.connect);
    histogram "linkweir_load_schedule_lag_seconds" [] "Time from when a session was wanted to its first SYN."
        => |all, out| out.times(&[], &LAG_BOUNDS, &all.series.lag);
}

fn by_generator(status: &LoadStatus, out: &mut Samples<'_>, count: fn(&GeneratorStatus) -> u64) {
    let all = status.generators.iter();
    out.by(all.map(|one| (&one.name, count(one))));
}

// What the run says of itself and of its generators.
families! {
    pub(crate) STATUS: LoadStatus;
    gauge "linkweir_load_info" ["role", "target", "arrivals"] "Role, target and arrival process; always 1."
        => |status, out| out.of(&[status.role, &status.target, &status.arrivals], 1);
    gauge "linkweir_load_open_sessions" [] "Sessions that are open."
        => |status, out| out.one(status.open);
    gauge "linkweir_load_open_sessions_peak" [] "The most sessions that were open at a time."
        => |status, out| out.one(status.peak_open);
    gauge "linkweir_load_generators" ["state"] "Generators, by where they stand."
        => |status, out| {
            out.by(LoadState::ALL.map(|state| {
                let all = status.generators.iter();
                (state.as_str(), all.filter(|one| one.state == state).count())
            }));
        };
    counter "linkweir_load_generator_sessions_total" ["generator"] "Sessions that started, by generator."
        => |status, out| by_generator(status, out, |one| one.started);
    counter "linkweir_load_generator_failed_total" ["generator"] "Sessions that failed, by generator."
        => |status, out| by_generator(status, out, |one| one.failed);
    counter "linkweir_load_generator_responses_total" ["generator"] "Complete responses, by generator."
        => |status, out| by_generator(status, out, |one| one.responses);
}
