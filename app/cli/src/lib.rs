//! What the command lines of `linkweir` and of `linkweir-lab` have in common: how a program ends and what
//! it says then, values with units, signals, the clock, the files that it writes once, and the words of `lab`.
#![forbid(unsafe_code)]

pub mod clock;
pub mod conflicts;
pub mod exit;
pub mod files;
pub mod lab;
pub mod panics;
pub mod signals;
pub mod units;
