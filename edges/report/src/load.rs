//! What the page of a load run shows: plain numbers and histograms, whoever measured them.

use linkweir_sketch::LogLinear;

/// A load run.
#[derive(Debug, Clone, Default)]
pub struct LoadReport<'a> {
    /// The heading.
    pub title: String,
    /// What was run, on what: name and value, such as seed, arrivals, script, interface, kernel.
    pub run: Vec<(String, String)>,
    /// Why the run is invalid; empty where it is not.
    pub invalid: Vec<String>,
    /// Sessions of the schedule.
    pub planned: u64,
    /// Sessions that started.
    pub started: u64,
    /// Sessions that completed.
    pub completed: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Complete responses.
    pub responses: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// Requests per second.
    pub rate_per_s: Option<f64>,
    /// Most open sessions.
    pub peak_open: u64,
    /// Times, the response time first.
    pub stages: Vec<StageTimes<'a>>,
    /// Width of a bin of `series`, nanoseconds.
    pub bin_ns: u64,
    /// What happened over time.
    pub series: Vec<SeriesBin>,
    /// Complete responses by status code.
    pub statuses: Vec<(u16, u64)>,
    /// Sessions that failed, by cause.
    pub failures: Vec<(String, u64)>,
    /// Requests without a complete response, by cause.
    pub failed_requests: Vec<(String, u64)>,
    /// What TCP met with, by name.
    pub tcp: Vec<(String, u64)>,
    /// Checks of the run itself, each with what came out: lag, Little's law, arrivals.
    pub checks: Vec<(String, String)>,
    /// Groups of clients.
    pub groups: Vec<GroupTimes<'a>>,
    /// Name and version of the program.
    pub program: String,
}

/// Times of one kind.
#[derive(Debug, Clone, Copy)]
pub struct StageTimes<'a> {
    /// What is timed.
    pub name: &'a str,
    /// From where to where.
    pub meaning: &'a str,
    /// Nanoseconds.
    pub times: &'a LogLinear,
    /// Mean, nanoseconds.
    pub mean_ns: Option<f64>,
    /// Standard deviation, nanoseconds.
    pub stdev_ns: Option<f64>,
}

/// What happened in one bin.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeriesBin {
    /// Its start, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Sessions that the schedule wanted.
    pub planned: u64,
    /// Sessions that started.
    pub started: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Responses that were completed.
    pub responses: u64,
    /// Open sessions on average.
    pub open: f64,
    /// Mean response time of requests wanted then, nanoseconds.
    pub mean_ns: Option<u64>,
    /// Their 99th percentile, within an eighth.
    pub p99_ns: Option<u64>,
    /// Their maximum.
    pub max_ns: Option<u64>,
}

/// A group of clients.
#[derive(Debug, Clone, Copy)]
pub struct GroupTimes<'a> {
    /// Its name.
    pub name: &'a str,
    /// Sessions that started.
    pub started: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// Response times, nanoseconds.
    pub response: &'a LogLinear,
    /// Handshakes, nanoseconds.
    pub connect: &'a LogLinear,
}
