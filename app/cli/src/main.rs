//! Measures, controls and generates network traffic.
#![forbid(unsafe_code)]
fn main() {}
