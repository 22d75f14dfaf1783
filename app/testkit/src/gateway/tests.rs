//! The namespaces and the programs in them, with a gateway that only forwards.

use std::time::Duration;

use tempfile::tempdir;

use super::*;
use crate::netns::{Running, until};
use crate::ran::has;

fn net(links: Links) -> Option<Net> {
    Net::with(links)
        .map_err(|error| eprintln!("SKIPPED: {error}"))
        .ok()
}

#[test]
fn the_gateway_forwards_both_families() {
    let Some(net) = net(Links::default()) else {
        return;
    };
    for server in [SERVER, SERVER_V6] {
        // A connection that is refused was answered.
        let say = format!("echo > /dev/tcp/{server}/9");
        let mut bash = net.command(Place::Client, "bash");
        let output = bash.args(["-c", &say]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("refused"), "{server}: {said}");
    }
    assert_eq!(net.queues(), []);
}

#[test]
fn nobody_else_forwards() {
    let Some(net) = net(Links::default()) else {
        return;
    };
    for (place, forwards) in [
        (Place::Client, "0"),
        (Place::Gateway, "1"),
        (Place::Server, "0"),
    ] {
        for setting in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
            let mut sysctl = net.command(place, "sysctl");
            let output = sysctl.args(["-n", setting]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(said.trim(), forwards, "{place:?}: {setting}");
        }
    }
}

#[test]
fn links_are_as_asked_for() {
    let links = Links {
        has_offloads: false,
        mtu: 1400,
    };
    let Some(net) = net(links) else { return };
    for place in Place::ALL {
        for interface in place.interfaces() {
            let mut ip = net.command(place, "ip");
            let output = ip.args(["link", "show", interface]).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(said.contains("mtu 1400"), "{said}");
            let mut ethtool = net.command(place, "ethtool");
            let output = ethtool.args(["-k", interface]).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(said.contains("tcp-segmentation-offload: off"), "{said}");
        }
    }
}

#[test]
fn nginx_serves_the_clients() {
    let Some(net) = net(Links::default()) else {
        return;
    };
    if !has("nginx") || !has("curl") {
        return;
    }
    let directory = tempdir().unwrap();
    let nginx = Nginx::start(&net, directory.path()).unwrap();
    let text = "twenty bytes of text".repeat(1000);
    nginx.put("page", text.as_bytes()).unwrap();
    let ask = |host: &str, path: &str, from: IpAddr| {
        let mut curl = net.command(Place::Client, "curl");
        curl.args(["-s", "-i", "-g", "--compressed", "--interface"])
            .args([&from.to_string(), &format!("http://{host}/{path}")]);
        let answer = String::from_utf8(curl.output().unwrap().stdout).unwrap();
        assert!(answer.ends_with(&text), "{host} {path}: {answer}");
        answer.to_ascii_lowercase()
    };
    let four = SERVER.to_string();
    assert!(ask(&four, "plain/page", client(7)).contains("content-length: 20000"));
    let chunked = ask(&four, "chunked/page", client(0));
    assert!(chunked.contains("transfer-encoding: chunked"), "{chunked}");
    let coded = ask(&format!("{four}:8080"), "gzip/page", client(0));
    assert!(coded.contains("content-encoding: gzip"), "{coded}");
    let named = ask(&format!("[{SERVER_V6}]"), "named/page", client_v6(3));
    assert!(named.contains("filename=\"report.exe\""), "{named}");
    let lines = [
        "10.88.1.18 /plain/page 200 20000",
        "fd00:88:1::14 /named/page",
    ];
    let log = nginx.access_log(&lines);
    assert!(lines.iter().all(|line| log.contains(line)), "{log}");
}

#[test]
fn a_torrent_comes_over() {
    let Some(net) = net(Links::default()) else {
        return;
    };
    if !Torrent::NEEDED.into_iter().all(has) {
        return;
    }
    let directory = tempdir().unwrap();
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let torrent = match Torrent::seed(&net, directory.path(), &bytes) {
        Err(error) if net.is_unprivileged() => return eprintln!("SKIPPED: {error}"),
        torrent => torrent.unwrap(),
    };
    let out = directory.path().join("leech");
    std::fs::create_dir(&out).unwrap();
    let mut fetch = Running::start(&mut torrent.fetch(&net, &out)).unwrap();
    let is_done = until(Duration::from_secs(20), || {
        !matches!(fetch.ended(), Ok(None))
    });
    let log = || std::fs::read_to_string(out.join("log")).unwrap_or_default();
    assert!(is_done, "{}", log());
    let came = std::fs::read(out.join("shared.bin"));
    assert!(came.is_ok_and(|came| came == bytes), "{}", log());
}

#[test]
fn the_counters_of_a_queue_are_read() {
    let line = "    3  12345     7 2 65531     2     9      411  1";
    let counters = QueueCounters {
        number: 3,
        waiting: 7,
        dropped: 2,
        user_dropped: 9,
        packets: 411,
    };
    assert_eq!(QueueCounters::read(line), Some(counters));
    assert_eq!(QueueCounters::read("3 12345"), None);
}
