//! Response times of the same requests as the client, the wire and the flow saw them.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::curves::{quantile, response_times};
use crate::error::LabError;
use crate::program::{self, Flow, Session, Transaction};
use crate::report::{Axis, Curve, Picture, Report, Rule, Table, Unit};
use crate::testbed::Testbed;

/// Whoever is further away waits longer; but the clocks of two readers of the same frames may differ by
/// this, and the middle one of all waits must not be farther apart than [`APART_S`].
const CLOCKS_S: f64 = 50e-6;
/// What the middle ones may be apart: two ways through a veth pair and the gateway.
pub(super) const APART_S: f64 = 5e-3;
/// What was seen of the first request of a connection, seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    client: Option<f64>,
    wire: Option<f64>,
    flow: Option<f64>,
}

/// Address and port of a client.
type Socket = (IpAddr, u16);

/// What the records have.
#[derive(Debug, Default)]
struct Read {
    /// By the socket of the first request.
    times: HashMap<Socket, Times>,
    /// When sessions started, nanoseconds since the epoch.
    starts: Vec<u64>,
}

/// Adds what the records say: rows and curves. `apart` is for the middle ones.
pub(super) fn compare(
    testbed: &Testbed<'_>,
    report: &mut Report,
    apart: Rule,
) -> Result<(), LabError> {
    let read = Read::from(testbed)?;
    let complete = |times: &&Times| times.client.and(times.wire).and(times.flow).is_some();
    let joined: Vec<&Times> = read.times.values().filter(complete).collect();
    let part = |pick: fn(&Times) -> Option<f64>| {
        let mut values: Vec<f64> = joined.iter().filter_map(|times| pick(times)).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let parts = [
        part(|times| times.client),
        part(|times| times.wire),
        part(|times| times.flow),
    ];
    report
        .tables
        .push(table(read.times.len(), joined.len(), &parts, apart));
    report.pictures.push(ccdf(&parts));
    report.pictures.push(arrivals(&read.starts));
    Ok(())
}

impl Read {
    fn from(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let mut read = Self::default();
        program::each(&testbed.path("load.jsonl"), |one: Session| {
            read.starts.extend(one.started_ts_ns);
            if let (Some(port), Some(wait)) = (one.client_port, one.first_byte_ns) {
                let times = read.times.entry((one.client_ip, port)).or_default();
                times.client = Some(from_nanos(wait));
            }
        })?;
        // The first request of each connection.
        let mut first: HashMap<Socket, u64> = HashMap::new();
        program::each(&testbed.path("http.jsonl"), |one: Transaction| {
            let socket = (one.client_ip, one.client_port);
            let (Some(times), Some(at), Some(wait)) = (
                read.times.get_mut(&socket),
                one.request_ts_ns,
                one.response_time_ns,
            ) else {
                return;
            };
            let earliest = first.entry(socket).or_insert(u64::MAX);
            if at < *earliest {
                *earliest = at;
                times.wire = Some(from_nanos(wait));
            }
        })?;
        program::each(&testbed.path("flows.jsonl"), |flow: Flow| {
            let socket = (flow.c_ip, flow.c_port);
            if let (Some(times), Some(asked), Some(answered)) =
                (read.times.get_mut(&socket), flow.c_first, flow.s_first)
            {
                times.flow = Some((answered - asked) / 1e3);
            }
        })?;
        Ok(read)
    }
}

fn table(sessions: usize, joined: usize, parts: &[Vec<f64>; 3], apart: Rule) -> Table {
    let mut table = Table::new(
        "first response of a session",
        &["client", "wire (http)", "flow (flows)"],
    );
    let count = |n: usize| u64::try_from(n).ok();
    table.count(
        "sessions with a record of each",
        Rule::Same,
        &[count(sessions), count(joined), count(joined)],
    );
    for (name, part) in [("median", 0.5), ("99 %", 0.99), ("longest", 1.0)] {
        let cells = parts.each_ref().map(|values| quantile(values, part));
        let rule = if part == 0.5 {
            Rule::Falling(CLOCKS_S)
        } else {
            Rule::Shown
        };
        table.row(name, Unit::Seconds, rule, &cells);
        if part == 0.5 {
            table.row("  apart", Unit::Seconds, apart, &cells);
        }
    }
    table
}

fn ccdf(parts: &[Vec<f64>; 3]) -> Picture {
    let names = ["client", "wire", "flow"];
    let observers = names.into_iter().zip(parts.iter().cloned()).collect();
    let title = "Response time of the first request, by who saw it";
    response_times(title.to_owned(), observers)
}

fn arrivals(starts: &[u64]) -> Picture {
    const BIN_NS: u64 = 100_000_000;
    let begin = starts.iter().min().copied().unwrap_or(0);
    let mut bins: Vec<(f64, f64)> = Vec::new();
    for start in starts {
        let Ok(bin) = usize::try_from((start - begin) / BIN_NS) else {
            continue;
        };
        while bins.len() <= bin {
            bins.push((bins.len() as f64 * 0.1, 0.0));
        }
        if let Some((_, rate)) = bins.get_mut(bin) {
            *rate += 10.0;
        }
    }
    Picture {
        title: "Sessions started, by tenths of a second".to_owned(),
        x: Axis {
            name: "time".to_owned(),
            unit: Unit::Seconds,
            is_logarithmic: false,
        },
        y: Axis {
            name: "sessions".to_owned(),
            unit: Unit::PerSecond,
            is_logarithmic: false,
        },
        curves: vec![Curve {
            name: "started".to_owned(),
            points: bins,
        }],
    }
}

fn from_nanos(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_counted_in_their_bins() {
        let picture = arrivals(&[5, 6, 250_000_005]);
        let points = &picture.curves[0].points;
        assert_eq!(*points, [(0.0, 20.0), (0.1, 0.0), (0.2, 10.0)]);
    }
}
