//! A straight line through points.

use crate::number::number;

/// Slope of a line and the standard error of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) standard_error: f64,
}

/// The line of least squares; `None` below three points, or where one is not a number.
pub(super) fn through(points: &[(f64, f64)]) -> Option<Line> {
    let n = number(points.len());
    if n < 3.0 {
        return None;
    }
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let squares: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let products = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y));
    let slope = products.sum::<f64>() / squares;
    let off = |(x, y): &(f64, f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
    let rest: f64 = points.iter().map(off).sum();
    let standard_error = (rest / (n - 2.0) / squares).sqrt();
    (slope.is_finite() && standard_error.is_finite()).then_some(Line {
        slope,
        standard_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_and_its_error() {
        let line = through(&[(0.0, 1.0), (1.0, 2.0), (2.0, 6.0)]).unwrap();
        assert!((line.slope - 2.5).abs() < 1e-12);
        // Residuals 0.5, -1, 0.5 of one degree of freedom over 2.
        assert!((line.standard_error - 0.75_f64.sqrt()).abs() < 1e-12);
        assert!(through(&[(0.0, 1.0), (1.0, 2.0)]).is_none());
        assert!(through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]).is_none());
        assert!(through(&[(0.0, 1.0), (1.0, f64::NEG_INFINITY), (2.0, 3.0)]).is_none());
    }
}
