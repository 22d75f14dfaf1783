//! Many time scales to few.

use super::Term;

/// Merges neighbours, by their time constants, until at most `count` terms are left: each time the
/// pair whose merger moves the least weight the least way on the logarithmic scale. Amplitudes add.
pub(super) fn merge(mut terms: Vec<Term>, count: usize) -> Vec<Term> {
    terms.sort_by(|a, b| a.tau.total_cmp(&b.tau));
    while terms.len() > count.max(1) {
        let pairs = terms.iter().zip(terms.iter().skip(1));
        let costs = pairs.map(|(a, b)| cost(*a, *b)).enumerate();
        let Some((at, _)) = costs.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            break;
        };
        let second = terms.remove(at + 1);
        if let Some(first) = terms.get_mut(at) {
            *first = merged(*first, second);
        }
    }
    terms
}

fn cost(a: Term, b: Term) -> f64 {
    let apart = b.tau.ln() - a.tau.ln();
    a.amplitude * b.amplitude / (a.amplitude + b.amplitude) * apart * apart
}

fn merged(a: Term, b: Term) -> Term {
    let amplitude = a.amplitude + b.amplitude;
    let tau = (a.amplitude * a.tau.ln() + b.amplitude * b.tau.ln()) / amplitude;
    Term {
        amplitude,
        tau: tau.exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_merged() {
        let term = |amplitude, tau| Term { amplitude, tau };
        let terms = vec![term(1.0, 100.0), term(2.0, 1.0), term(1.0, 110.0)];
        let merged = merge(terms.clone(), 2);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0], term(2.0, 1.0));
        assert_eq!(merged[1].amplitude, 2.0);
        assert!((merged[1].tau - f64::sqrt(11_000.0)).abs() < 1e-9);
        assert_eq!(merge(terms.clone(), 5).len(), 3);
        assert_eq!(merge(terms, 0).len(), 1);
    }
}
