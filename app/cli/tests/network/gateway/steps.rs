//! `linkweir gateway`: what packets take at each step, and a queue that waits for scans.

use std::collections::BTreeMap;

use linkweir_testkit::clamd::Clamd;
use linkweir_testkit::gateway::Place;
use serde_json::Value;

use super::site::{self, Gateway, Site, noise, timed, url};

/// Connections that end after a small file: of their packets some are timed while they are classified.
const SMALL: usize = 400;
/// Bytes of a file of many windows.
const LARGE: usize = 4 << 20;

fn open() -> Option<(Site, Clamd)> {
    let clamd = Clamd::start()
        .map_err(|error| crate::common::skipped(&error.to_string()))
        .ok()?;
    let site = Site::open(&[])?;
    site.nginx.put("small", &noise(500)).unwrap();
    site.nginx.put("large", &noise(LARGE)).unwrap();
    Some((site, clamd))
}

fn policy(clamd: &Clamd) -> String {
    format!(
        "[scanner.clamd]\naddress = \"{}\"\nwindow = \"32KiB\"\ntail = \"1KiB\"\ntimeout = \"5s\"\n\
         [[rule]]\nname = \"files\"\napplication = [\"http\"]\naction = \"inspect\"\nscan = \"clamd\"\n\
         keywords = [\"absent\"]\n",
        clamd.socket().display()
    )
}

/// Downloads one after the other, over a connection each.
fn download(site: &Site, path: &str) {
    let mut curl = site.net.command(Place::Client, "curl");
    curl.args([
        "-s",
        "-f",
        "-m",
        "60",
        "-H",
        "Connection: close",
        "-o",
        "/dev/null",
    ]);
    let status = curl.arg(url(path)).status().unwrap();
    assert_eq!(status.code(), Some(0), "{path}");
}

/// What each step says.
fn steps(gateway: &Gateway<'_>) -> BTreeMap<String, [u64; 3]> {
    let status: Value = serde_json::from_str(&gateway.status_with(&["--json"])).unwrap();
    let steps = status["steps"].as_array().unwrap();
    let number = |step: &Value, name: &str| step[name].as_u64().unwrap();
    let step = |step: &Value| {
        let numbers = ["samples", "sum_ns", "mean_ns"].map(|name| number(step, name));
        (step["step"].as_str().unwrap().to_owned(), numbers)
    };
    steps.iter().map(step).collect()
}

#[test]
fn every_step_of_a_packet_is_timed_and_a_scan_is_the_longest() {
    let Some((site, clamd)) = open() else { return };
    let gateway = site.gateway(&policy(&clamd));
    let (elapsed, ()) = timed(|| {
        download(&site, &format!("plain/small?[1-{SMALL}]"));
        download(&site, "plain/large");
    });
    let text = gateway.status();
    let steps = steps(&gateway);
    let names: Vec<_> = steps.keys().map(String::as_str).collect();
    let all = [
        "classify", "hold", "inspect", "queue", "scan", "total", "track", "verdict",
    ];
    assert_eq!(names, all, "{text}");
    assert!(steps.values().all(|[samples, ..]| *samples > 0), "{text}");
    // The parts of the timed packets are the whole of them.
    let parts = ["queue", "track", "classify", "inspect", "hold", "verdict"];
    let sum: u64 = parts.iter().map(|name| steps[*name][1]).sum();
    let [samples, total, _] = steps["total"];
    assert_eq!(sum, total, "{text}");
    assert_eq!(steps["queue"][0], samples, "{text}");
    // No packet of theirs was longer under way than the downloads took, the gateway's own time included.
    let most = u64::try_from(elapsed.as_nanos()).unwrap() + 1_000_000_000;
    assert!(total / samples < most, "{text}");
    let [scans, _, scan] = steps["scan"];
    assert!(scans >= (LARGE >> 17) as u64, "{text}");
    for other in ["queue", "track", "classify", "inspect", "verdict"] {
        assert!(scan > steps[other][2], "{other}: {text}");
    }
    for name in all {
        let is_row = |line: &str| line.trim_start().starts_with(&format!("{name} "));
        assert!(text.lines().any(is_row), "{name}: {text}");
    }
    // One packet of 61 is timed.
    let status: Value = serde_json::from_str(&gateway.status_with(&["--json"])).unwrap();
    let packets = status["packets"].as_u64().unwrap();
    assert!(
        samples.abs_diff(packets / 61) <= 2,
        "{samples} of {packets}"
    );
    gateway.end();
}

/// With scans that the queue waits for all comes as well; it is there to be compared with.
#[test]
fn a_queue_that_waits_for_scans_lets_all_through() {
    let Some((site, clamd)) = open() else { return };
    let gateway = site.gateway_with(&policy(&clamd), &["--wait-for-scans"]);
    let downloads: Vec<_> = (0..3)
        .map(|number| {
            let out = site.path(&format!("out-{number}"));
            let mut curl = site.curl_command(number, &url("plain/large"), &out);
            (
                linkweir_testkit::netns::Running::start(&mut curl).unwrap(),
                out,
            )
        })
        .collect();
    for (curl, out) in downloads {
        assert!(curl.output().unwrap().status.success());
        site::same(&out, &noise(LARGE));
    }
    let steps = steps(&gateway);
    assert!(steps["scan"][0] >= 3 * (LARGE >> 17) as u64, "{steps:?}");
    // A scan is over before the next packet is taken.
    let status: Value = serde_json::from_str(&gateway.status_with(&["--json"])).unwrap();
    let peak = status["held"]["peak_packets"].as_u64().unwrap();
    assert!(peak <= 2 * 3, "{status:#}");
    gateway.end();
}
