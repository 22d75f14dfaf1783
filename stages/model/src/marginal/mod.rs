//! Step 3: the distribution of the rate behind the distribution of the counts.
//!
//! What the two-state sources add is known; what is left must be the rate of one more source whose
//! bins are independent. To find its law by dividing transforms is unstable; here it is the law of
//! largest likelihood among all laws on a grid, which cannot become negative and has few atoms
//! (Kiefer and Wolfowitz; Lindsay). Among those laws only the ones of the right mean count: a law that
//! is scaled to the mean afterwards is no longer near the distribution.

mod atoms;
mod npmle;
mod observations;
mod tilt;

pub(crate) use atoms::{Atom, fit_atoms, reduce};
pub(crate) use npmle::{Grid, Kernel};
pub(crate) use observations::{Observation, exposed, plain};

/// What the two-state sources add to the rate, and how probable that is.
pub(crate) type Offset = (f64, f64);

/// The law of the sum of two-state sources: each is at rate 0 with probability `low`, else at `high`.
pub(crate) fn offsets(sources: impl Iterator<Item = (f64, f64)>) -> Vec<Offset> {
    let mut law = vec![(0.0, 1.0)];
    for (low, high) in sources {
        law = law
            .iter()
            .flat_map(|&(rate, p)| [(rate, p * low), (rate + high, p * (1.0 - low))])
            .collect();
    }
    law
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_two_sources() {
        let law = offsets([(0.75, 2.0), (0.5, 8.0)].into_iter());
        assert_eq!(
            law,
            [(0.0, 0.375), (8.0, 0.375), (2.0, 0.125), (10.0, 0.125)]
        );
        assert_eq!(offsets(std::iter::empty()), [(0.0, 1.0)]);
    }
}
