//! What a client asks for: paths that say how long the origin waits and how much it sends.

use linkweir_model::Random;
use std::time::Duration;

/// Times that the origin waits, milliseconds: from a cache's to a search's.
const WAIT_MS: (f64, f64) = (2.0, 150.0);
/// Bodies of responses, bytes: from a status in JSON to a picture.
const BYTES: (f64, f64) = (100.0, 100_000.0);
/// Bodies of requests that have one, bytes.
const SENT: (f64, f64) = (20.0, 40_000.0);
/// Part of the requests that have a body.
const POSTS: f64 = 0.2;
/// Round trips and work beside the waiting, for the time that a request takes.
const BESIDE: Duration = Duration::from_millis(5);

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// Its path; the last part is its number.
    pub(super) path: String,
    /// Bytes of its body; none is a GET.
    pub(super) body: Option<usize>,
}

/// Requests that take about `duration` one after the other, with numbers from `first` on.
pub(super) fn asks(
    seed: u64,
    first: u64,
    (duration, round_trip): (Duration, Duration),
    has_posts: bool,
) -> Vec<Ask> {
    let mut random = Random::part(seed, first);
    let mut left = duration;
    let mut asks = Vec::new();
    while !left.is_zero() {
        let wait = between(&mut random, WAIT_MS);
        let bytes = between(&mut random, BYTES);
        let is_post = random.uniform() < POSTS;
        let body = between(&mut random, SENT);
        let id = first + asks.len() as u64;
        asks.push(Ask {
            path: format!("/d/{wait}/{bytes}/{id}"),
            body: (is_post && has_posts).then(|| usize::try_from(body).unwrap_or(0)),
        });
        left = left.saturating_sub(Duration::from_millis(wait) + round_trip + BESIDE);
    }
    asks
}

/// A value whose logarithm is even between the two.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between two small positive numbers"
)]
fn between(random: &mut Random, (least, most): (f64, f64)) -> u64 {
    (least * (most / least).powf(random.uniform())).round() as u64
}

/// The number at the end of a path of [`asks`].
pub(super) fn number(path: &str) -> Option<u64> {
    number_of("/d/", path)
}

/// The number at the end of a path with two others before it, behind its first part.
pub(super) fn number_of(first: &str, path: &str) -> Option<u64> {
    let parts = path
        .find(first)
        .and_then(|at| path.get(at + first.len()..))?;
    let parts = parts.split(['?', '#']).next()?;
    let mut parts = parts.split('/').map(str::parse::<u64>);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(Ok(_)), Some(Ok(_)), Some(Ok(id)), None) => Some(id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_that_of_its_seed_and_its_numbers_are_found() {
        let times = (Duration::from_secs(5), Duration::from_millis(20));
        let plan = |seed| asks(seed, 1000, times, true);
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1), plan(2));
        let plan = plan(1);
        assert!((30..500).contains(&plan.len()), "{}", plan.len());
        assert!(plan.iter().any(|ask| ask.body.is_some()));
        for (at, ask) in plan.iter().enumerate() {
            assert_eq!(number(&ask.path), Some(1000 + at as u64));
            assert_eq!(
                number(&format!("https://shop.test{}", ask.path)),
                number(&ask.path)
            );
        }
        assert_eq!(number("/page"), None);
        assert_eq!(number("/d/1/2/3/4"), None);
    }
}
