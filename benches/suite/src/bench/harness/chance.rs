//! Chance that is the same in every run, in whole numbers.

/// `splitmix64`.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        linkweir_engine::hash::mix(self.0)
    }

    /// Less than `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// 32 bits of it.
    pub(crate) fn word(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.next().to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }

    /// True `of` times of `all`.
    pub(crate) fn is(&mut self, of: u64, all: u64) -> bool {
        self.below(all) < of
    }

    /// A value with a long tail: each doubling of `least` is half as frequent as the one before, at most
    /// `doublings` of them; even within one.
    pub(crate) fn tail(&mut self, least: u64, doublings: u32) -> u64 {
        let base = least << self.next().leading_zeros().min(doublings);
        base + self.below(base)
    }
}

/// Numbers of which number n is drawn as often as 1 / (n + 1): Zipf's law, as the popularity of sites and
/// pages has it.
#[derive(Debug)]
pub(crate) struct Zipf {
    sums: Vec<u64>,
}

impl Zipf {
    pub(crate) fn new(count: u64) -> Self {
        const SCALE: u64 = 1 << 32;
        let mut sum = 0;
        let weights = 1..=count.max(1);
        let sums = weights.map(|rank| {
            sum += SCALE / rank;
            sum
        });
        Self {
            sums: sums.collect(),
        }
    }

    pub(crate) fn draw(&self, chance: &mut Chance) -> u64 {
        let at = chance.below(self.sums.last().copied().unwrap_or(1));
        self.sums.partition_point(|sum| *sum <= at) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_zipf_is_drawn_twice_as_often_as_the_second() {
        let zipf = Zipf::new(100);
        let mut chance = Chance::new(1);
        let mut counts = [0_u64; 100];
        for _ in 0..100_000 {
            counts[usize::try_from(zipf.draw(&mut chance)).unwrap()] += 1;
        }
        let ratio = counts[0] as f64 / counts[1] as f64;
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
        assert!(counts[99] > 0);
    }

    #[test]
    fn a_tail_is_bounded() {
        let mut chance = Chance::new(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| chance.tail(10, 3)).collect();
        assert!(drawn.iter().all(|value| (10..160).contains(value)));
        let first = drawn.iter().filter(|value| **value < 20).count();
        assert!((4_500..5_500).contains(&first), "{first}");
        assert!(drawn.iter().any(|value| *value >= 80));
    }
}
