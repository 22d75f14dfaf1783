//! `linkweir gateway`: each client has a rate of its own, also past user space.

use super::site;

use std::process::Stdio;

use linkweir_testkit::gateway::SERVER_V6;
use linkweir_testkit::netns::Running;
use site::{Gateway, Site, noise, same, url};

/// Two clients of IPv4, and the network of those of IPv6.
const RULE: &str = r#"
[[rule]]
name = "slow"
application = "http"
clients = ["10.88.1.11", "10.88.1.12", "fd00:88:1::/64"]
action = "allow"
client-rate = "1MB/s"
client-burst = "64KiB"
"#;
/// Bytes of a file.
const FILE: usize = 1_600_000;
/// Bytes that pass at once, beside a second of the rate.
const BURST: f64 = 65_536.0;

/// Downloads at the same time, each with its client; the seconds that each took.
fn fetch(site: &Site, urls: &[(u8, &str)]) -> Vec<f64> {
    let running = urls.iter().enumerate().map(|(number, &(client, url))| {
        let out = site.path(&format!("out-{number}"));
        let mut curl = site.curl_command(client, url, &out);
        curl.args(["-w", "%{time_total}"]).stdout(Stdio::piped());
        (Running::start(&mut curl).unwrap(), out)
    });
    let running: Vec<_> = running.collect();
    let ended = running.into_iter().map(|(curl, out)| {
        let output = curl.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", out.display());
        same(&out, &noise(FILE));
        String::from_utf8(output.stdout).unwrap().parse().unwrap()
    });
    ended.collect()
}

/// All files of one client take at least this long at a rate, bytes per second.
#[track_caller]
fn is_held(seconds: &[f64], rate: f64) {
    let least = ((seconds.len() * FILE) as f64 - BURST - rate) / rate;
    let last = seconds.iter().copied().fold(0.0, f64::max);
    // What is not decided yet goes beside it, and a clock is not exact.
    assert!(last > 0.95 * least, "{last} s, {least} s expected");
    // What is dropped costs TCP time, and the machine may be busy, but it goes on.
    assert!(last < 4.0 * least + 2.0, "{last} s, {least} s expected");
}

fn json_of(gateway: &Gateway<'_>) -> serde_json::Value {
    serde_json::from_str(&gateway.status_with(&["--json"])).unwrap()
}

#[test]
fn each_client_has_its_rate_past_user_space_too() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(RULE);
    site.nginx.put("file", &noise(FILE)).unwrap();
    let file = url("plain/file");

    // Connections of a client share its rate; others have their own, or none. IPv6 clients of a network are one.
    let six = format!("http://[{SERVER_V6}]/plain/file");
    let took = fetch(
        &site,
        &[
            (0, &file),
            (0, &file),
            (1, &file),
            (2, &file),
            (0, &six),
            (0, &six),
        ],
    );
    is_held(&took[..2], 1e6);
    is_held(&took[2..3], 1e6);
    is_held(&took[4..], 1e6);
    assert!(took[2] < took[0].max(took[1]), "{took:?}");
    assert!(took[3] < 0.5 * took[0].max(took[1]), "{took:?}");
    let queued = gateway.queued();
    assert!(queued < 100, "{queued} packets in user space");

    let status = json_of(&gateway);
    let dropped = &status["rules"]["slow"]["over_rate_packets"];
    assert!(dropped.as_u64() > Some(10), "{status}");
    assert_eq!(&status["counts"]["client_rate_exceeded"], dropped);
    assert_eq!(status["counts"]["client_rate_table_full"], 0);
    let screen = gateway.status();
    assert!(screen.contains("dropped over rate"), "{screen}");
    assert!(screen.contains("client rate exceeded"), "{screen}");

    // Another rate, and packets that stay in the queue.
    let inspected = RULE
        .replace("allow", "inspect\"\naudit = true\n#")
        .replace("1MB/s", "2MB/s");
    gateway.reload(&inspected);
    is_held(&fetch(&site, &[(0, &file), (0, &file), (0, &file)]), 2e6);
    // Without a rate, the same client is as fast as all.
    gateway.reload(
        &RULE
            .replace("client-rate", "# ")
            .replace("client-burst", "# "),
    );
    let took = fetch(&site, &[(0, &file), (0, &file), (0, &file)]);
    assert!(took.iter().all(|seconds| *seconds < 1.0), "{took:?}");

    let (code, said, events) = gateway.ended();
    assert_eq!(code, 0, "{said}");
    let files = events.of("file");
    assert_eq!(files.len(), 3, "{files:#?}");
}
