//! `linkweir gateway`: ten thousand connections under inspection at the same time.

use super::site;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use linkweir_testkit::gateway::Place;
use linkweir_testkit::netns::Running;
use site::{Site, at, noise, same, url};

const COUNT: usize = 10_000;
const MOST: u64 = 256 * 1024 * 1024;

#[test]
fn ten_thousand_connections_fit_in_256_mib() {
    let Some(site) = Site::open(&["prlimit"]) else {
        return;
    };
    let policy = "[[rule]]\nname = \"web\"\napplication = [\"http\"]\naction = \"inspect\"\n\
                  audit = true\nkeywords = [\"never in it\"]\nfile-names = [\"*.exe\"]\n";
    let gateway = site.gateway(policy);
    let bytes = noise(500);
    site.nginx.put("small", &bytes).unwrap();
    let (address, count) = (at(80), COUNT.to_string());
    let words = [
        "idle",
        "--connect",
        &address,
        "--path",
        "/plain/small",
        "--count",
        &count,
    ];
    let peer = site.peer(Place::Client, &words);
    let mut crowd = site.net.command(Place::Client, "prlimit");
    crowd
        .arg("--nofile=16384")
        .arg(std::env::current_exe().unwrap());
    crowd.args(["--exact", "gateway::site::a_peer", "--nocapture"]);
    for (key, value) in peer.get_envs() {
        crowd.env(key, value.unwrap());
    }
    let (reader, writer) = std::io::pipe().unwrap();
    crowd.stdout(writer).stderr(Stdio::null());
    let _crowd = Running::start(&mut crowd).unwrap();
    drop(crowd);
    let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
    let holding = format!("holding {COUNT}");
    let failed = |line: &String| line.contains(&holding) || line.contains("failed");
    assert_eq!(lines.find(failed), Some(holding.clone()));

    let path = format!("/proc/{}/status", gateway.running.id());
    let status = std::fs::read_to_string(path).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.unwrap().trim().trim_end_matches(" kB");
    let resident = 1024 * kilobytes.parse::<u64>().unwrap();
    assert!(resident < MOST, "{resident} bytes");
    // And there is room for one more.
    let (code, out) = site.curl(1, &url("plain/small"), "out", &[]);
    assert_eq!(code, 0);
    same(&out, &bytes);
    let events = gateway.end();
    let inspected = events.decisions();
    let inspected = inspected.iter().filter(|d| **d == ("http", "inspect"));
    assert_eq!(inspected.count(), COUNT + 1);
}
