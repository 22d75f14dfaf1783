//! Record formats, atomic files, summary and report.
#![forbid(unsafe_code)]
