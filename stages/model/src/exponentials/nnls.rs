//! Least squares with weights that are not negative.

use crate::linear::solve;
use crate::number::dot;

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
