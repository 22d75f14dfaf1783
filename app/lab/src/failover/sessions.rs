//! What became of sessions, and when.

use super::outage::{Outage, seconds};
use super::part::Part;
use super::records::Session;
use crate::program::Ended;
use crate::report::{Axis, Curve, Picture, Report, Rule, Table, Unit};

/// Width of a bin of the curves, nanoseconds.
const BIN: u64 = 200_000_000;

/// Planned sessions end once each, by cause.
pub(super) fn outcomes(table: &mut Table, part: Part, loads: &[&Ended]) {
    let sum = |way: &str| loads.iter().map(|load| load.count(way)).sum::<u64>();
    let failed: u64 = loads.iter().map(|load| load.sum("load/failed")).sum();
    let ended = sum("load/completed") + failed;
    table.count(
        &format!("{}: sessions", part.name),
        Rule::Same,
        &[Some(sum("load/planned")), Some(ended), None, None],
    );
    table.count(
        &format!("{}: completed, failed", part.name),
        Rule::Shown,
        &[None, None, Some(sum("load/completed")), Some(failed)],
    );
    for cause in causes(loads) {
        table.count(
            &format!("{}: failed by {cause}", part.name),
            Rule::Shown,
            &[None, None, None, Some(sum(&format!("load/failed/{cause}")))],
        );
    }
}

/// Causes that occurred.
fn causes(loads: &[&Ended]) -> Vec<String> {
    let mut found = Vec::new();
    for load in loads {
        let causes = load.summary.pointer("/load/failed");
        let causes = causes.and_then(serde_json::Value::as_object);
        let occurred = causes.into_iter().flatten();
        found.extend(
            occurred
                .filter(|(_, count)| count.as_u64() != Some(0))
                .map(|(cause, _)| cause.clone()),
        );
    }
    found.sort();
    found.dedup();
    found
}

/// How long it was away, and when sessions went on, of those that `is_hit` says depend on it.
pub(super) fn facts(
    report: &mut Report,
    part: Part,
    outage: &Outage,
    sessions: &[Session],
    is_hit: impl Fn(&Session) -> bool,
) {
    let complete = sessions
        .iter()
        .filter(|one| one.is_complete() && is_hit(one));
    let back = complete
        .filter(|one| one.planned_ts_ns >= outage.started)
        .map(|one| one.ended_ts_ns)
        .min();
    let after =
        |timestamp: u64| format!("{:.3} s", seconds(timestamp.saturating_sub(outage.started)));
    report.fact(
        part.name,
        format!(
            "dead for {:.3} s; served {} after it was started again; the first session begun then was complete {}",
            outage.dead_s(),
            after(outage.serving),
            back.map_or_else(|| "never".to_owned(), |timestamp| format!("after {}", after(timestamp)))
        ),
    );
}

/// Sessions completed and failed over time.
pub(super) fn picture(part: Part, outage: &Outage, sessions: &[Session]) -> Option<Picture> {
    let begin = sessions.iter().map(|one| one.planned_ts_ns).min()?;
    let last = sessions.iter().map(|one| one.ended_ts_ns).max()?;
    let bins = last.saturating_sub(begin) / BIN + 1;
    let curve = |name: &str, is_complete: bool| {
        let mut counts = vec![0.0; usize::try_from(bins).unwrap_or(0)];
        for one in sessions
            .iter()
            .filter(|one| one.is_complete() == is_complete)
        {
            let bin = usize::try_from(one.ended_ts_ns.saturating_sub(begin) / BIN);
            if let Some(count) = bin.ok().and_then(|bin| counts.get_mut(bin)) {
                *count += 1.0;
            }
        }
        let width = seconds(BIN);
        let points = counts.iter().zip(0_u32..);
        Curve {
            name: name.to_owned(),
            points: points
                .map(|(count, bin)| (f64::from(bin) * width, count / width))
                .collect(),
        }
    };
    let at = |timestamp: u64| seconds(timestamp.saturating_sub(begin));
    Some(Picture {
        title: format!(
            "{}: sessions that ended (killed at {:.1} s, started again at {:.1} s)",
            part.name,
            at(outage.gone),
            at(outage.started)
        ),
        x: axis("time", Unit::Seconds),
        y: axis("sessions", Unit::PerSecond),
        curves: vec![curve("completed", true), curve("failed", false)],
    })
}

fn axis(name: &str, unit: Unit) -> Axis {
    Axis {
        name: name.to_owned(),
        unit,
        is_logarithmic: false,
    }
}
