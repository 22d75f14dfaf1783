//! Small systems of linear equations.

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
