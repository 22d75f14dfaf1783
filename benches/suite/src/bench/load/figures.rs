//! Response times over the run: Figs. 7 to 10 of the paper.

use anyhow::{Context as _, Result};
use linkweir_report::plot::{Axis, Marks, Plot, Row, Scale, Series, Sheet, Unit};
use serde_json::Value;

/// Points of a curve.
const POINTS: usize = 200;

/// A session: when it was wanted, and its times, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Session {
    at: f64,
    issued: f64,
    wanted: f64,
}

/// The picture of a run from its records (`load_session`, JSON lines): of the first request of each session the longest
/// and the median time in each two-hundredth of the run.
pub(super) fn draw(title: &str, records: &str) -> Result<String> {
    let sessions = sessions(records)?;
    let (longest, middle) = (
        |all: &[f64]| all.last().copied(),
        |all: &[f64]| all.get(all.len() / 2).copied(),
    );
    let curve = |name: &str, of: fn(&Session) -> f64, which: fn(&[f64]) -> Option<f64>| Series {
        name: name.to_owned(),
        marks: Marks::Line,
        points: points(&sessions, of, which),
    };
    let sheet = Sheet {
        title: title.to_owned(),
        subtitle: "time to the last byte of the response; from when the schedule wanted the request, and from when it was issued".to_owned(),
        rows: vec![Row {
            height: 360.0,
            plots: vec![Plot {
                title: title.to_owned(),
                x: Axis::new("time of the run", Scale::Linear, Unit::Seconds),
                y: Axis::new("response time", Scale::Log, Unit::Seconds),
                series: vec![
                    curve("longest, wanted", |one| one.wanted, longest),
                    curve("longest, issued", |one| one.issued, longest),
                    curve("median, wanted", |one| one.wanted, middle),
                    curve("median, issued", |one| one.issued, middle),
                ],
                guides: Vec::new(),
            }],
        }],
    };
    Ok(sheet.svg())
}

fn sessions(records: &str) -> Result<Vec<Session>> {
    let mut all = Vec::new();
    let mut first = None;
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).context("a record")?;
        let nanos = |name: &str| record.get(name).and_then(Value::as_u64);
        let Some(at_ns) = nanos("planned_ts_ns") else {
            continue;
        };
        // A session without a response has none of the times.
        let Some((issued, wanted)) = nanos("service_time_ns").zip(nanos("response_time_ns")) else {
            continue;
        };
        all.push((at_ns, issued, wanted));
        first = Some(first.map_or(at_ns, |first: u64| first.min(at_ns)));
    }
    let first = first.context("no session with a response in the records")?;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let sessions = all.into_iter().map(|(at_ns, issued, wanted)| Session {
        at: seconds(at_ns - first),
        issued: seconds(issued),
        wanted: seconds(wanted),
    });
    Ok(sessions.collect())
}

fn points(
    sessions: &[Session],
    of: fn(&Session) -> f64,
    which: fn(&[f64]) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let end = sessions.iter().map(|one| one.at).fold(0.0, f64::max);
    let width = end / POINTS as f64;
    let mut parts = vec![Vec::new(); POINTS];
    for one in sessions {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times of a run are not negative; without any, no width is 0"
        )]
        let place = (one.at / width.max(f64::MIN_POSITIVE)) as usize;
        if let Some(part) = parts.get_mut(place.min(POINTS - 1)) {
            part.push(of(one));
        }
    }
    let points = parts
        .into_iter()
        .enumerate()
        .filter_map(|(place, mut part)| {
            part.sort_by(f64::total_cmp);
            Some(((place as f64 + 0.5) * width, which(&part)?))
        });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at_ms: u64, issued_ms: u64, wanted_ms: u64) -> String {
        format!(
            "{{\"planned_ts_ns\":{},\"service_time_ns\":{},\"response_time_ns\":{}}}\n",
            at_ms * 1_000_000,
            issued_ms * 1_000_000,
            wanted_ms * 1_000_000
        )
    }

    #[test]
    fn the_longest_and_the_median_of_each_part() {
        let mut records: String = (0..=1000)
            .map(|at| record(5_000 + at, 10, 20 + at % 5))
            .collect();
        records += "{\"planned_ts_ns\":7,\"service_time_ns\":null,\"response_time_ns\":null}\n";
        let sessions = sessions(&records).unwrap();
        assert_eq!(sessions.len(), 1001);
        assert_eq!(sessions[3].at, 0.003);
        let longest = points(&sessions, |one| one.wanted, |all| all.last().copied());
        assert_eq!(longest.len(), POINTS);
        assert!(longest.iter().all(|(_, time)| (time - 0.024).abs() < 1e-9));
        let svg = draw("Fig. 7", &records).unwrap();
        assert!(svg.contains("Fig. 7") && svg.contains("longest, issued") && !svg.contains("NaN"));
        assert!(draw("none", "").is_err());
    }
}
