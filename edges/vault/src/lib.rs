//! Files recorded from the traffic, bounded and atomic.
#![forbid(unsafe_code)]
