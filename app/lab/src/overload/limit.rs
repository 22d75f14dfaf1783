//! What the server can do in a second.

use std::time::Duration;

use super::play::{Job, Played, Player};
use crate::error::LabError;

/// Sessions of the volley.
const SESSIONS: u32 = 600;
/// Sessions a second in it: many times what a server does that works a millisecond or so for each.
const RATE: u32 = 20_000;
/// How long the server may take for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The part of the answers at the beginning and at the end that does not count: there the server may
/// wait for work.
const EDGE: f64 = 0.1;

/// Answers a second of the server's own time, and the run that showed it.
///
/// A volley comes faster than the server can answer, so that it is never idle while it works it off.
/// Then the answers divided by the processor time it had are its limit, whatever else the machine does.
/// Where the kernel does not count that time, the log says when answers went out, and the limit is their
/// rate in the middle of the volley.
pub(super) fn find(player: &mut Player<'_, '_>) -> Result<(f64, Played), LabError> {
    let played = player.play(Job {
        name: "limit".to_owned(),
        arrivals: format!("constant:{RATE}"),
        words: vec!["--sessions".to_owned(), SESSIONS.to_string()],
        duration: PATIENCE,
    })?;
    let limit = match by_core(&played) {
        Some(limit) => Some(limit),
        None => {
            let visits = player.web.visits().into_iter();
            rate_amid(visits.map(|visit| visit.ended_s).collect())
        }
    };
    let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0);
    let limit = limit.ok_or_else(|| LabError::program("the server's limit", "no answers"))?;
    Ok((limit, played))
}

/// Answers a second of the processor time that the server had in a run.
pub(super) fn by_core(played: &Played) -> Option<f64> {
    let answers = played.load.count("load/responses");
    let limit = answers as f64 / played.core?.ran.as_secs_f64();
    limit.is_finite().then_some(limit)
}

/// Events a second without the edges.
fn rate_amid(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    let from = crate::curves::quantile(&times, EDGE)?;
    let to = crate::curves::quantile(&times, 1.0 - EDGE)?;
    Some(times.len() as f64 * (1.0 - 2.0 * EDGE) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_first_answer_does_not_count() {
        let mut times: Vec<f64> = (0..1001).map(|index| f64::from(index) / 500.0).collect();
        times[0] = -100.0;
        let rate = rate_amid(times).unwrap();
        assert!((rate - 500.0).abs() < 5.0, "{rate}");
        assert_eq!(rate_amid(Vec::new()), None);
    }
}
