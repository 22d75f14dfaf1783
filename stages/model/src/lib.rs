//! Arrivals that are correlated over several time scales: discrete-time Markov modulated Poisson
//! processes (dMMPP), fitted to counts and sampled again.
//!
//! Numbers only: no clock, no files, nothing of the network. Time is a number of bins.
//!
//! Source: the MMPP engine of the Raw Packet Sender (Hryn, Jerzak, Chydzinski 2004, sec. 3.2),
//! Eqs. (1) to (7); the procedure has the four steps of Salvador, Valadas and Pacheco (2003).

#![forbid(unsafe_code)]

pub mod bins;
pub mod log;
mod random;
pub mod sessions;

pub use random::Random;
