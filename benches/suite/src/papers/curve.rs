//! Distributions of figures: quantiles, and how far two of them are apart.

/// Figures in rising order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Curve {
    sorted: Vec<u64>,
}

impl FromIterator<u64> for Curve {
    fn from_iter<I: IntoIterator<Item = u64>>(figures: I) -> Self {
        let mut sorted: Vec<u64> = figures.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }
}

impl Curve {
    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The smallest figure that a share `q` of all does not exceed.
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a share of a length"
    )]
    pub(super) fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).copied()
    }

    /// The complementary distribution function at so many places at most, dense where it is small: figures and the share
    /// of all that is larger, above 0.
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a share of a length"
    )]
    pub(super) fn ccdf(&self, places: u32) -> Vec<(f64, f64)> {
        let len = self.sorted.len() as f64;
        let mut points: Vec<(f64, f64)> = Vec::new();
        for place in 0..=places {
            let share = len.powf(-f64::from(place) / f64::from(places.max(1)));
            let rank = (len * (1.0 - share)) as usize;
            let Some(figure) = self.sorted.get(rank) else {
                continue;
            };
            let above = self.above(*figure) as f64 / len;
            let point = (*figure as f64, above);
            if above > 0.0 && points.last() != Some(&point) {
                points.push(point);
            }
        }
        points
    }

    pub(super) fn max(&self) -> Option<u64> {
        self.sorted.last().copied()
    }

    /// How many figures are above `limit`.
    pub(super) fn above(&self, limit: u64) -> usize {
        self.sorted.len() - self.sorted.partition_point(|figure| *figure <= limit)
    }

    /// The largest vertical distance of the two complementary distribution functions, 0 to 1 (the
    /// Kolmogorov-Smirnov statistic); 1 where one is empty.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        let (own, its) = (&self.sorted, &other.sorted);
        if own.is_empty() || its.is_empty() {
            return 1.0;
        }
        let (mut a, mut b, mut most) = (0, 0, 0.0_f64);
        while let (Some(x), Some(y)) = (own.get(a), its.get(b)) {
            let at = *x.min(y);
            // Both step over all figures equal to this one before they are compared.
            a += own
                .get(a..)
                .unwrap_or_default()
                .iter()
                .take_while(|figure| **figure <= at)
                .count();
            b += its
                .get(b..)
                .unwrap_or_default()
                .iter()
                .take_while(|figure| **figure <= at)
                .count();
            let apart = a as f64 / own.len() as f64 - b as f64 / its.len() as f64;
            most = most.max(apart.abs());
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(figures: &[u64]) -> Curve {
        figures.iter().copied().collect()
    }

    #[test]
    fn quantiles_and_shares() {
        let of = curve(&[50, 10, 40, 20, 30]);
        assert_eq!(of.quantile(0.5), Some(30));
        assert_eq!(of.quantile(0.99), Some(50));
        assert_eq!(of.quantile(0.0), Some(10));
        assert_eq!((of.above(30), of.above(9), of.above(50)), (2, 5, 0));
        assert_eq!(curve(&[]).quantile(0.5), None);
    }

    #[test]
    fn a_ccdf_falls_and_ends_above_zero() {
        let points = curve(&[1, 1, 2, 3]).ccdf(100);
        assert_eq!(points, [(1.0, 0.5), (2.0, 0.25)]);
        let many: Curve = (0..100_000).collect();
        let points = many.ccdf(200);
        assert!(points.len() <= 201 && points.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1));
        assert!(points.last().unwrap().1 < 1e-4);
        assert_eq!(curve(&[]).ccdf(10), []);
    }

    #[test]
    fn distance_is_that_of_the_steps() {
        let of = curve(&[1, 2, 3, 4]);
        assert_eq!(of.distance(&curve(&[4, 3, 2, 1])), 0.0);
        assert_eq!(of.distance(&curve(&[1, 2, 3, 9])), 0.25);
        assert_eq!(of.distance(&curve(&[5, 6])), 1.0);
        assert_eq!(of.distance(&curve(&[1, 1, 1, 1])), 0.75);
        assert_eq!(of.distance(&curve(&[])), 1.0);
    }
}
