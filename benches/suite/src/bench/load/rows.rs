//! The rows of the table.

use super::site::Busy;
use crate::bench::harness::{self, Runs, Target, find, row};
use linkweir_testkit::load::routed;

/// A row of the table.
pub(super) type Row = harness::Row<Tool>;

/// What loads the server.
#[derive(Debug)]
pub(super) enum Tool {
    /// Each connection asks again when it is answered.
    Wrk,
    /// The same.
    Ab,
    /// Connections on a schedule, at a rate of requests per second.
    Httperf,
    /// `linkweir load`: sessions on a schedule.
    Linkweir(Clients),
}

impl Tool {
    /// Client addresses.
    pub(super) const fn addresses(&self) -> u64 {
        match self {
            Self::Linkweir(clients) => clients.count(),
            _ => 1,
        }
    }
}

/// The addresses of the clients: so many bits of them are the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clients(u32);

impl Clients {
    pub(super) const MILLION: Self = Self(12);

    /// Their addresses.
    pub(super) fn cidr(self) -> String {
        let million = routed(0);
        let base = million.split('/').next().unwrap_or_default();
        format!("{base}/{}", self.0)
    }

    const fn count(self) -> u64 {
        1 << (32 - self.0)
    }
}

/// All of them, in the order of the table.
pub(super) static ROWS: [Row; 6] = [
    row("wrk", "wrk", Tool::Wrk),
    row("ab", "ab", Tool::Ab),
    row("httperf", "httperf", Tool::Httperf),
    row("one", "linkweir load", Tool::Linkweir(Clients(32))),
    row("thousand", "linkweir load", Tool::Linkweir(Clients(22))),
    row("million", "linkweir load", Tool::Linkweir(Clients::MILLION)),
];

/// Whether a connection is used again.
#[derive(Debug, PartialEq)]
pub(super) struct Mode {
    pub(super) title: &'static str,
    /// Requests of a connection where the number is given.
    pub(super) requests: u32,
    /// The target of our rows, in the rate of wrk.
    least: f64,
}

impl Mode {
    /// One connection per request.
    pub(super) const fn closes(&self) -> bool {
        self.requests == 1
    }
}

/// One connection per request, and many requests per connection.
pub(super) static MODES: [Mode; 2] = [
    Mode {
        title: "a new connection for each request: connections per second",
        requests: 1,
        least: 1.6,
    },
    Mode {
        title: "connections that are kept: requests per second",
        requests: 100,
        least: 1.0,
    },
];

/// What a program reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reached {
    /// Requests per second; where each has its connection, those too.
    pub(super) per_second: f64,
    /// Median response time in microseconds, where it is reported.
    pub(super) p50_us: Option<f64>,
    /// 99th percentile.
    pub(super) p99_us: Option<f64>,
}

/// A core with less idle time than this is full,
const FULL: f64 = 0.95;
/// and it is full of the server where nginx itself has this part of it; the rest are interrupts.
const FULL_OF_NGINX: f64 = 0.8;

/// One run that counts: of a program with a schedule, the highest rate that was kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) reached: Reached,
    pub(super) busy: Busy,
    pub(super) memory: u64,
}

/// The runs of one program; of one that kept no rate in a round there is none.
pub(super) type Series = harness::Series<Tool, Run>;

/// Whether the server's core was full in the middle run.
pub(super) fn is_server_full(runs: &Runs<Run>) -> bool {
    runs.median(|run| run.busy.server) >= FULL
        && runs.median(|run| run.busy.process) >= FULL_OF_NGINX
}

/// The targets of our rows in a table.
pub(super) fn targets(mode: &Mode, all: &[Series]) -> Vec<Target> {
    let wrk = find(all, "wrk");
    let ours = all
        .iter()
        .filter(|series| matches!(series.row.how, Tool::Linkweir(_)));
    ours.map(|own| target(mode, own, wrk)).collect()
}

fn target(mode: &Mode, own: &Series, wrk: Option<&Series>) -> Target {
    let (addresses, least) = (own.row.how.addresses(), mode.least);
    let what = if mode.closes() {
        format!(
            "{addresses} client addresses: connections/s at least {least} x wrk's, or the server's core full"
        )
    } else {
        format!("{addresses} client addresses: keep-alive requests/s at least wrk's")
    };
    let ratio = wrk.map_or(f64::NAN, |wrk| {
        own.ratio(&[wrk], |run| run.reached.per_second)
    });
    let is_excused = mode.closes() && is_server_full(own) && ratio >= 1.0;
    let core = 100.0 * own.median(|run| run.busy.server);
    Target::new(
        what,
        format!("{ratio:.2} x, the server's core {core:.0} %"),
        ratio >= least || is_excused,
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row with these rates and this use of the server's core.
    pub(crate) fn series(word: &str, rates: &[f64], server: f64) -> Series {
        let run = |per_second: &f64| Run {
            reached: Reached {
                per_second: *per_second,
                p50_us: None,
                p99_us: None,
            },
            busy: Busy {
                server,
                process: server,
                ..Busy::default()
            },
            memory: 0,
        };
        Series {
            row: ROWS.iter().find(|row| row.word == word).unwrap(),
            runs: rates.iter().map(run).map(Some).collect(),
        }
    }

    #[test]
    fn a_server_is_full_in_the_middle_run() {
        let wrk = series("wrk", &[10.0, 20.0, 10.0], 0.5);
        let ab = series("ab", &[20.0, 20.0, 15.0], 0.96);
        assert!(is_server_full(&ab) && !is_server_full(&wrk));
        let none: Runs<Run> = [None].into_iter().collect();
        assert!(!is_server_full(&none));
    }

    #[test]
    fn so_many_addresses_as_the_table_says() {
        let counts: Vec<u64> = ROWS.iter().map(|row| row.how.addresses()).collect();
        assert_eq!(counts, [1, 1, 1, 1, 1 << 10, 1 << 20]);
        assert_eq!(Clients::MILLION.cidr(), routed(0));
        assert!(Clients(22).cidr().ends_with("/22"));
    }

    fn passed(mode: &Mode, rate: f64, server: f64) -> bool {
        let all = [series("wrk", &[10.0], 0.5), series("one", &[rate], server)];
        let targets = targets(mode, &all);
        assert_eq!(targets.len(), 1);
        targets[0].is_reached
    }

    #[test]
    fn faster_or_a_full_server() {
        let [close, keep_alive] = &MODES;
        assert!(passed(close, 16.0, 0.2) && !passed(close, 15.9, 0.2));
        assert!(passed(close, 12.0, 0.97));
        // A full core excuses nobody who is slower than wrk.
        assert!(!passed(close, 9.0, 0.97));
        assert!(passed(keep_alive, 10.0, 0.2) && !passed(keep_alive, 9.9, 0.99));
    }

    #[test]
    fn without_wrk_nothing_is_reached() {
        let own = series("one", &[1e6], 1.0);
        assert!(!targets(&MODES[0], &[own])[0].is_reached);
    }
}
