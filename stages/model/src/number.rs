//! Small numbers' work that several modules share.

/// The nearest count of a non-negative number; what is no number becomes 0, what is too large the
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
}
