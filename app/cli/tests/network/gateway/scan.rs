//! `linkweir gateway`: what clamd finds does not arrive, wherever in the file it is.

use super::site;

use std::fs;
use std::path::Path;

use linkweir_testkit::clamd::{Clamd, EICAR, EICAR_NAME};
use linkweir_testkit::gateway::Place;
use linkweir_testkit::icap::{CIcap, Unavailable};
use linkweir_testkit::peers;
use site::{CURL_RESET, Site, at, noise, same, sha256, url};

const WINDOW: usize = 32 * 1024;
const LENGTH: usize = 150_000;

/// Both, or a loud word about why not.
fn open() -> Option<(Site, Clamd)> {
    let clamd = Clamd::start()
        .map_err(|error| crate::common::skipped(&error.to_string()))
        .ok()?;
    Some((Site::open(&[])?, clamd))
}

fn policy(clamd: &Clamd, window: &str, more: &str) -> String {
    let socket = clamd.socket();
    format!(
        "[scanner.clamd]\naddress = \"{}\"\nwindow = \"{window}\"\ntail = \"1KiB\"\ntimeout = \"5s\"\n\
         [[rule]]\nname = \"files\"\napplication = [\"http\", \"fasttrack\", \"gnutella\", \"msnftp\"]\n\
         action = \"inspect\"\nscan = \"clamd\"\naudit = true\nquarantine = true\n{more}\n",
        socket.display()
    )
}

fn infected(offset: usize) -> Vec<u8> {
    let mut bytes = noise(LENGTH);
    bytes[offset..offset + EICAR.len()].copy_from_slice(&EICAR);
    bytes
}

fn has_eicar(bytes: &[u8]) -> bool {
    bytes.windows(EICAR.len()).any(|window| window == *EICAR)
}

/// What came is not the whole file: the last packet of a window waits for the verdict on it.
#[track_caller]
fn is_harmless(out: &Path, what: &str) {
    let came = fs::read(out).unwrap_or_default();
    assert!(came.len() < LENGTH, "{what}: all came");
}

/// The copies that were kept; beside each is a description, which has no signature.
fn quarantined(site: &Site) -> Vec<Vec<u8>> {
    let directory = fs::read_dir(site.path("quarantine")).unwrap();
    let paths = directory.map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.is_file());
    let files = files.map(|path| fs::read(path).unwrap());
    files.filter(|bytes| has_eicar(bytes)).collect()
}

#[test]
fn at_every_offset_around_the_windows_end_by_http() {
    let Some((site, clamd)) = open() else { return };
    let gateway = site.gateway(&policy(&clamd, "32KiB", ""));
    let size = EICAR.len();
    let offsets = [
        0,
        1,
        WINDOW - size - 1,
        WINDOW - size,
        WINDOW - size + 1,
        WINDOW - size / 2,
        WINDOW - 1,
        WINDOW,
        WINDOW + 1,
        2 * WINDOW - 1024 - size / 2,
        2 * WINDOW - 30,
        LENGTH - size,
    ];
    for offset in offsets {
        let name = format!("at-{offset}");
        site.nginx.put(&name, &infected(offset)).unwrap();
        for way in ["plain", "chunked"] {
            let (code, out) = site.curl(0, &url(&format!("{way}/{name}")), "out", &[]);
            let what = format!("{way} at {offset}");
            assert_eq!(code, CURL_RESET, "{what}");
            is_harmless(&out, &what);
        }
    }
    let clean = noise(LENGTH);
    let file = site.nginx.put("clean", &clean).unwrap();
    let (code, out) = site.curl(0, &url("plain/clean"), "out", &[]);
    assert_eq!(code, 0);
    same(&out, &clean);

    let events = gateway.end();
    let found = events.of("infected");
    assert_eq!(found.len(), 2 * offsets.len(), "{found:#?}");
    assert!(
        found.iter().all(|event| event["detail"] == EICAR_NAME),
        "{found:#?}"
    );
    let clean = events.one("file", "file_name", "clean");
    assert_eq!(clean["verdict"], "clean", "{clean:#}");
    assert_eq!(clean["sha256"], sha256(&file), "{clean:#}");
    let copies = quarantined(&site);
    assert_eq!(copies.len(), 2 * offsets.len());
}

#[test]
fn of_a_file_that_is_held_nothing_arrives_before_its_verdict() {
    let Some((site, clamd)) = open() else { return };
    let long = noise(6 << 20);
    site.nginx.put("clean", &long).unwrap();
    let too_long = noise(10 << 20);
    site.nginx.put("too-long", &too_long).unwrap();
    site.nginx.put("infected", &infected(100)).unwrap();
    for window in ["32KiB", "file"] {
        let policy = policy(&clamd, window, "")
            .replace("scan = \"clamd\"", "scan = { hold = \"file\" }")
            .replace("[[rule]]", "max-scan = \"25MiB\"\n[[rule]]");
        let gateway = site.gateway(&policy);
        for way in ["plain", "chunked"] {
            let (code, out) = site.curl(0, &url(&format!("{way}/infected")), "out", &[]);
            assert_eq!(code, CURL_RESET, "{window}, {way}");
            assert_eq!(fs::read(&out).unwrap_or_default(), b"", "{window}, {way}");
            let (code, out) = site.curl(0, &url(&format!("{way}/clean")), "out", &[]);
            assert_eq!(code, 0, "{window}, {way}");
            same(&out, &long);
        }
        // More than may be held, which the rule says passes as it comes.
        let (code, out) = site.curl(0, &url("plain/too-long"), "out", &[]);
        assert_eq!(code, 0, "{window}");
        same(&out, &too_long);
        let events = gateway.end();
        assert_eq!(events.of("infected").len(), 2, "{window}");
        assert_eq!(events.of("limit").len(), 1, "{window}");
        let clean = events
            .of("file")
            .into_iter()
            .filter(|event| event["verdict"] == "clean");
        assert_eq!(clean.count(), 3, "{window}");
    }
}

#[test]
fn by_the_transfers_of_file_sharing() {
    let Some((site, clamd)) = open() else { return };
    let gateway = site.gateway(&policy(&clamd, "32KiB", ""));
    let cases = [
        0,
        WINDOW - EICAR.len() / 2,
        2 * WINDOW,
        LENGTH - EICAR.len(),
    ];
    let mut port = 4300;
    for protocol in ["fasttrack", "gnutella", "msnftp"] {
        for (number, offset) in cases.into_iter().map(Some).chain([None]).enumerate() {
            port += 1;
            let bytes = offset.map_or_else(|| noise(LENGTH), infected);
            let file = site.put(&format!("{protocol}-{number}.zip"), &bytes);
            let words = [
                "serve",
                protocol,
                "--listen",
                &at(port),
                "--file",
                file.to_str().unwrap(),
            ];
            let _server = site.serve(Place::Server, &words);
            let words = ["fetch", protocol, "--connect", &at(port), "--out", "out"];
            let (code, said) = site.fetch(&words);
            let what = format!("{protocol} at {offset:?}: {said}");
            if offset.is_some() {
                assert_eq!(code, peers::RESET, "{what}");
                is_harmless(&site.path("out"), &what);
            } else {
                assert_eq!(code, peers::COMPLETE, "{what}");
                same(&site.path("out"), &bytes);
            }
        }
    }
    let events = gateway.end();
    for protocol in ["fasttrack", "gnutella", "msnftp"] {
        let found = events.of("infected");
        let found = found
            .iter()
            .filter(|event| event["application"] == protocol);
        assert_eq!(found.count(), cases.len(), "{protocol}");
        let files = events.of("file");
        let clean = files
            .iter()
            .filter(|event| event["application"] == protocol && event["verdict"] == "clean");
        assert_eq!(clean.count(), 1, "{protocol}: {files:#?}");
    }
    assert_eq!(quarantined(&site).len(), 3 * cases.len());
}

/// HTTP/2 without keys: wherever in the file, and while another stream of the connection goes on.
#[test]
fn by_http2_of_prior_knowledge() {
    let Some((site, clamd)) = open() else { return };
    let gateway = site.gateway(&policy(&clamd, "32KiB", ""));
    let h2 = ["--http2-prior-knowledge"];
    let there = |name: &str| format!("http://{}/plain/{name}", at(8002));
    let offsets = [0, WINDOW - EICAR.len() / 2, WINDOW, LENGTH - EICAR.len()];
    for offset in offsets {
        let name = format!("h2-{offset}");
        site.nginx.put(&name, &infected(offset)).unwrap();
        let (code, out) = site.curl(0, &there(&name), "out", &h2);
        assert_eq!(code, CURL_RESET, "at {offset}");
        is_harmless(&out, &name);
    }
    let clean = noise(LENGTH);
    let file = site.nginx.put("clean", &clean).unwrap();
    let (code, out) = site.curl(0, &there("clean"), "out", &h2);
    assert_eq!(code, 0);
    same(&out, &clean);

    // Two files at the same time on one connection; what arrives of them comes mixed.
    let other = noise(6 << 20);
    let other_file = site.nginx.put("other", &other).unwrap();
    let mut nghttp = site.net.command(Place::Client, "nghttp");
    let both = nghttp
        .args([there("clean"), there("other")])
        .output()
        .unwrap();
    assert!(
        both.status.success(),
        "{}",
        String::from_utf8_lossy(&both.stderr)
    );
    assert_eq!(both.stdout.len(), clean.len() + other.len());

    let events = gateway.end();
    let found = events.of("infected");
    assert_eq!(found.len(), offsets.len(), "{found:#?}");
    for event in found {
        assert_eq!(event["application"], "http2", "{event:#}");
        assert_eq!(event["detail"], EICAR_NAME, "{event:#}");
    }
    let files = events.of("file");
    let clean: Vec<_> = files.iter().filter(|e| e["file_name"] == "clean").collect();
    assert_eq!(clean.len(), 2, "{files:#?}");
    for event in clean {
        assert_eq!(event["verdict"], "clean", "{event:#}");
        assert_eq!(event["sha256"], sha256(&file), "{event:#}");
    }
    let other = events.one("file", "file_name", "other");
    assert_eq!(
        (&other["verdict"], &other["sha256"]),
        (&"clean".into(), &sha256(&other_file).into())
    );
    assert_eq!(quarantined(&site).len(), offsets.len());
}

/// The whole file goes to the scanner before its end goes to the client.
#[test]
fn whole_files() {
    let Some((site, clamd)) = open() else { return };
    let gateway = site.gateway(&policy(&clamd, "file", ""));
    for offset in [10, WINDOW - 20, LENGTH - EICAR.len()] {
        site.nginx.put("bad", &infected(offset)).unwrap();
        let (code, out) = site.curl(0, &url("plain/bad"), "out", &[]);
        assert_eq!(code, CURL_RESET, "{offset}");
        let came = fs::read(out).unwrap_or_default();
        assert!(came.len() < LENGTH, "{offset}: all came");
    }
    let clean = noise(3_000_000);
    site.nginx.put("clean", &clean).unwrap();
    let (code, out) = site.curl(0, &url("plain/clean"), "out", &[]);
    assert_eq!(code, 0);
    same(&out, &clean);
    let events = gateway.end();
    assert_eq!(events.of("infected").len(), 3);
    assert_eq!(events.one("file", "file_name", "clean")["verdict"], "clean");
}

#[test]
fn without_clamd_the_policy_says_what_passes() {
    let Some((site, mut clamd)) = open() else {
        return;
    };
    let bytes = noise(LENGTH);
    site.nginx.put("file", &bytes).unwrap();
    clamd.stop();

    let gateway = site.gateway(&policy(&clamd, "32KiB", ""));
    let (code, out) = site.curl(0, &url("plain/file"), "out", &[]);
    assert_eq!(code, 0, "open");
    same(&out, &bytes);
    gateway.reload(&policy(&clamd, "32KiB", "fail = \"closed\""));
    let (code, out) = site.curl(0, &url("plain/file"), "out", &[]);
    assert_eq!(code, CURL_RESET, "closed");
    assert!(fs::read(out).unwrap_or_default().len() < LENGTH);
    // When it is back, it is asked again.
    clamd.restart().unwrap();
    let is_back = || site.curl(0, &url("plain/file"), "out", &[]).0 == 0;
    assert!(linkweir_testkit::netns::until(site::PATIENCE, is_back));

    let events = gateway.end();
    let unscanned = events.of("unscanned");
    assert!(unscanned.len() >= 2, "{unscanned:#?}");
    let files = events.of("file");
    let verdict = |word: &str| files.iter().filter(|e| e["verdict"] == word).count();
    assert_eq!(verdict("unscanned"), 1, "{files:#?}");
    assert_eq!(verdict("clean"), 1, "{files:#?}");
}

/// The whole way: nginx, gateway, c-icap, its virus scanner, clamd; and what becomes of files once c-icap has ended.
#[test]
fn by_an_icap_service() {
    let Some((site, clamd)) = open() else { return };
    let at_gateway = |program: &str| site.net.command(Place::Gateway, program);
    let icap = match CIcap::start(&clamd, 1344, at_gateway) {
        Ok(icap) => icap,
        Err(missing @ Unavailable::Missing(_)) => {
            return crate::common::skipped(&missing.to_string());
        }
        Err(failed) => panic!("{failed}"),
    };
    let policy = "[scanner.icap]\naddress = \"127.0.0.1:1344\"\nservice = \"virus_scan\"\nwindow = \"file\"\ntimeout = \"5s\"\n\
         [[rule]]\nname = \"files\"\napplication = \"http\"\naction = \"inspect\"\nscan = \"icap\"\naudit = true\n\
         quarantine = true\nfail = \"closed\"\n";
    let clean = noise(LENGTH);
    let file = site.nginx.put("clean", &clean).unwrap();
    site.nginx.put("bad", &infected(LENGTH / 2)).unwrap();
    let gateway = site.gateway(policy);
    let held = policy.replace("scan = \"icap\"", "scan = { hold = \"file\" }");
    for (policy, is_held) in [(policy, false), (held.as_str(), true)] {
        if is_held {
            gateway.reload(policy);
        }
        for way in ["plain", "chunked"] {
            let what = format!("{way}, held: {is_held}");
            let (code, out) = site.curl(0, &url(&format!("{way}/bad")), "out", &[]);
            assert_eq!(code, CURL_RESET, "{what}");
            let came = fs::read(out).unwrap_or_default().len();
            assert!(came < if is_held { 1 } else { LENGTH }, "{what}: {came}");
            let (code, out) = site.curl(0, &url(&format!("{way}/clean")), "out", &[]);
            assert_eq!(code, 0, "{what}");
            same(&out, &clean);
        }
    }
    let status: serde_json::Value =
        serde_json::from_str(&gateway.status_with(&["--json"])).unwrap();
    let scanner = &status["scanner"];
    assert_eq!(
        (&scanner["infected"], &scanner["scans"]),
        (&4.into(), &8.into()),
        "{scanner}"
    );
    let version = scanner["version"].as_str().unwrap_or_default();
    assert!(version.contains("C-ICAP"), "{scanner}");
    drop(icap);
    let (code, out) = site.curl(0, &url("plain/clean"), "out", &[]);
    assert_eq!(code, CURL_RESET, "without c-icap");
    is_harmless(&out, "without c-icap");

    let events = gateway.end();
    let found = events.of("infected");
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(
        found.iter().all(|event| event["detail"] == EICAR_NAME),
        "{found:#?}"
    );
    let files = events.of("file");
    let passed: Vec<_> = files
        .iter()
        .filter(|file| file["verdict"] == "clean")
        .collect();
    assert_eq!(passed.len(), 4, "{files:#?}");
    assert!(
        passed.iter().all(|event| event["sha256"] == sha256(&file)),
        "{passed:#?}"
    );
    assert_eq!(events.of("unscanned").len(), 1);
    assert_eq!(quarantined(&site).len(), 4);
}
