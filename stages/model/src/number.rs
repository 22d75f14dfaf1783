//! Small numbers' work that several modules share.
//!
//! Small systems of linear equations.

/// The nearest count of a non-negative number; what is not a number becomes 0, what is too large the
/// largest count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and that is meant"
)]
pub(crate) fn to_count(value: f64) -> u32 {
    value.round() as u32
}

/// A place in a table, likewise.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and that is meant"
)]
pub(crate) fn to_index(value: f64) -> usize {
    value as usize
}

/// A number of things as a number to reckon with; exact up to 2^53.
pub(crate) fn number(of: usize) -> f64 {
    of as f64
}

/// The sum of products of two lists of the same length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums side by side, which the compiler turns into one vector.
    let (heads, tail) = a.as_chunks::<4>();
    let (heads_b, tail_b) = b.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (a, b) in heads.iter().zip(heads_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f64 = tail.iter().zip(tail_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// Solves `matrix x = right` for a symmetric positive definite matrix, given by its rows (what lies
/// right of the diagonal is not read), by Cholesky's decomposition. `None` where it is not one.
pub(crate) fn solve(matrix: &[Vec<f64>], right: &[f64]) -> Option<Vec<f64>> {
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let mut lower: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
    for (at, row) in matrix.iter().enumerate() {
        let mut new = Vec::with_capacity(at + 1);
        for (entry, before) in row.iter().zip(&lower) {
            let sum = product(&new, before);
            new.push((entry - sum) / before.last()?);
        }
        let entry = *row.get(at)?;
        let rest = entry - product(&new, &new);
        // What rounding leaves of a matrix that has no full rank is refused as well.
        if !(rest > 1e-14 * entry && rest.is_finite()) {
            return None;
        }
        new.push(rest.sqrt());
        lower.push(new);
    }
    let mut middle = Vec::with_capacity(right.len());
    for (row, right) in lower.iter().zip(right) {
        let sum = product(row, &middle);
        middle.push((right - sum) / row.last()?);
    }
    let mut result = Vec::with_capacity(right.len());
    for row in lower.iter().rev() {
        let (last, before) = row.split_last()?;
        let x = middle.pop()? / last;
        for (middle, entry) in middle.iter_mut().zip(before) {
            *middle -= entry * x;
        }
        result.push(x);
    }
    result.reverse();
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_saturate() {
        assert_eq!(to_count(2.6), 3);
        assert_eq!(to_count(-1.0), 0);
        assert_eq!(to_count(f64::NAN), 0);
        assert_eq!(to_count(f64::INFINITY), u32::MAX);
        assert_eq!(to_index(2.9), 2);
    }

    #[test]
    fn products_are_summed_to_the_end() {
        let a: Vec<f64> = (1..=7_u32).map(f64::from).collect();
        assert_eq!(dot(&a, &a), 140.0);
    }

    #[test]
    fn a_system_is_solved() {
        let matrix = [
            vec![4.0, 2.0, 0.6],
            vec![2.0, 5.0, 1.0],
            vec![0.6, 1.0, 3.0],
        ];
        let x = solve(&matrix, &[1.0, -2.0, 0.5]).unwrap();
        for (row, right) in matrix.iter().zip([1.0, -2.0, 0.5]) {
            let left: f64 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
            assert!((left - right).abs() < 1e-14);
        }
    }

    #[test]
    fn what_has_no_solution_has_none() {
        assert_eq!(solve(&[vec![1.0, 1.0], vec![1.0, 1.0]], &[1.0, 2.0]), None);
        assert_eq!(solve(&[vec![-1.0]], &[1.0]), None);
        assert_eq!(solve(&[vec![f64::NAN]], &[1.0]), None);
        assert_eq!(solve(&[], &[]), Some(Vec::new()));
    }
}
