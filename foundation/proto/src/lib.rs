//! Layer 7 parsers.
#![forbid(unsafe_code)]
