//! HTTP transactions without TCP reassembly.
#![forbid(unsafe_code)]
