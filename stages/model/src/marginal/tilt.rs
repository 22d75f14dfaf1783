//! Laws of a given mean: what the maximisation of EM becomes when the mean is held.

use super::Atom;

/// Most steps of a search for a root; each at least halves the interval or is Newton's.
const MAX_STEPS: u32 = 100;

/// The weights that maximise `sum shares ln(weight)` among those of sum 1 whose mean of `values` is
/// `mean`: `share / (1 + t (value - mean))`, with the one t that gives this mean. `t` is where the
/// search begins and what it found. `None` where no such weights are, as all values with a share lie
/// on one side of the mean. The shares sum to 1.
pub(super) fn weights(shares: &[f64], values: &[f64], mean: f64, t: &mut f64) -> Option<Vec<f64>> {
    let with_share = || shares.iter().zip(values).filter(|(share, _)| **share > 0.0);
    let low = with_share().map(|(_, v)| *v).fold(f64::INFINITY, f64::min);
    let high = with_share()
        .map(|(_, v)| *v)
        .fold(f64::NEG_INFINITY, f64::max);
    if !(low < mean && mean < high) {
        return None;
    }
    // Where all denominators are positive.
    let (from, to) = (-1.0 / (high - mean), 1.0 / (mean - low));
    *t = root(*t, from, to, |t| {
        let (mut value, mut slope) = (0.0, 0.0);
        for (share, v) in shares.iter().zip(values) {
            let off = v - mean;
            let part = off / (1.0 + t * off);
            value += share * part;
            slope -= share * part * part;
        }
        (value, slope)
    });
    let all = shares.iter().zip(values);
    Some(
        all.map(|(share, v)| share / (1.0 + *t * (v - mean)))
            .collect(),
    )
}

/// What an atom is found to be responsible for: bins (as a share of all), arrivals and exposure.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) weight: f64,
    pub(super) arrivals: f64,
    pub(super) exposure: f64,
}

/// The weights and rates that maximise `sum weight_share ln(weight) + arrivals ln(rate) - exposure
/// rate` among those whose weights sum to 1 and whose mean is `mean`. The shares' weights sum to 1.
/// `None` where none are found.
///
/// With t for the mean's multiplier and `keep = 1 - t mean`, the conditions of each atom are
/// `weight keep = share - arrivals + exposure rate` and a quadratic equation for the rate; t is then
/// the root that gives the mean.
pub(super) fn atoms(shares: &[Share], mean: f64) -> Option<Vec<Atom>> {
    let at = |t: f64| -> Option<Vec<Atom>> { shares.iter().map(|s| atom(*s, mean, t)).collect() };
    let excess =
        |atoms: &[Atom]| -> f64 { atoms.iter().map(|a| a.weight * a.rate).sum::<f64>() - mean };
    let free = at(0.0)?;
    let sign = if excess(&free) > 0.0 { 1.0 } else { -1.0 };
    let is_near = |atoms: &[Atom]| excess(atoms).abs() <= 1e-9 * mean;
    // From the side of the free atoms, whose excess has the sign; a place without atoms is too far.
    let is_short = |t: f64| at(t).is_some_and(|atoms| excess(&atoms) * sign > 0.0);
    let mut short = 0.0;
    let mut far = 1e-6 * sign / mean;
    for _ in 0..40 {
        if !is_short(far) {
            break;
        }
        (short, far) = (far, 2.0 * far);
    }
    for _ in 0..MAX_STEPS {
        let middle = f64::midpoint(short, far);
        if is_short(middle) {
            short = middle;
        } else {
            far = middle;
        }
    }
    at(short).filter(|atoms| is_near(atoms))
}

fn atom(share: Share, mean: f64, t: f64) -> Option<Atom> {
    let Share {
        weight,
        arrivals,
        exposure,
    } = share;
    let keep = 1.0 - t * mean;
    let middle = exposure * keep + t * (weight - arrivals);
    let root = (middle * middle + 4.0 * t * exposure * arrivals * keep).sqrt();
    // The root that becomes arrivals / exposure where t becomes 0.
    let rate = 2.0 * arrivals * keep / (middle + root);
    let weight = (weight - arrivals + exposure * rate) / keep;
    let is_one = keep > 0.0 && rate >= 0.0 && weight >= 0.0 && rate.is_finite();
    is_one.then_some(Atom { rate, weight })
}

/// The root of a decreasing function between two poles or bounds: Newton's steps, and halves of the
/// interval where they lead out of it.
fn root(start: f64, mut from: f64, mut to: f64, function: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut t = if from < start && start < to {
        start
    } else {
        f64::midpoint(from, to)
    };
    for _ in 0..MAX_STEPS {
        let (value, slope) = function(t);
        if value > 0.0 {
            from = t;
        } else {
            to = t;
        }
        let newton = t - value / slope;
        let next = if newton > from && newton < to {
            newton
        } else {
            f64::midpoint(from, to)
        };
        if (next - t).abs() <= 1e-13 * (to - from).abs().max(t.abs()) || !next.is_finite() {
            return t;
        }
        t = next;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_the_mean_and_are_the_likeliest() {
        let shares = [0.1, 0.2, 0.3, 0.4];
        let values = [1.0, 5.0, 6.0, 20.0];
        for mean in [1.5, 7.0, 10.9, 19.0] {
            let mut t = 0.0;
            let w = weights(&shares, &values, mean, &mut t).unwrap();
            let sum = |of: &dyn Fn(usize) -> f64| -> f64 { (0..4).map(of).sum() };
            assert!((sum(&|i| w[i]) - 1.0).abs() < 1e-9, "{w:?}");
            assert!((sum(&|i| w[i] * values[i]) - mean).abs() < 1e-8, "{w:?}");
            // Along a way on which sum and mean stay, it only becomes less likely.
            let log = |w: &[f64]| -> f64 { (0..4).map(|i| shares[i] * w[i].ln()).sum() };
            for sign in [1.0, -1.0] {
                let step = sign * 1e-4;
                let other = [w[0] + step, w[1] - 5.0 * step, w[2] + 4.0 * step, w[3]];
                assert!(log(&other) < log(&w) + 1e-12, "{mean}");
            }
        }
        let mut t = 0.0;
        for mean in [1.0, 0.5, 20.0, 25.0, f64::NAN] {
            assert_eq!(weights(&shares, &values, mean, &mut t), None);
        }
    }

    #[test]
    fn a_mean_that_is_there_changes_nothing() {
        let shares = [0.5, 0.5];
        let w = weights(&shares, &[2.0, 4.0], 3.0, &mut 0.1).unwrap();
        assert!((w[0] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn atoms_have_the_mean_and_are_the_likeliest() {
        let shares = [(0.5, 2.0, 0.4), (0.3, 9.0, 0.35), (0.2, 11.0, 0.25)];
        let shares = shares.map(|(weight, arrivals, exposure)| Share {
            weight,
            arrivals,
            exposure,
        });
        let log = |atoms: &[Atom]| -> f64 {
            let terms = atoms.iter().zip(&shares);
            terms
                .map(|(a, s)| {
                    s.weight * a.weight.ln() + s.arrivals * a.rate.ln() - s.exposure * a.rate
                })
                .sum()
        };
        for mean in [15.0, 18.0, 22.0, 30.0] {
            let found = atoms(&shares, mean).unwrap();
            let sum: f64 = found.iter().map(|a| a.weight).sum();
            assert!((sum - 1.0).abs() < 1e-7, "{found:?}");
            let is: f64 = found.iter().map(|a| a.weight * a.rate).sum();
            assert!((is / mean - 1.0).abs() < 1e-8, "{found:?}");
            // Weight from one atom to another, and the mean put right by a third one's rate.
            for (from, to, third) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
                for step in [1e-4, -1e-4] {
                    let mut other = found.clone();
                    other[from].weight -= step;
                    other[to].weight += step;
                    let off = step * (found[to].rate - found[from].rate);
                    other[third].rate -= off / found[third].weight;
                    assert!(log(&other) <= log(&found) + 1e-9, "{mean}");
                }
            }
        }
    }

    #[test]
    fn where_there_are_no_atoms_there_are_none() {
        assert!(atoms(&[Share::default()], 1.0).is_none());
        let share = Share {
            weight: 1.0,
            arrivals: f64::NAN,
            exposure: 1.0,
        };
        assert!(atoms(&[share], 1.0).is_none());
    }
}
