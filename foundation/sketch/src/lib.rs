//! Mergeable sketches: log-linear histogram, top-k, rate series.
#![forbid(unsafe_code)]
