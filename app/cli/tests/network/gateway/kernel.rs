//! `linkweir gateway`: what the kernel does by itself, and what is left when the gateway is gone.

use super::site;

use std::process::Command;
use std::time::Duration;

use linkweir_testkit::gateway::Place;
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::peers;
use serde_json::{Value, json};
use site::{CURL_RESET, PATIENCE, Site, at, noise, pause, same, timed, url};

/// A rule for HTTP.
fn http(more: &str) -> String {
    format!("[[rule]]\nname = \"web\"\napplication = [\"http\"]\n{more}\n")
}

#[test]
fn the_kernel_asks_no_more_once_it_is_decided() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(&http("action = \"allow\""));
    let bytes = noise(30_000_000);
    site.nginx.put("large", &bytes).unwrap();
    let before = gateway.queued();
    let (code, out) = site.curl(0, &url("plain/large"), "out", &[]);
    assert_eq!(code, 0);
    same(&out, &bytes);
    let queued = gateway.queued() - before;
    // Handshake, request, the first of the answer in flight; some 20 000 segments in all.
    assert!((1..=60).contains(&queued), "{queued} packets were queued");
    let status = gateway.status();
    assert!(status.contains("http"), "{status}");
    gateway.end();
}

/// What the kernel counted by rule is known to the gateway itself, which has given up what it takes to
/// start `nft`: to the page and Prometheus, and without the right to ask the kernel to `status`.
#[test]
fn the_page_has_what_the_kernel_counted_by_rule() {
    let Some(site) = Site::open(&[]) else { return };
    let never = "[[rule]]\nname = \"never\"\napplication = [\"msn\"]\naction = \"drop\"\n";
    let policy = format!("{never}{}", http("action = \"allow\""));
    let gateway = site.gateway_with(&policy, &["--console", "127.0.0.1:8080"]);
    let ask = |path: &str| {
        let mut curl = site.net.command(Place::Gateway, "curl");
        let url = format!("http://127.0.0.1:8080{path}");
        let output = curl.args(["-s", "-f", "-m", "15", &url]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    site.nginx.put("large", &noise(3_000_000)).unwrap();
    let (code, _) = site.curl(0, &url("plain/large"), "out", &[]);
    assert_eq!(code, 0);
    let mut rules = Value::Null;
    let is_counted = until(PATIENCE, || {
        let status: Value = serde_json::from_str(&ask("/api/status")).unwrap_or_default();
        rules = status["status"]["rules"].clone();
        // What is under way when the connection becomes the kernel's passes by the queue.
        rules["web"]["bytes"].as_u64() > Some(2_900_000)
    });
    assert!(is_counted, "{rules}");
    assert!(rules["web"]["packets"].as_u64() > Some(0), "{rules}");
    let none = json!({ "packets": 0, "bytes": 0, "over_rate_packets": 0, "over_rate_bytes": 0 });
    assert_eq!(rules["never"], none);
    let metrics = ask("/metrics");
    let line = |line: &&str| line.starts_with("linkweir_gateway_rule_bytes_total{rule=\"web\"}");
    assert!(metrics.lines().any(|one| line(&one)), "{metrics}");
    let status: Value = serde_json::from_str(&gateway.status_with(&["--json"])).unwrap();
    assert!(status["rules"]["web"]["bytes"].as_u64() >= rules["web"]["bytes"].as_u64());
    gateway.end();
}

#[test]
fn an_application_gets_its_rate_and_others_theirs() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(&http("action = \"allow\"\nshape = \"10mbit\""));
    site.nginx.put("shaped", &noise(4_000_000)).unwrap();
    let other = noise(20_000_000);
    let file = site.put("other", &other);
    let server = [
        "serve",
        "raw",
        "--listen",
        &at(9000),
        "--file",
        file.to_str().unwrap(),
    ];
    let _server = site.serve(Place::Server, &server);

    let mut curl = site.curl_command(0, &url("plain/shaped"), &site.path("out"));
    curl.args(["-w", "%{speed_download}"])
        .stdout(std::process::Stdio::piped());
    let shaped = Running::start(&mut curl).unwrap();
    pause(Duration::from_millis(500));
    let words = [
        "fetch",
        "raw",
        "--connect",
        &at(9000),
        "--out",
        "other.out",
        "--say",
        "x",
    ];
    let (took, (code, said)) = timed(|| site.fetch(&words));
    assert_eq!(code, peers::COMPLETE, "{said}");
    same(&site.path("other.out"), &other);
    // At the shaped rate it would take 16 seconds.
    assert!(took < Duration::from_secs(2), "{took:?}");

    let output = shaped.output().unwrap();
    let rate: f64 = String::from_utf8(output.stdout).unwrap().parse().unwrap();
    // 1448 of the 1514 bytes of a frame.
    let expected = 1.25e6 * 1448.0 / 1514.0;
    let share = rate / expected;
    assert!(
        (0.95..=1.05).contains(&share),
        "{rate} bytes/s, {share:.3} of what is due"
    );
    gateway.end();
}

/// With `fail = "open"` nobody notices that it was killed.
#[test]
fn a_download_survives_the_gateway() {
    let Some(site) = Site::open(&[]) else { return };
    let mut gateway = site.gateway(&http("action = \"inspect\"\nkeywords = [\"never in it\"]"));
    let bytes = noise(50_000_000).repeat(4);
    site.nginx.put("large", &bytes).unwrap();
    let out = site.path("out");
    let mut curl = site.curl_command(0, &url("plain/large"), &out);
    let curl = Running::start(curl.args(["--limit-rate", "100M"])).unwrap();
    let some = || std::fs::metadata(&out).is_ok_and(|file| file.len() > 30_000_000);
    assert!(until(PATIENCE, some), "it does not begin");
    gateway.running.signal("KILL").unwrap();
    assert!(until(PATIENCE, || !matches!(
        gateway.running.ended(),
        Ok(None)
    )));
    let output = curl.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    same(&out, &bytes);
    // New connections pass too.
    site.nginx.put("small", b"small").unwrap();
    assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
    // It takes up its work again where its rules still are.
    let again = site.run(&gateway.config, "again.jsonl", &[]);
    assert!(until(PATIENCE, || site.net.queues().len() == 2));
    assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
    let output = again.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

/// With `fail = "closed"` nothing passes that it does not see.
#[test]
fn closed_means_closed() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = format!(
        "fail = \"closed\"\n{}",
        http("action = \"inspect\"\naudit = true")
    );
    let mut gateway = site.gateway(&policy);
    site.nginx.put("small", b"small").unwrap();
    assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
    gateway.running.signal("KILL").unwrap();
    assert!(until(PATIENCE, || !matches!(
        gateway.running.ended(),
        Ok(None)
    )));
    let (code, out) = site.curl(0, &url("plain/small"), "out", &["-m", "1"]);
    assert_ne!(code, 0);
    assert!(!out.exists());
}

/// The rules, queueing disciplines and filters of the gateway's namespace, without counters.
fn kernel(site: &Site) -> String {
    let commands: [&[&str]; 6] = [
        &["iptables-save"],
        &["ip6tables-save"],
        &["nft", "list", "ruleset"],
        &["tc", "qdisc", "show"],
        &["tc", "filter", "show", "dev", "lan0"],
        &["tc", "filter", "show", "dev", "wan0"],
    ];
    let mut all = String::new();
    for words in commands {
        let mut command: Command = site.net.command(Place::Gateway, words[0]);
        let output = command.args(&words[1..]).output().unwrap();
        all += &words.join(" ");
        all += "\n";
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            // The time of a listing; counters of policies and rules.
            let line = line.split_once(" [").map_or(line, |(before, _)| before);
            let line = line
                .split_once(" counter packets")
                .map_or(line, |(before, _)| before);
            if !line.starts_with('#') {
                all += line;
                all += "\n";
            }
        }
    }
    all
}

#[test]
fn down_leaves_what_was_there() {
    let Some(site) = Site::open(&["nft"]) else {
        return;
    };
    // Somebody else's rules are nobody's business, and make the tables exist.
    for program in ["iptables", "ip6tables"] {
        for (table, chain) in [
            ("mangle", "FORWARD"),
            ("mangle", "POSTROUTING"),
            ("filter", "FORWARD"),
        ] {
            let words = [
                "-t", table, "-A", chain, "-p", "udp", "--dport", "9", "-j", "ACCEPT",
            ];
            site.net.must(Place::Gateway, program, &words).unwrap();
        }
    }
    let before = kernel(&site);
    let policy = http("action = \"allow\"\nshape = \"10mbit\"")
        + "[[rule]]\nname = \"sharing\"\napplication = [\"fasttrack\"]\naction = \"reject\"\n";
    let gateway = site.gateway(&policy);
    assert_ne!(kernel(&site), before);
    // Twice is once.
    let up = site.linkweir(&["up", "--config", &gateway.config]).output();
    assert!(up.unwrap().status.success());
    site.nginx.put("small", b"small").unwrap();
    assert_eq!(site.curl(0, &url("plain/small"), "out", &[]).0, 0);
    gateway.end();
    assert_eq!(kernel(&site), before);

    // Also after a crash, and once more when there is nothing left.
    let mut gateway = site.gateway(&policy);
    gateway.running.signal("KILL").unwrap();
    assert!(until(PATIENCE, || !matches!(
        gateway.running.ended(),
        Ok(None)
    )));
    for _ in 0..2 {
        let down = site
            .linkweir(&["down", "--config", &gateway.config])
            .output();
        assert!(down.unwrap().status.success());
        assert_eq!(kernel(&site), before);
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let Some(site) = Site::open(&["nft"]) else {
        return;
    };
    let config = site.configure(
        "gateway.toml",
        &http("action = \"allow\"\nshape = \"1mbit\""),
    );
    let before = kernel(&site);
    let up = site
        .linkweir(&["up", "--dry-run", "--config", &config])
        .output();
    let up = up.unwrap();
    let said = String::from_utf8_lossy(&up.stdout);
    assert!(
        up.status.success(),
        "{}",
        String::from_utf8_lossy(&up.stderr)
    );
    assert!(said.contains("NFQUEUE"), "{said}");
    assert_eq!(kernel(&site), before);
}

#[test]
fn a_new_policy_is_for_new_connections() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(&http("action = \"inspect\"\nkeywords = [\"never in it\"]"));
    let bytes = noise(20_000_000);
    site.nginx.put("large", &bytes).unwrap();
    let out = site.path("running");
    let mut curl = site.curl_command(0, &url("plain/large"), &out);
    let curl = Running::start(curl.args(["--limit-rate", "10M"])).unwrap();
    let some = || std::fs::metadata(&out).is_ok_and(|file| file.len() > 1_000_000);
    assert!(until(PATIENCE, some), "it does not begin");

    gateway.reload(&http("action = \"reject\""));
    let (code, _) = site.curl(1, &url("plain/large"), "out", &[]);
    assert_eq!(code, CURL_RESET);
    // A policy with a mistake changes nothing.
    site.configure("gateway.toml", &http("action = \"perhaps\""));
    let words = ["reload", "--config", &gateway.config];
    let refused = site.linkweir(&words).output().unwrap();
    assert!(!refused.status.success());
    assert_eq!(site.curl(1, &url("plain/large"), "out", &[]).0, CURL_RESET);

    assert_eq!(curl.output().unwrap().status.code(), Some(0));
    same(&out, &bytes);
    site.configure("gateway.toml", &http("action = \"reject\""));
    let events = gateway.end();
    let decided = events.decisions();
    assert!(decided.contains(&("http", "inspect")), "{decided:?}");
    assert!(decided.contains(&("http", "reject")), "{decided:?}");
}
