//! Mergeable sketches: bounded memory for any number of values.
//!
//! Every sketch here merges by addition, so that workers share nothing and what they saw is joined
//! at the end of a run: [`LogLinear`] (a histogram with quantiles).
#![forbid(unsafe_code)]

mod log_linear;

pub use log_linear::LogLinear;
