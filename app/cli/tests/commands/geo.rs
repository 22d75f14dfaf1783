//! `--geoip`: countries and AS numbers in records, and files that are none.

use std::path::PathBuf;

use linkweir_testkit::mmdb;
use serde_json::Value;

use crate::common::{demo, run};

/// Two files: a country of the clients, with another one for one of them, and a number of the server.
pub(crate) fn databases() -> (tempfile::TempDir, [PathBuf; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let city = mmdb::database(
        "GeoLite2-City",
        &[
            ("10.80.0.8/30", mmdb::country("NL")),
            ("10.80.0.12/32", mmdb::country("ES")),
        ],
    );
    let asn = mmdb::database("GeoLite2-ASN", &[("10.80.0.1/32", mmdb::asn(64_500))]);
    let paths = ["city.mmdb", "asn.mmdb"].map(|name| directory.path().join(name));
    for (path, bytes) in paths.iter().zip([city, asn]) {
        std::fs::write(path, bytes).unwrap();
    }
    (directory, paths)
}

fn records(command: &str, more: &[&str]) -> Vec<Value> {
    let demo = demo();
    let words = [
        &[
            command,
            "-q",
            "-r",
            demo.to_str().unwrap(),
            "-w",
            "-",
            "--format",
            "jsonl",
        ][..],
        more,
    ];
    let ran = run(&words.concat()).exits(0);
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn records_have_the_places_of_both_ends() {
    let (directory, [city, asn]) = databases();
    let key = directory.path().join("key");
    std::fs::write(&key, [7; 32]).unwrap();
    let geoip = [
        "--geoip",
        city.to_str().unwrap(),
        "--geoip",
        asn.to_str().unwrap(),
    ];
    let hidden = [&geoip[..], &["--anonymize", key.to_str().unwrap()]].concat();
    let places = [
        "client_country",
        "client_asn",
        "server_country",
        "server_asn",
    ];
    for (command, client, server) in [
        ("http", "client_ip", "server_ip"),
        ("flows", "c_ip", "s_ip"),
    ] {
        let plain = records(command, &[]);
        assert!(
            plain
                .iter()
                .all(|one| places.iter().all(|name| one[name].is_null()))
        );
        let placed = records(command, &geoip);
        assert_eq!(placed.len(), plain.len());
        let mut countries = 0;
        for (before, after) in plain.iter().zip(&placed) {
            assert_eq!(before[client], after[client]);
            let country = match after[client].as_str().unwrap() {
                "10.80.0.11" => Value::from("NL"),
                "10.80.0.12" => Value::from("ES"),
                _ => Value::Null,
            };
            countries += usize::from(!country.is_null());
            let number = match after[server].as_str().unwrap() {
                "10.80.0.1" => Value::from(64_500),
                _ => Value::Null,
            };
            let wanted = [country, Value::Null, Value::Null, number];
            assert_eq!(places.map(|name| after[name].clone()), wanted, "{after}");
        }
        assert!(countries > 10, "{countries}");
        // Those of the addresses before they are replaced.
        let of = |records: &[Value]| -> Vec<[Value; 4]> {
            let read = |one: &Value| places.map(|name| one[name].clone());
            records.iter().map(read).collect()
        };
        let hidden = records(command, &hidden);
        assert_eq!(of(&hidden), of(&placed));
        assert!(hidden.iter().zip(&placed).all(|(one, other)| {
            one[client] != other[client]
                && one["community_id"] != other["community_id"]
                && one["uid"] != other["uid"]
        }));
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_by_its_name() {
    let (directory, [city, _]) = databases();
    let broken = directory.path().join("broken.mmdb");
    let mut bytes = std::fs::read(&city).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&broken, bytes).unwrap();
    let missing = directory.path().join("missing.mmdb");
    let other = directory.path().join("other.mmdb");
    std::fs::write(&other, mmdb::database("GeoIP2-Domain", &[])).unwrap();
    for (path, why) in [
        (&broken, "broken.mmdb: "),
        (&missing, "missing.mmdb: "),
        (&other, "neither countries nor AS numbers"),
    ] {
        for command in ["http", "flows"] {
            let demo = demo();
            let words = [
                command,
                "-r",
                demo.to_str().unwrap(),
                "--geoip",
                city.to_str().unwrap(),
                "--geoip",
                path.to_str().unwrap(),
            ];
            let ran = run(&words).exits(2);
            assert!(
                ran.stderr.contains("--geoip") && ran.stderr.contains(why),
                "{}",
                ran.stderr
            );
        }
    }
}
