//! `linkweir_testkit::peers` by hand: `cargo run -p linkweir-testkit --example peer -- serve msn ...`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(linkweir_testkit::peers::run(&words))
}
