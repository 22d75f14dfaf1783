//! Capture files of every format and compression.
#![forbid(unsafe_code)]
