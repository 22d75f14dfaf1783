//! Which client a session has: every client once, in an order that looks random, then again in
//! another order.
//!
//! The order is a pseudo-random permutation that is computed and not stored: a Feistel network over
//! the least even number of bits that holds all clients, and walking on along its cycle from a
//! number that is none (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").

use linkweir_model::Random;

use crate::seam::Client;

/// Rounds of the network; four make it look random to whoever may ask both ways (Luby and Rackoff).
const ROUNDS: u64 = 4;

/// The permutations of a population.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampler {
    clients: u32,
    /// Bits of one half.
    half: u32,
    seed: u64,
}

impl Sampler {
    /// For so many clients, at most 2^31.
    pub(super) const fn new(clients: u32, seed: u64) -> Self {
        let bits = u32::BITS - clients.saturating_sub(1).leading_zeros();
        let half = bits.div_ceil(2);
        Self {
            clients,
            half: if half == 0 { 1 } else { half },
            seed,
        }
    }

    /// The client of session number `session`.
    pub(super) fn pick(&self, session: u64) -> Client {
        let clients = u64::from(self.clients.max(1));
        let (turn, place) = (session / clients, session % clients);
        let mut number = place;
        loop {
            number = self.permute(number, turn);
            // The domain is less than four times the clients, so that a few steps lead back.
            if number < clients {
                return Client::try_from(number).unwrap_or(0);
            }
        }
    }

    fn permute(&self, number: u64, turn: u64) -> u64 {
        let mask = (1_u64 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for round in 0..ROUNDS {
            let key = turn.wrapping_mul(ROUNDS).wrapping_add(round);
            let mixed = Random::part(self.seed ^ key.rotate_right(16), right).bits();
            (left, right) = (right, left ^ (mixed >> 32 & mask));
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(clients: u32, seed: u64, from: u64) -> Vec<Client> {
        let sampler = Sampler::new(clients, seed);
        (from..from + u64::from(clients))
            .map(|k| sampler.pick(k))
            .collect()
    }

    proptest! {
        #[test]
        fn every_client_comes_once_a_turn(clients in 1_u32..3000, seed: u64, turn in 0_u64..1 << 40) {
            let mut all = order(clients, seed, turn * u64::from(clients));
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..clients));
        }
    }

    #[test]
    fn seeds_and_turns_have_orders_of_their_own() {
        assert_eq!(order(1000, 7, 0), order(1000, 7, 0));
        assert_ne!(order(1000, 7, 0), order(1000, 8, 0));
        assert_ne!(order(1000, 7, 0), order(1000, 7, 1000));
    }

    #[test]
    fn a_part_of_the_sessions_is_spread_over_all_clients() {
        // 10 000 sessions of a million clients, in 16 equal parts: 625 each, deviation about 24.
        let sampler = Sampler::new(1_000_000, 3);
        let mut parts = [0_i32; 16];
        for k in 0..10_000 {
            parts[sampler.pick(k) as usize / 62_500] += 1;
        }
        assert!(parts.iter().all(|n| (n - 625).abs() < 120), "{parts:?}");
        // Neighbours in time are none in space.
        let ascending = (0..10_000_u64).filter(|&k| sampler.pick(k) < sampler.pick(k + 1));
        let ascending = ascending.count();
        assert!((4800..5200).contains(&ascending), "{ascending}");
    }

    #[test]
    fn the_largest_population_works() {
        let sampler = Sampler::new(1 << 31, 1);
        let picked: std::collections::HashSet<_> = (0..10_000).map(|k| sampler.pick(k)).collect();
        assert_eq!(picked.len(), 10_000);
        assert_eq!(Sampler::new(1, 1).pick(u64::MAX), 0);
    }
}
