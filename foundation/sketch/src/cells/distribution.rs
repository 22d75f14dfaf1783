//! A distribution: how many values, their moments and how they are spread.

use super::Buckets;

/// Values of one series in one step or row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Which value goes to which bucket.
    pub shape: Buckets,
    /// Values.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The sum of their squares.
    pub squares: u128,
    /// The smallest; meaningless where there is none.
    pub min: u64,
    /// The largest; meaningless where there is none.
    pub max: u64,
    /// Values by bucket, as many as the shape has.
    pub buckets: Vec<u64>,
}

impl Distribution {
    /// One without values.
    #[must_use]
    pub fn new(shape: Buckets) -> Self {
        Self {
            shape,
            count: 0,
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
            buckets: vec![0; shape.len()],
        }
    }

    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(u128::from(value));
        // The square of a u64 fits.
        let square = u128::from(value) * u128::from(value);
        self.squares = self.squares.saturating_add(square);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if let Some(bucket) = self.buckets.get_mut(self.shape.index(value)) {
            *bucket = bucket.saturating_add(1);
        }
    }

    /// Adds the values of another of the same shape.
    pub fn merge(&mut self, other: &Self) {
        if self.shape != other.shape {
            return;
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of the values; `None` without values.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let variance = mean.mul_add(-mean, self.squares as f64 / self.count as f64);
        Some(variance.max(0.0).sqrt())
    }

    /// The value below which a share of `share` (0 to 1) of the values lies, exact to one bucket;
    /// `None` without values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let (min, max) = (self.min as f64, self.max as f64);
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0);
        let mut before = 0.0;
        for (index, values) in self.buckets.iter().enumerate() {
            let values = *values as f64;
            if values > 0.0 && before + values >= rank {
                // Only part of the first and last bucket used has values.
                let (from, to) = self.shape.edges(index);
                let is_last = index + 1 == self.buckets.len();
                let to = if is_last { max } else { to.min(max) };
                let from = from.max(min).min(to);
                let within = (rank - before - 0.5) / values;
                return Some(within.mul_add(to - from, from).clamp(min, max.max(min)));
            }
            before += values;
        }
        Some(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Buckets = Buckets {
        low_bits: 4,
        high_bits: 40,
        sub_bits: 3,
    };

    #[test]
    fn moments() {
        let mut one = Distribution::new(SHAPE);
        assert_eq!((one.mean(), one.quantile(0.5)), (None, None));
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            one.add(value);
        }
        assert_eq!(one.mean(), Some(5.0));
        assert_eq!(one.standard_deviation(), Some(2.0));
        assert_eq!(one.quantile(0.0).map(f64::floor), Some(2.0));
        assert_eq!(one.quantile(1.0).map(f64::ceil), Some(9.0));
    }

    proptest! {
        #[test]
        fn merging_is_adding_and_quantiles_are_within_a_bucket(
            values in prop::collection::vec(0_u64..1 << 42, 1..300), cut in 0_usize..300, share in 0.0..1.0
        ) {
            let (mut a, mut b, mut all) = (Distribution::new(SHAPE), Distribution::new(SHAPE), Distribution::new(SHAPE));
            for (at, value) in values.iter().enumerate() {
                if at < cut { a.add(*value) } else { b.add(*value) }
                all.add(*value);
            }
            a.merge(&b);
            prop_assert_eq!(&a, &all);
            let mut sorted = values;
            sorted.sort_unstable();
            let rank: f64 = share * sorted.len() as f64;
            let rank = rank.ceil();
            let exact = sorted.iter().zip(1_u32..).find(|(_, n)| f64::from(*n) >= rank);
            let exact = *exact.unwrap().0;
            let found = all.quantile(share).unwrap();
            let (from, to) = SHAPE.edges(SHAPE.index(exact));
            let to = if to == from { f64::INFINITY } else { to };
            prop_assert!(found >= from && found <= to, "{found} for {exact}");
        }
    }
}
