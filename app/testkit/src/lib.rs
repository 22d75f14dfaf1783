//! Builders of traffic and captures for tests and benches.
#![forbid(unsafe_code)]

pub mod capture_writer;
