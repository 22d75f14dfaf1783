//! Bounded keyed table, text pool and timer wheel.
#![forbid(unsafe_code)]
