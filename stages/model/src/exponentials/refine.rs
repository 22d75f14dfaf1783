//! Amplitudes and time constants together, by the method of Levenberg and Marquardt.
//!
//! Least squares with weights that are not negative.

use super::{Target, Term, column, powers};
use crate::number::{dot, number, solve};

/// Weight of what the amplitudes exceed their budget by.
const PENALTY: f64 = 30.0;
/// Shortest time constant in bins: below, a term is nothing but variance.
const LEAST_TAU: f64 = 0.7;
/// Longest, in multiples of the lags: beyond, a term is a constant.
const MOST_TAU: f64 = 50.0;
const MAX_STEPS: u32 = 300;
/// Bounds of the logarithm of an amplitude, which is in parts of the variance.
const LN_AMPLITUDE: (f64, f64) = (-40.0, 20.0);

/// Logarithms of amplitude and time constant, term by term.
type Point = Vec<f64>;

/// The best of two descents: one from the terms given, one from as many time constants spread over
/// the lags. One alone falls into a minimum where two terms are one.
pub(super) fn refine(terms: &[Term], target: Target<'_>) -> Vec<Term> {
    let lags = number(target.lags.len());
    let given = terms.iter().map(|term| term.tau).collect();
    let (first, last) = (1.2_f64, 1.5 * lags);
    let spread = match terms.len() {
        0 | 1 => vec![lags; terms.len()],
        count => {
            let step = (last / first).ln() / number(count - 1);
            (0..count)
                .map(|at| first * (step * number(at)).exp())
                .collect()
        }
    };
    let ends = [given, spread].map(|taus: Vec<f64>| descend(start(&taus, target), target));
    let best = ends.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (point, _) = best.unwrap_or_default();
    let mut result: Vec<Term> = point
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[amplitude, tau]| Term {
            amplitude: amplitude.exp(),
            tau: tau.exp(),
        })
        .collect();
    result.sort_by(|a, b| a.tau.total_cmp(&b.tau));
    result
}

/// These time constants with the amplitudes that fit them best.
fn start(taus: &[f64], target: Target<'_>) -> Point {
    let lags = target.lags.len();
    let taus = taus.iter().map(|tau| tau.clamp(0.8, 40.0 * number(lags)));
    let columns: Vec<Vec<f64>> = taus.clone().map(|tau| column(tau, lags)).collect();
    let amplitudes = non_negative(&columns, target.lags);
    let terms = amplitudes.iter().zip(taus);
    terms
        .flat_map(|(amplitude, tau)| [amplitude.max(1e-3).ln(), tau.ln()])
        .collect()
}

/// Where a descent ends, and its cost.
fn descend(mut point: Point, target: Target<'_>) -> (Point, f64) {
    let most_tau = (MOST_TAU * number(target.lags.len())).ln();
    let bounds = [LN_AMPLITUDE, (LEAST_TAU.ln(), most_tau)];
    let mut here = Equations::at(&point, target);
    let mut damping = 1e-3;
    for _ in 0..MAX_STEPS {
        let Some(step) = here.step(&point, bounds, damping) else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
            continue;
        };
        let moved = point.iter().zip(&step).enumerate();
        let next: Point = moved
            .map(|(at, (value, step))| {
                let (least, most) = bound(bounds, at);
                (value + step).clamp(least, most)
            })
            .collect();
        let there = Equations::at(&next, target);
        if there.cost < here.cost {
            let gain = (here.cost - there.cost) / here.cost;
            (point, here) = (next, there);
            damping = (damping * 0.3).max(1e-12);
            if gain < 1e-10 {
                break;
            }
        } else {
            damping *= 4.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    (point, here.cost)
}

fn bound(bounds: [(f64, f64); 2], at: usize) -> (f64, f64) {
    let [amplitude, tau] = bounds;
    if at.is_multiple_of(2) { amplitude } else { tau }
}

/// The normal equations at a point.
#[derive(Debug)]
struct Equations {
    /// Half the sum of squared residuals.
    cost: f64,
    gradient: Vec<f64>,
    matrix: Vec<Vec<f64>>,
}

impl Equations {
    fn at(point: &[f64], target: Target<'_>) -> Self {
        let size = point.len();
        let mut result = Self {
            cost: 0.0,
            gradient: vec![0.0; size],
            matrix: vec![vec![0.0; size]; size],
        };
        let (pairs, _) = point.as_chunks::<2>();
        let mut terms: Vec<_> = pairs
            .iter()
            .map(|[amplitude, tau]| (amplitude.exp(), tau.exp(), powers(tau.exp())))
            .collect();
        let mut slopes = vec![0.0; size];
        for (at, lag) in target.lags.iter().enumerate() {
            let mut residual = -lag;
            let (of_terms, _) = slopes.as_chunks_mut::<2>();
            for ((amplitude, tau, powers), slope) in terms.iter_mut().zip(of_terms) {
                let value = *amplitude * powers.next().unwrap_or(0.0);
                residual += value;
                *slope = [value, value * number(at + 1) / *tau];
            }
            result.add(residual, &slopes);
        }
        let amplitudes = terms.iter().map(|(amplitude, _, _)| amplitude);
        let excess = amplitudes.sum::<f64>() - target.budget;
        if excess > 0.0 {
            let (of_terms, _) = slopes.as_chunks_mut::<2>();
            for ((amplitude, _, _), slope) in terms.iter().zip(of_terms) {
                *slope = [PENALTY * amplitude, 0.0];
            }
            result.add(PENALTY * excess, &slopes);
        }
        if !result.cost.is_finite() {
            result.cost = f64::INFINITY;
        }
        result
    }

    fn add(&mut self, residual: f64, slopes: &[f64]) {
        self.cost += 0.5 * residual * residual;
        for (gradient, slope) in self.gradient.iter_mut().zip(slopes) {
            *gradient += residual * slope;
        }
        for (at, (row, a)) in self.matrix.iter_mut().zip(slopes).enumerate() {
            for (entry, b) in row.iter_mut().zip(slopes).take(at + 1) {
                *entry += a * b;
            }
        }
    }

    /// The damped step. A value at its bound that would go beyond stays.
    fn step(&self, point: &[f64], bounds: [(f64, f64); 2], damping: f64) -> Option<Vec<f64>> {
        let stays: Vec<bool> = point
            .iter()
            .zip(&self.gradient)
            .enumerate()
            .map(|(at, (value, gradient))| {
                let (least, most) = bound(bounds, at);
                (*value <= least && *gradient > 0.0) || (*value >= most && *gradient < 0.0)
            })
            .collect();
        let mut matrix = self.matrix.clone();
        for (at, (row, row_stays)) in matrix.iter_mut().zip(&stays).enumerate() {
            for (column, (entry, stays)) in row.iter_mut().zip(&stays).enumerate() {
                if column == at {
                    *entry = if *row_stays {
                        1.0
                    } else {
                        *entry * (1.0 + damping) + 1e-30
                    };
                } else if *row_stays || *stays {
                    *entry = 0.0;
                }
            }
        }
        let right = self.gradient.iter().zip(&stays);
        let right: Vec<f64> = right
            .map(|(gradient, stays)| if *stays { 0.0 } else { -gradient })
            .collect();
        solve(&matrix, &right)
    }
}

/// The weights `x >= 0` for which the sum of `columns` with these weights is nearest to `target`:
/// the active set method of Lawson and Hanson (1974), on the normal equations.
///
/// Columns that are nearly the same as others give the equations no solution; they are left out, which
/// costs nothing as the others can stand in for them.
pub(super) fn non_negative(columns: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
    let gram: Vec<Vec<f64>> = columns
        .iter()
        .map(|a| columns.iter().map(|b| dot(a, b)).collect())
        .collect();
    let right: Vec<f64> = columns.iter().map(|a| dot(a, target)).collect();
    let top = right.iter().copied().fold(0.0, f64::max);
    let mut weights = vec![0.0; columns.len()];
    let mut passive: Vec<usize> = Vec::new();
    let mut left_out = vec![false; columns.len()];
    // Far more turns than it takes; the end of the loop in any case.
    for _ in 0..3 * columns.len() {
        let gains = gram.iter().zip(&right).zip(&left_out).enumerate();
        let next = gains
            .filter(|(at, (_, left_out))| !**left_out && !passive.contains(at))
            .map(|(at, ((row, right), _))| (at, right - dot(row, &weights)))
            .filter(|(_, gain)| *gain > 1e-10 * top)
            .max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((next, _)) = next else {
            break;
        };
        passive.push(next);
        if !settle(&gram, &right, &mut passive, &mut weights) {
            passive.retain(|at| *at != next);
            if let Some(left_out) = left_out.get_mut(next) {
                *left_out = true;
            }
        }
    }
    weights
}

/// Solves for the passive columns; those that would become negative leave. Whether it could be
/// solved.
fn settle(gram: &[Vec<f64>], right: &[f64], passive: &mut Vec<usize>, weights: &mut [f64]) -> bool {
    let of = |values: &[f64], at: usize| values.get(at).copied().unwrap_or(0.0);
    // Each turn but the last has one column less.
    while !passive.is_empty() {
        let rows = passive.iter().filter_map(|at| gram.get(*at));
        let rows: Vec<Vec<f64>> = rows
            .map(|row| passive.iter().map(|at| of(row, *at)).collect())
            .collect();
        let right: Vec<f64> = passive.iter().map(|at| of(right, *at)).collect();
        let Some(solution) = solve(&rows, &right) else {
            return false;
        };
        // How far towards the solution no weight becomes negative.
        let steps = passive.iter().zip(&solution).filter(|(_, s)| **s <= 0.0);
        let steps = steps.map(|(at, s)| {
            let weight = of(weights, *at);
            (*at, weight / (weight - s))
        });
        let first = steps.min_by(|(_, a), (_, b)| a.total_cmp(b));
        let part = first.map_or(1.0, |(_, part)| if part.is_finite() { part } else { 0.0 });
        for (at, solution) in passive.iter().zip(&solution) {
            if let Some(weight) = weights.get_mut(*at) {
                *weight += part * (solution - *weight);
            }
        }
        let Some((leaves, _)) = first else {
            return true;
        };
        if let Some(weight) = weights.get_mut(leaves) {
            *weight = 0.0;
        }
        passive.retain(|at| *at != leaves);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn slopes_are_those_of_the_cost() {
        let lags: Vec<f64> = (1..40).map(|k| 0.5 * (-f64::from(k) / 7.0).exp()).collect();
        // With the penalty and without.
        for budget in [0.1, 2.0] {
            let target = Target {
                lags: &lags,
                variance: 1.0,
                budget,
            };
            let point = vec![-1.0, 1.0, -0.7, 3.0];
            let here = Equations::at(&point, target);
            for at in 0..4 {
                let mut moved = point.clone();
                moved[at] += 1e-6;
                let slope = (Equations::at(&moved, target).cost - here.cost) / 1e-6;
                assert!((slope - here.gradient[at]).abs() < 1e-4 * slope.abs().max(1e-3));
            }
        }
    }

    #[test]
    fn a_descent_ends_within_its_bounds() {
        // A constant wants an endless time constant.
        let lags = vec![0.3; 50];
        let target = Target {
            lags: &lags,
            variance: 1.0,
            budget: 1.0,
        };
        let terms = [Term {
            amplitude: 0.1,
            tau: 5.0,
        }];
        let found = refine(&terms, target);
        assert!(found[0].tau <= 50.0 * 50.0 * 1.000_001);
        assert!((found[0].amplitude - 0.3).abs() < 0.01, "{found:?}");
        assert!(refine(&[], target).is_empty());
    }

    /// The conditions of Karush, Kuhn and Tucker: the gradient is 0 where the weight is positive and
    /// does not lead down where it is 0.
    fn assert_optimal(columns: &[Vec<f64>], target: &[f64], weights: &[f64]) {
        let mut rest = target.to_vec();
        for (column, weight) in columns.iter().zip(weights) {
            assert!(*weight >= 0.0);
            for (rest, value) in rest.iter_mut().zip(column) {
                *rest -= weight * value;
            }
        }
        for (column, weight) in columns.iter().zip(weights) {
            let gain = dot(column, &rest);
            assert!(gain < 1e-7, "{gain}");
            assert!(*weight == 0.0 || gain.abs() < 1e-7, "{weight} {gain}");
        }
    }

    #[test]
    fn the_optimum_is_found() {
        let mut random = Random::new(5);
        for _ in 0..50 {
            let mut column = || -> Vec<f64> { (0..30).map(|_| random.uniform()).collect() };
            let columns: Vec<Vec<f64>> = (0..12).map(|_| column()).collect();
            let mut target = column();
            for (target, value) in target.iter_mut().zip(column()) {
                *target -= value * 0.5;
            }
            let weights = non_negative(&columns, &target);
            assert_optimal(&columns, &target, &weights);
        }
    }

    #[test]
    fn columns_twice_do_not_matter() {
        let column = vec![1.0, 2.0, 3.0];
        let weights = non_negative(&[column.clone(), column], &[2.0, 4.0, 6.0]);
        assert!((weights.iter().sum::<f64>() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_number_gives_nothing() {
        let weights = non_negative(&[vec![1.0, f64::NAN]], &[1.0, 1.0]);
        assert_eq!(weights, [0.0]);
        assert!(non_negative(&[], &[1.0]).is_empty());
    }
}
