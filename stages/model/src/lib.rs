//! Arrivals that are correlated over several time scales: discrete-time Markov modulated Poisson
//! processes (dMMPP), fitted to counts and sampled again.
//!
//! Numbers only: no clock, no files, nothing of the network. Time is a number of bins.
//!
//! ```text
//! log ─ sessions ─► bins ─► Counts ─ fit ─► Model ─ sampler ─► rate of each bin
//!                             │              │ ▲
//!                             └─── check ────┘ └─ file (JSON)
//! ```
//!
//! A [`Model`] is a [`Superposition`] of [`Source`]s, with a [`Profile`] where there is a trend.
//! [`fit()`] makes it in four steps ([`fit`](mod@fit)), [`check`] compares it with counts, [`hurst`] their
//! long-range dependence; [`baseline`] has simpler processes for the comparison.
//!
//! Source: the MMPP engine of the Raw Packet Sender (Hryn, Jerzak, Chydzinski 2004, sec. 3.2),
//! Eqs. (1) to (7); the procedure has the four steps of Salvador, Valadas and Pacheco (2003).

#![forbid(unsafe_code)]

mod autocovariance;
pub mod baseline;
pub mod bins;
pub mod check;
pub mod counts;
pub mod coverage;
pub mod exponentials;
pub mod file;
pub mod fit;
pub mod hurst;
mod likelihood;
pub mod log;
mod marginal;
pub mod model;
mod number;
mod poisson;
pub mod profile;
mod provenance;
mod random;
mod sampler;
pub mod sessions;
pub mod source;
pub mod superposition;

pub use autocovariance::autocovariance;
pub use counts::Counts;
pub use file::ModelFileError;
pub use fit::{FitError, FitOptions, Fitted, fit};
pub use likelihood::log_likelihood;
pub use model::Model;
pub use profile::Profile;
pub use provenance::{Agreement, Provenance, Statistics};
pub use random::Random;
pub use sampler::Sampler;
pub use source::Source;
pub use superposition::Superposition;
