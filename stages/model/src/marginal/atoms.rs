//! A law on a grid as few atoms.

use super::npmle::{Kernel, scaled_exp};
use super::tilt::{self, Share};
use super::{Observation, Offset};

/// A rate and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Atom {
    pub(crate) rate: f64,
    pub(crate) weight: f64,
}

/// Merges neighbours until at most `count` atoms are left, each time those whose merger costs least
/// beside the noise that a Poisson process has at that rate (Ward's criterion). Weight and mean stay.
pub(crate) fn reduce(rates: &[f64], law: &[f64], count: usize) -> Vec<Atom> {
    let atoms = rates.iter().zip(law).filter(|(_, w)| **w > 1e-6);
    let mut atoms: Vec<Atom> = atoms
        .map(|(rate, weight)| Atom {
            rate: *rate,
            weight: *weight,
        })
        .collect();
    while atoms.len() > count.max(1) {
        let pairs = atoms.iter().zip(atoms.iter().skip(1));
        let costs = pairs.map(|(a, b)| cost(*a, *b)).enumerate();
        let Some((at, _)) = costs.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            break;
        };
        let b = atoms.remove(at + 1);
        if let Some(a) = atoms.get_mut(at) {
            let weight = a.weight + b.weight;
            a.rate = (a.rate * a.weight + b.rate * b.weight) / weight;
            a.weight = weight;
        }
    }
    let total: f64 = atoms.iter().map(|atom| atom.weight).sum();
    atoms.iter_mut().for_each(|atom| atom.weight /= total);
    atoms
}

fn cost(a: Atom, b: Atom) -> f64 {
    let apart = b.rate - a.rate;
    let noise = 1.0 + (a.rate + b.rate) / 2.0;
    a.weight * b.weight / (a.weight + b.weight) * apart * apart / noise
}

/// Steps of EM on rates and weights of the atoms, with the offsets known and the mean of the atoms
/// held. Ends where a step gains nothing. Gives the atoms and the mean logarithm of the likelihood of
/// an observation.
pub(crate) fn fit_atoms(
    observations: &[Observation],
    offsets: &[Offset],
    mut atoms: Vec<Atom>,
    mean: f64,
    steps: u32,
) -> (Vec<Atom>, f64) {
    let mut best = f64::NEG_INFINITY;
    for _ in 0..steps {
        let (next, log_likelihood) = step(observations, offsets, &atoms, mean);
        let gain = log_likelihood - best;
        // The likelihood is that of the atoms that went in.
        best = log_likelihood;
        if gain.is_nan() || gain <= 1e-9 {
            return (atoms, best);
        }
        atoms = next;
    }
    let kernel = kernel(observations, offsets, &atoms);
    let law: Vec<f64> = atoms.iter().map(|atom| atom.weight).collect();
    (atoms, kernel.log_likelihood(&law))
}

fn kernel(observations: &[Observation], offsets: &[Offset], atoms: &[Atom]) -> Kernel {
    let rates: Vec<f64> = atoms.iter().map(|atom| atom.rate).collect();
    Kernel::new(observations, &rates, offsets)
}

fn step(
    observations: &[Observation],
    offsets: &[Offset],
    atoms: &[Atom],
    mean: f64,
) -> (Vec<Atom>, f64) {
    let kernel = kernel(observations, offsets, atoms);
    let law: Vec<f64> = atoms.iter().map(|atom| atom.weight).collect();
    let shares = shares(observations, offsets, atoms, &kernel);
    (maximised(shares, mean), kernel.log_likelihood(&law))
}

/// What each atom is responsible for (the E step).
fn shares(
    observations: &[Observation],
    offsets: &[Offset],
    atoms: &[Atom],
    kernel: &Kernel,
) -> Vec<Share> {
    let mut shares = vec![Share::default(); atoms.len()];
    let own: Vec<Vec<f64>> = atoms.iter().map(|atom| own_part(*atom, offsets)).collect();
    let mut of_offsets = vec![0.0; offsets.len()];
    for (o, (row, weight)) in observations.iter().zip(kernel.rows()) {
        let parts = row
            .iter()
            .zip(atoms)
            .map(|(entry, atom)| entry * atom.weight);
        let likelihood = parts.sum::<f64>().max(1e-300);
        for (((share, atom), entry), own) in shares.iter_mut().zip(atoms).zip(row).zip(&own) {
            let responsible = weight * atom.weight * entry / likelihood;
            if responsible < 1e-15 {
                continue;
            }
            // Within the atom: which offset was added, and so which part of the arrivals is its own.
            posterior(*o, *atom, offsets, &mut of_offsets);
            let part: f64 = of_offsets.iter().zip(own).map(|(a, b)| a * b).sum();
            share.weight += responsible;
            share.arrivals += responsible * o.count * part;
            share.exposure += responsible * o.exposure;
        }
    }
    shares
}

/// The atoms of largest likelihood for these shares and this mean (the M step). Atoms that are
/// responsible for nothing go. Where the mean cannot be held that way, it is by scaling.
fn maximised(shares: Vec<Share>, mean: f64) -> Vec<Atom> {
    let mut shares = shares;
    shares.retain(|share| share.weight > 1e-12);
    let total: f64 = shares.iter().map(|share| share.weight).sum();
    for share in &mut shares {
        share.weight /= total;
        share.arrivals /= total;
        share.exposure /= total;
    }
    if let Some(atoms) = tilt::atoms(&shares, mean) {
        return atoms;
    }
    let free = shares.iter().map(|share| Atom {
        rate: share.arrivals / share.exposure,
        weight: share.weight,
    });
    let mut free: Vec<Atom> = free.collect();
    let found: f64 = free.iter().map(|atom| atom.weight * atom.rate).sum();
    free.iter_mut().for_each(|atom| atom.rate *= mean / found);
    free
}

/// Which part of the arrivals is the atom's own at each offset.
fn own_part(atom: Atom, offsets: &[Offset]) -> Vec<f64> {
    let parts = offsets.iter();
    parts
        .map(|(offset, _)| atom.rate / (atom.rate + offset).max(1e-9))
        .collect()
}

/// The probability of each offset, given the observation and the atom.
fn posterior(o: Observation, atom: Atom, offsets: &[Offset], into: &mut [f64]) {
    if let [only] = into {
        *only = 1.0;
        return;
    }
    let mut top = f64::NEG_INFINITY;
    for (log, (offset, p)) in into.iter_mut().zip(offsets) {
        let rate = (atom.rate + offset).max(1e-9);
        *log = o.count * rate.ln() - o.exposure * rate + p.max(1e-300).ln();
        top = top.max(*log);
    }
    let mut total = 0.0;
    for log in into.iter_mut() {
        *log = scaled_exp(*log - top);
        total += *log;
    }
    into.iter_mut().for_each(|p| *p /= total);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poisson::ln_probability;

    #[test]
    fn mergers_keep_weight_and_mean() {
        let rates = [1.0, 2.0, 30.0, 31.0];
        let law = [0.1, 0.3, 0.2, 0.4];
        let atoms = reduce(&rates, &law, 2);
        assert_eq!(atoms.len(), 2);
        assert!((atoms[0].rate - 1.75).abs() < 1e-12);
        assert!((atoms[1].weight - 0.6).abs() < 1e-12);
        assert_eq!(reduce(&rates, &law, 0).len(), 1);
        assert_eq!(reduce(&rates, &law, 9).len(), 4);
    }

    fn observations(atoms: &[(f64, f64)], offsets: &[Offset], exposure: f64) -> Vec<Observation> {
        let at = |k: f64| -> f64 {
            let all = atoms
                .iter()
                .flat_map(|(rate, w)| offsets.iter().map(move |(o, p)| (rate + o, w * p)));
            all.map(|(rate, p)| p * ln_probability(k, exposure * rate).exp())
                .sum()
        };
        (0..400_u32)
            .map(|k| Observation {
                count: f64::from(k),
                exposure,
                weight: at(f64::from(k)) / 2.0,
            })
            .filter(|o| o.weight > 1e-13)
            .collect()
    }

    #[test]
    fn known_atoms_are_found_whatever_the_exposure() {
        let offsets = [(0.0, 0.6), (25.0, 0.4)];
        let known = [(8.0, 0.3), (60.0, 0.7)];
        let mut seen = observations(&known, &offsets, 1.0);
        seen.extend(observations(&known, &offsets, 2.5));
        let start = [(3.0, 0.5), (90.0, 0.5)].map(|(rate, weight)| Atom { rate, weight });
        let (atoms, likelihood) = fit_atoms(&seen, &offsets, start.to_vec(), 44.4, 3000);
        for (atom, (rate, weight)) in atoms.iter().zip(known) {
            assert!((atom.rate - rate).abs() < 0.05, "{atoms:?}");
            assert!((atom.weight - weight).abs() < 0.005, "{atoms:?}");
        }
        // No law is likelier than the one it came from.
        let entropy: f64 = seen.iter().map(|o| o.weight * (2.0 * o.weight).ln()).sum();
        assert!(
            (likelihood - entropy).abs() < 1e-5,
            "{likelihood} {entropy}"
        );
    }
}
