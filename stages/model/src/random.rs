//! Random numbers that are the same on every machine and in every version: a schedule is named by
//! its seed.

/// xoshiro256++ (Blackman and Vigna 2018), seeded by `SplitMix64`.
///
/// Its sequence is a promise: a seed in a report gives the same schedule in every later version.
/// Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        let state = std::array::from_fn(|_| {
            mix = mix.wrapping_add(0x9e37_79b9_7f4a_7c15);
            finalize(mix)
        });
        Self { state }
    }

    /// The sequence of part `number` of a seed: sources, clients, workers have one each.
    #[must_use]
    pub fn part(seed: u64, number: u64) -> Self {
        Self::new(finalize(seed ^ finalize(number.wrapping_add(1))))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Uniform in `[0, 1)`: 53 bits.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..below`; 0 where `below` is 0. Biased by less than 2^-32 for 32-bit bounds.
    #[inline]
    pub fn below(&mut self, below: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(below);
        // The upper half: less than `below`.
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        // In (0, 1], so that the logarithm is finite.
        -(1.0 - self.uniform()).ln()
    }
}

/// The finalizer of `SplitMix64`.
const fn finalize(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_stays() {
        let mut random = Random::new(0);
        // SplitMix64 of seed 0 begins with e220a8397b1dcdaf; these are xoshiro256++'s first.
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(first, FIRST);
    }

    const FIRST: [u64; 3] = [0x53175d61490b23df, 0x61da6f3dc380d507, 0x5c0fdf91ec9a7bfc];

    #[test]
    fn moments_are_right() {
        let mut random = Random::new(7);
        let n = 200_000_u32;
        let (mut uniform, mut exponential, mut below) = (0.0, 0.0, 0);
        for _ in 0..n {
            uniform += random.uniform();
            exponential += random.exponential();
            below += random.below(10);
        }
        let n = f64::from(n);
        assert!((uniform / n - 0.5).abs() < 0.005);
        assert!((exponential / n - 1.0).abs() < 0.01);
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let below = below as f64 / n;
        assert!((below - 4.5).abs() < 0.03);
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn parts_differ() {
        assert_ne!(Random::part(1, 0), Random::part(1, 1));
        assert_ne!(Random::part(1, 0), Random::part(2, 0));
        assert_eq!(Random::part(1, 5), Random::part(1, 5));
    }
}
