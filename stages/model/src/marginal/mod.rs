//! Step 3: the distribution of the rate behind the distribution of the counts.
//!
//! What the two-state sources add is known; what is left must be the rate of one more source whose
//! bins are independent. To find its law by dividing transforms is unstable; here it is the law of
//! largest likelihood among all laws on a grid, which cannot become negative and has few atoms
//! (Kiefer and Wolfowitz; Lindsay). Among those laws only the ones of the right mean count: a law that
//! is scaled to the mean afterwards is no longer near the distribution.
//!
//! The histogram of a series, with the exposure of each bin where there is a profile.

use crate::counts::Counts;
use crate::number::number;

mod atoms;
mod npmle;
mod tilt;

pub(crate) use atoms::{Atom, fit_atoms, reduce};
pub(crate) use npmle::{Grid, Kernel};

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

/// Most observations that are distinguished; beyond, neighbours are taken together.
const MOST: usize = 512;
/// Most exposures that are distinguished.
const MOST_EXPOSURES: usize = 16;

/// How often a count was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Observation {
    /// Arrivals in the bin.
    pub(crate) count: f64,
    /// By what the rate was multiplied there.
    pub(crate) exposure: f64,
    /// Share of the bins.
    pub(crate) weight: f64,
}

/// The histogram of a series without a profile.
pub(crate) fn plain(counts: &Counts) -> Vec<Observation> {
    let all = counts.histogram().into_iter();
    let all = all.map(|(count, weight)| Observation {
        count: f64::from(count),
        exposure: 1.0,
        weight,
    });
    coarser(all.collect(), MOST)
}

/// The histogram of a series with the factor of each bin. Bins of nearly the same factor are taken
/// together under its mean; bins of factor 0 say nothing and are left out.
pub(crate) fn exposed(counts: &Counts, factors: &[f64]) -> Vec<Observation> {
    let bins = counts.values().iter().zip(factors);
    let bins = bins.filter(|(_, factor)| **factor > 0.0);
    let mut bins: Vec<(f64, f64)> = bins.map(|(c, f)| (*f, f64::from(*c))).collect();
    bins.sort_by(|a, b| a.0.total_cmp(&b.0));
    let share = 1.0 / number(bins.len());
    let mut result = Vec::new();
    let size = bins.len().div_ceil(MOST_EXPOSURES).max(1);
    for class in bins.chunks_mut(size) {
        let exposure = class.iter().map(|(f, _)| f).sum::<f64>() / number(class.len());
        class.sort_by(|a, b| a.1.total_cmp(&b.1));
        let runs = class.chunk_by(|a, b| a.1 == b.1);
        let all = runs.filter_map(|run| {
            Some(Observation {
                count: run.first()?.1,
                exposure,
                weight: number(run.len()) * share,
            })
        });
        result.extend(coarser(all.collect(), MOST / MOST_EXPOSURES * 2));
    }
    result
}

/// At most `most` observations: neighbours together under their mean count.
fn coarser(all: Vec<Observation>, most: usize) -> Vec<Observation> {
    if all.len() <= most {
        return all;
    }
    let together = all.chunks(all.len().div_ceil(most));
    together
        .map(|group| {
            let weight: f64 = group.iter().map(|o| o.weight).sum();
            let of = |part: fn(&Observation) -> f64| -> f64 {
                group.iter().map(|o| part(o) * o.weight).sum::<f64>() / weight
            };
            Observation {
                count: of(|o| o.count).round(),
                exposure: of(|o| o.exposure),
                weight,
            }
        })
        .collect()
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

    fn sums(all: &[Observation]) -> (f64, f64) {
        let weight = all.iter().map(|o| o.weight).sum();
        (weight, all.iter().map(|o| o.weight * o.count).sum())
    }

    #[test]
    fn histograms_keep_weight_and_mean() {
        let few = Counts::new(1.0, vec![1, 2, 2, 5]).unwrap();
        let all = plain(&few);
        assert_eq!(all.len(), 3);
        assert_eq!(sums(&all), (1.0, 2.5));
        let many = Counts::new(1.0, (0..5000).collect()).unwrap();
        let all = plain(&many);
        assert!(all.len() <= MOST);
        let (weight, mean) = sums(&all);
        assert!((weight - 1.0).abs() < 1e-9);
        assert!((mean - many.mean()).abs() < 1.0);
    }

    #[test]
    fn exposures_are_classes() {
        let counts = Counts::new(1.0, (0..4000).map(|i| i % 7).collect()).unwrap();
        let factors: Vec<f64> = (0..4000).map(|i| f64::from(i) / 2000.0).collect();
        let all = exposed(&counts, &factors);
        assert_eq!(all.len(), 7 * MOST_EXPOSURES);
        assert!((sums(&all).0 - 1.0).abs() < 1e-9);
        let mean: f64 = all.iter().map(|o| o.weight * o.exposure).sum();
        assert!((mean - 1.0).abs() < 1e-3, "{mean}");
        assert!(exposed(&counts, &[0.0; 4000]).is_empty());
    }
}
