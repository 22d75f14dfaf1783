//! The rows of the table.

use super::site::Busy;
use crate::bench::harness::{self, Target, find, row};
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
        least: 1.8,
    },
    Mode {
        title: "connections that are kept: requests per second",
        requests: 100,
        least: 1.1,
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

/// One run that counts: of a program with a schedule, the highest rate that was kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) reached: Reached,
    pub(super) busy: Busy,
    pub(super) memory: u64,
}

/// The runs of one program; of one that kept no rate in a round there is none.
pub(super) type Series = harness::Series<Tool, Run>;

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
    let rate = if mode.closes() {
        "connections/s"
    } else {
        "keep-alive requests/s"
    };
    let what = format!("{addresses} client addresses: {rate} at least {least} x wrk's");
    let ratio = wrk.map_or(f64::NAN, |wrk| {
        own.ratio(&[wrk], |run| run.reached.per_second)
    });
    let core = 100.0 * own.median(|run| run.busy.server);
    Target::new(
        what,
        format!("{ratio:.2} x, the server's core {core:.0} %"),
        ratio >= least,
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
    fn so_much_faster_than_wrk_whatever_the_server_does() {
        let [close, keep_alive] = &MODES;
        assert!(passed(close, 18.0, 0.2) && !passed(close, 17.9, 0.97));
        assert!(passed(keep_alive, 11.0, 0.2) && !passed(keep_alive, 10.9, 0.99));
    }

    #[test]
    fn without_wrk_nothing_is_reached() {
        let own = series("one", &[1e6], 1.0);
        assert!(!targets(&MODES[0], &[own])[0].is_reached);
    }
}
