//! The console's page in a real browser, served by the real binary: `tests/browser/run.sh`.

use std::path::Path;
use std::process::Command;

#[test]
fn the_page_in_chromium() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/run.sh");
    let status = Command::new(script)
        .arg(env!("CARGO_BIN_EXE_linkweir"))
        .status()
        .unwrap();
    match status.code() {
        Some(0) => {}
        Some(77) => eprintln!(
            "SKIPPED: the page in a browser: chromium or playwright is missing (scripts/setup.sh test)"
        ),
        _ => panic!("the page does not do what it should: see above"),
    }
}
