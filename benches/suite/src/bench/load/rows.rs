//! The rows of the table.

use super::peers::{self, Loaded};
use super::rates::Series;
use super::site::Site;
use crate::bench::harness::{self, Target, find, row};
use anyhow::Result;
use linkweir_testkit::load::routed;

/// A row of the table.
pub(super) type Row = harness::Row<Tool>;

/// What loads the server for so many seconds.
#[derive(Debug)]
pub(super) enum Tool {
    /// Each connection asks again when it is answered.
    Closed(fn(&Site, &Mode, u32) -> Result<Loaded>),
    /// Connections on a schedule, at a rate of requests per second; nothing where that is not kept.
    Scheduled(fn(&Site, &Mode, u32, f64) -> Result<Option<Loaded>>),
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
    row("wrk", "wrk", Tool::Closed(peers::wrk)),
    row("ab", "ab", Tool::Closed(peers::ab)),
    row("httperf", "httperf", Tool::Scheduled(peers::httperf)),
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
    let is_excused = mode.closes() && super::rates::is_server_full(own) && ratio >= 1.0;
    let core = 100.0 * own.median(|run| run.busy.server);
    Target::new(
        what,
        format!("{ratio:.2} x, the server's core {core:.0} %"),
        ratio >= least || is_excused,
    )
}

#[cfg(test)]
mod tests {
    use super::super::rates::tests::series;
    use super::*;

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
