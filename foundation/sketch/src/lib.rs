//! Mergeable sketches: bounded memory for any number of values.
//!
//! Every sketch here merges by addition, so that workers share nothing and what they saw is joined
//! at the end of a run: [`LogLinear`] (a histogram with quantiles), [`TopK`] (the most frequent keys),
//! [`RateSeries`] (events over time), [`BoundedCounts`] (counters of a few keys), [`Coarse`] (a small
//! histogram for each of many keys), and [`CoarseSeries`] (one for each of many bins of time).
#![forbid(unsafe_code)]

pub mod archive;
mod bounded_counts;
pub mod cells;
mod coarse;
mod coarse_series;
mod log_linear;
mod rate_series;
pub mod step;
mod top_k;

pub use bounded_counts::BoundedCounts;
pub use cells::CellSet;
pub use coarse::Coarse;
pub use coarse_series::CoarseSeries;
pub use log_linear::LogLinear;
pub use rate_series::RateSeries;
pub use step::Step;
pub use top_k::{Payload, TopEntry, TopK, TopPart};
