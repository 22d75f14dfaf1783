//! The console's page in a real browser, served by the real binary: `tests/browser/run.sh`.

use std::path::Path;
use std::process::Command;

use linkweir_testkit::mmdb::{self, Value};

/// A database of the addresses of `tests/browser/flow_traffic.py`: clients and servers are in 10.0.0.0/8.
fn enterprise() -> Vec<u8> {
    let place = |country, asn| {
        let country = Value::Map(vec![("iso_code", Value::Text(country))]);
        let system = Value::Map(vec![("autonomous_system_number", Value::U32(asn))]);
        Value::Map(vec![("country", country), ("traits", system)])
    };
    let networks = [
        ("10.0.0.0/12", place("NL", 64_500)),
        ("10.16.0.0/12", place("DE", 64_501)),
    ];
    mmdb::database("GeoIP2-Enterprise", &networks)
}

#[test]
fn the_page_in_chromium() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/run.sh");
    // Where the addresses of `flow_traffic.py` are.
    let directory = tempfile::tempdir().unwrap();
    let geoip = directory.path().join("enterprise.mmdb");
    std::fs::write(&geoip, enterprise()).unwrap();
    let status = Command::new(script)
        .arg(env!("CARGO_BIN_EXE_linkweir"))
        .env("GEOIP", &geoip)
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
