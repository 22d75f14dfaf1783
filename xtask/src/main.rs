//! Tasks of the project.
#![forbid(unsafe_code)]
fn main() {}
