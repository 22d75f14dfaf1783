//! A script in the manner of SURGE (Barford and Crovella, "Generating representative web workloads",
//! SIGMETRICS 1998).
//!
//! **The constants come from memory of the literature; they were not verified against the paper.** They are
//! fields of [`Surge`], so that who has the paper can set them:
//!
//! | ingredient | distribution | cap (ours) |
//! | --- | --- | --- |
//! | objects of a page | Pareto, scale 1, shape 2.43, rounded down | 100 |
//! | pause before an object (active OFF) | Weibull, scale 1.46 s, shape 0.382 | 30 s |
//! | think time between pages (inactive OFF) | Pareto, scale 1 s, shape 1.5 | 300 s |
//! | popularity of targets | Zipf: the k-th is drawn with weight 1/k | the targets given |
//!
//! Ours, and not of SURGE: pages of a session are geometric with a mean of 5 and at most 50; the caps, for a
//! Pareto of shape 1.5 has no variance and short runs would not repeat. File sizes and temporal locality
//! are not modelled: the server's files are what they are.

use linkweir_model::Random;

use super::plan::{PagePlan, Plan, RequestPlan, SessionPlan};
use super::span::Span;
use crate::arrivals::whole_nanos;

/// The numbers of the preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Surge {
    /// Sessions that are made; the schedule's sessions take turns at them.
    pub sessions: u32,
    /// Mean pages of a session.
    pub mean_pages: f64,
    /// Most pages of a session.
    pub max_pages: u32,
    /// Exponent of the number of objects in a page.
    pub objects_shape: f64,
    /// Most objects of a page.
    pub max_objects: u32,
    /// Before each object.
    pub pause: Span,
    /// Between pages.
    pub think: Span,
}

impl Default for Surge {
    fn default() -> Self {
        Self {
            sessions: 1000,
            mean_pages: 5.0,
            max_pages: 50,
            objects_shape: 2.43,
            max_objects: 100,
            pause: Span::Weibull {
                scale: 1.46,
                shape: 0.382,
                cap: 30.0,
            },
            think: Span::Pareto {
                scale: 1.0,
                shape: 1.5,
                cap: 300.0,
            },
        }
    }
}

impl Surge {
    /// Makes sessions over targets, the most popular first; the same seed makes the same ones. `like`
    /// says how many connections a session has. No target: an empty plan.
    #[must_use]
    pub fn plan(&self, targets: &[String], like: &SessionPlan, seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let popularity = Zipf::new(targets.len());
        let draw = |random: &mut Random| {
            let target = targets.get(popularity.draw(random))?;
            Some(RequestPlan::get(target.as_str()))
        };
        let mut plan = Plan::default();
        for _ in 0..self.sessions {
            let mut pages = Vec::new();
            for _ in 0..self.pages(&mut random) {
                let Some(base) = draw(&mut random) else {
                    return Plan::default();
                };
                let objects = self.objects(&mut random);
                pages.push(PagePlan {
                    base,
                    objects: (0..objects).filter_map(|_| draw(&mut random)).collect(),
                    think: self.think,
                    pause: self.pause,
                    ..PagePlan::default()
                });
            }
            plan.sessions.push(SessionPlan {
                pages,
                ..like.clone()
            });
        }
        plan
    }

    /// Geometric, from 1 on.
    fn pages(&self, random: &mut Random) -> u32 {
        let go_on = 1.0 - 1.0 / self.mean_pages.max(1.0);
        let mut pages = 1;
        while pages < self.max_pages && random.uniform() < go_on {
            pages += 1;
        }
        pages
    }

    /// Pareto of scale 1, rounded down.
    fn objects(&self, random: &mut Random) -> u32 {
        let drawn = (random.exponential() / self.objects_shape).exp();
        let whole = u32::try_from(whole_nanos(drawn)).unwrap_or(u32::MAX);
        whole.min(self.max_objects)
    }
}

/// Ranks drawn by 1 / rank.
struct Zipf {
    /// Sums of the weights.
    sums: Vec<f64>,
}

impl Zipf {
    fn new(ranks: usize) -> Self {
        let mut sum = 0.0;
        let sums = (1..=ranks).map(|rank| {
            #[expect(clippy::cast_precision_loss, reason = "a small count")]
            let rank = rank as f64;
            sum += 1.0 / rank;
            sum
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// From 0 on.
    fn draw(&self, random: &mut Random) -> usize {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let drawn = random.uniform() * all;
        self.sums.partition_point(|sum| *sum <= drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_the_sessions_and_their_moments_are_right() {
        let targets: Vec<String> = (0..50).map(|n| format!("/{n}.html")).collect();
        let surge = Surge {
            sessions: 4000,
            ..Surge::default()
        };
        let plan = surge.plan(&targets, &SessionPlan::default(), 9);
        assert_eq!(plan, surge.plan(&targets, &SessionPlan::default(), 9));
        assert_ne!(plan, surge.plan(&targets, &SessionPlan::default(), 10));
        let count = |n: usize| f64::from(u32::try_from(n).unwrap());
        let pages: Vec<&PagePlan> = plan.sessions.iter().flat_map(|s| &s.pages).collect();
        let mean_pages = count(pages.len()) / 4000.0;
        assert!((mean_pages - 5.0).abs() < 0.25, "{mean_pages}");
        // Mean of the floor: the sum of P(X >= k) = k^-2.43 over k; zeta(2.43) = 1.3717.
        let objects: usize = pages.iter().map(|page| page.objects.len()).sum();
        let mean_objects = count(objects) / count(pages.len());
        assert!((mean_objects - 1.3717).abs() < 0.04, "{mean_objects}");
        assert!(pages.iter().all(|page| page.objects.len() <= 100));
        // The first target against the tenth: ten to one.
        let asked = |target: &str| {
            let bases = pages.iter().filter(|page| page.base.target == target);
            count(bases.count())
        };
        let ratio = asked("/0.html") / asked("/9.html");
        assert!((ratio - 10.0).abs() < 1.5, "{ratio}");
    }

    #[test]
    fn without_targets_there_is_no_session() {
        let plan = Surge::default().plan(&[], &SessionPlan::default(), 1);
        assert_eq!(plan.sessions, []);
    }
}
