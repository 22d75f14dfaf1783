//! Servers, networks and interfaces that do everything wrong: every session ends in a counted cause, and
//! every run ends.

use super::site;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use linkweir_testkit::load::hostile::{Hostile, REFUSED};
use linkweir_testkit::load::{NOBODY, PUBLIC, Place, SERVER, SERVING};
use linkweir_testkit::netns::{Running, until};
use site::{PATIENCE, Site, at, url};

/// Sessions of each kind.
const SESSIONS: u64 = 5;
/// Runs at a time: they mostly wait.
const AT_A_TIME: usize = 4;

fn at_port(port: u16) -> String {
    format!("http://{}/", SocketAddr::new(SERVER, port))
}

/// The causes in which sessions with this server may end; no cause is success.
fn causes(hostile: Hostile) -> &'static [&'static str] {
    match hostile {
        // A reset discards what the kernel of the server had not sent yet.
        Hostile::Reset | Hostile::ResetAmid => &["reset"],
        Hostile::Silent | Hostile::Stall | Hostile::Drip => &["response_timeout"],
        Hostile::Garbage | Hostile::BadChunk | Hostile::TwoLengths | Hostile::HugeLength => {
            &["malformed"]
        }
        Hostile::Early | Hostile::Short => &["closed_early"],
        Hostile::Long => &["wrong_length"],
        // Whichever bound is met first.
        Hostile::EndlessHead | Hostile::EndlessInterim | Hostile::EndlessBody => {
            &["malformed", "wrong_length", "response_timeout"]
        }
        Hostile::HalfClose => &[],
    }
}

#[test]
fn every_hostile_answer_has_its_cause() {
    let Some(site) = Site::open(&[]) else { return };
    let _server = site.hostile();
    let next = AtomicUsize::new(0);
    // A command lives as long as the thread that started it, so each thread waits for its own.
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(hostile) = Hostile::ALL.get(index).copied() else {
                break;
            };
            // Clients of their own, so that generators beside each other do not meet.
            let words = format!(
                "--clients 10.128.{index}.0/24 --arrivals constant:50 --sessions {SESSIONS} \
                 --timeout 1s --drain 5s --spin-us 0 --sender packet --max-failed 100"
            );
            let name = format!("{hostile:?}");
            let load = site.load(&name, &at_port(hostile.port()), &words);
            let failures = load.failures();
            let is_allowed = |cause: &String| causes(hostile).contains(&cause.as_str());
            assert!(failures.keys().all(is_allowed), "{name}: {failures:?}");
            let failed = failures.values().sum::<u64>();
            let expected = if causes(hostile).is_empty() {
                0
            } else {
                SESSIONS
            };
            assert_eq!(failed, expected, "{name}: {failures:?}");
            assert_eq!(load.count("completed"), SESSIONS - expected, "{name}");
            assert_eq!(load.records.len(), 5, "{name}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
}

#[test]
fn what_listens_nowhere_refuses() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.0/24 --arrivals constant:100 --sessions 20";
    let load = site.try_load("run", &at_port(REFUSED), words);
    assert_eq!(load.code, Some(1), "all of them: {}", load.stderr);
    assert_eq!(
        load.failures(),
        BTreeMap::from([("refused".to_owned(), 20)])
    );
    assert!(
        load.records
            .iter()
            .all(|record| record["failure"] == "refused")
    );
}

#[test]
fn more_failures_than_are_allowed_fail_the_run() {
    let Some(site) = Site::open(&[]) else { return };
    let all = "--clients 10.128.0.0/24 --arrivals constant:100 --sessions 20";
    for (most, code) in [("100", 0), ("99.5", 1), ("0", 1)] {
        let words = format!("{all} --max-failed {most}");
        let load = site.try_load("run", &at_port(REFUSED), &words);
        assert_eq!(load.code, Some(code), "{most}: {}", load.stderr);
        let says_so = load.stderr.contains("100.00 % of the sessions failed");
        assert_eq!(says_so, code == 1, "{most}: {}", load.stderr);
    }
    // None failed: that is not more than none.
    let words = format!("{all} --max-failed 0");
    let load = site.load("run", &url("/small"), &words);
    assert_eq!(load.code, Some(0), "{}", load.stderr);
}

#[test]
fn what_is_swallowed_times_out() {
    let Some(site) = Site::open(&["iptables"]) else {
        return;
    };
    // nginx on port 80 is not concerned; nothing comes back from these.
    for (port, flag, causes) in [
        (8081, "SYN", ["connect_timeout", "connect_timeout"]),
        (80, "PSH", ["send_timeout", "response_timeout"]),
    ] {
        if let Err(error) = site.net.swallow(port, flag) {
            crate::common::skipped(&error.to_string());
            return;
        }
        let words = "--clients 10.128.0.0/24 --arrivals constant:100 --sessions 5 --timeout 2s \
                     --drain 60s --max-failed 100";
        let load = site.load(flag, &at_port(port), words);
        let failures = load.failures();
        assert!(
            failures
                .keys()
                .all(|cause| causes.contains(&cause.as_str())),
            "{failures:?}"
        );
        assert_eq!(failures.values().sum::<u64>(), 5);
    }
}

#[test]
fn lost_segments_come_again() {
    let Some(site) = Site::open(&["iptables"]) else {
        return;
    };
    if let Err(error) = site.net.lose(0.05) {
        crate::common::skipped(&error.to_string());
        return;
    }
    site.nginx.put("file", &vec![b'f'; 60_000]).unwrap();
    // What the server's kernel drops is what comes to it; the clients' lines lose both ways.
    let words = "--clients 10.128.0.0/20 --arrivals constant:100 --sessions 100 \
                 --line loss=2%,rtt=4ms,jitter=2ms,reorder --timeout 60s --drain 60s";
    let load = site.load("run", &url("/file"), words);
    load.completes(100);
    let resent: u64 = load
        .value("tcp")
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.contains("retransm"))
        .map(|(_, count)| count.as_u64().unwrap())
        .sum();
    assert!(resent > 0, "{}", load.value("tcp"));
}

#[test]
fn syn_cookies_are_connections_like_others() {
    let Some(site) = Site::open(&[]) else { return };
    site.net.set("net.ipv4.tcp_syncookies=2").unwrap();
    let words = "--clients 10.128.0.0/20 --arrivals constant:500 --sessions 250";
    site.load("run", &url("/small"), words).completes(250);
    let received = site.net.counter(Place::Server, "TcpExtSyncookiesRecv");
    assert!(received >= Some(250), "{received:?}");
}

#[test]
fn an_address_that_nobody_has_is_refused_before_sending() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.0/24 --arrivals constant:100 --sessions 5";
    let load = site.try_load("run", &at(NOBODY, "/"), words);
    assert_eq!(load.code, Some(3), "{}", load.stderr);
    assert!(load.stderr.contains(&NOBODY.to_string()), "{}", load.stderr);
    assert_eq!(site.net.counter(Place::Server, "TcpInSegs"), Some(0));
}

#[test]
fn public_addresses_are_refused_unless_told_twice() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.0/24 --arrivals constant:100 --sessions 5";
    let address = "http://8.8.8.8/";
    for more in ["", "--allow-public"] {
        let load = site.try_load("run", address, &format!("{words} {more}"));
        assert_eq!(load.code, Some(2), "{more}: {}", load.stderr);
        assert!(load.stderr.contains("allow-public"), "{}", load.stderr);
    }
    // Told twice it goes as far as it can: nobody in the namespace is there.
    let told = format!("{words} --allow-public --allow-public");
    let load = site.try_load("run", address, &told);
    assert_eq!(load.code, Some(3), "{}", load.stderr);
    assert!(!PUBLIC.is_loopback());
}

#[test]
fn an_interface_that_goes_ends_the_run() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.0/16 --arrivals constant:200 --duration 10m";
    let mut command = site.load_command(0, "run", &url("/small"), words);
    let running = Running::start(&mut command).unwrap();
    assert!(until(PATIENCE, || site.nginx.visits().len() >= 20));
    // The other end of a veth pair goes with it.
    site.net
        .must(Place::Server, "ip", &["link", "del", SERVING])
        .unwrap();
    let load = site.loaded("run", running);
    assert!(
        matches!(load.code, Some(1 | 3)),
        "{:?} {}",
        load.code,
        load.stderr
    );
    assert!(load.stderr.contains("gen0"), "{}", load.stderr);
    // What had ended by then is written.
    assert!(load.records.len() >= 20 && load.count("completed") >= 20);
}

#[test]
fn wrong_words_are_told_before_anything_is_sent() {
    let Some(site) = Site::open(&[]) else { return };
    let all = "--clients 10.128.0.0/24 --arrivals constant:100 --sessions 5";
    for (address, words, code) in [
        ("https://172.31.0.1/", all, 2),
        ("http://[fd00:31::1]/", all, 2),
        (
            "http://172.31.0.1/",
            "--clients 10.128.0.0/24 --arrivals constant:-1 --sessions 5",
            2,
        ),
        (
            "http://172.31.0.1/",
            "--clients 10.128.0.0/24 --arrivals mmpp:none.json --sessions 5",
            2,
        ),
        (
            "http://172.31.0.1/",
            "--clients nowhere --arrivals constant:1 --sessions 5",
            2,
        ),
    ] {
        let load = site.try_load("run", address, words);
        // A file that is not there may be a source that failed.
        let is_it = load.code == Some(code) || words.contains("none.json") && load.code == Some(3);
        assert!(is_it, "{address} {words}: {:?} {}", load.code, load.stderr);
        assert!(!load.stderr.is_empty());
    }
    assert_eq!(site.net.counter(Place::Server, "TcpInSegs"), Some(0));
}

/// Somebody takes the address of the next hop, and the frames go elsewhere from then on.
#[test]
fn a_next_hop_that_moves_is_told() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.1.0/24 --arrivals constant:50 --sessions 5";
    let still = site.load("still", &url("/small"), words);
    assert_eq!(still.count("tcp.next_hop_moved"), 0);
    assert!(!still.stderr.contains("next hop"), "{}", still.stderr);

    let words = "--clients 10.128.0.0/24 --arrivals constant:50 --sessions 100 --timeout 700ms \
                 --drain 1s --max-failed 100";
    let mut load = site.load_command(0, "moved", &url("/small"), words);
    let running = Running::start(&mut load).unwrap();
    assert!(until(PATIENCE, || site.nginx.visits().len() > 10));
    let server = |program: &str, words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        site.net.must(Place::Server, program, &words).unwrap();
    };
    // The kernel announces the one address (a gratuitous ARP), and not that it has the other again.
    let address = server_mac(&site);
    for (notify, mac) in [(1, "02:00:00:00:00:77"), (0, address.as_str())] {
        let setting = format!("net.ipv4.conf.{SERVING}.arp_notify={notify}");
        server("sysctl", &format!("-q -w {setting}"));
        server("ip", &format!("link set dev {SERVING} address {mac}"));
    }
    let load = site.loaded("moved", running);
    let told = format!("next hop {SERVER} is now at 02:00:00:00:00:77; it was at {address}");
    assert!(load.stderr.contains(&told), "{}", load.stderr);
    assert!(load.count("tcp.next_hop_moved") >= 1);
    assert!(load.count("failed.connect_timeout") > 0, "{}", load.stderr);
    let why = "never got a SYN ACK, and the next hop came to have another hardware address";
    assert!(load.stderr.contains(why), "{}", load.stderr);
}

fn server_mac(site: &Site) -> String {
    let mut ip = site.net.command(Place::Server, "ip");
    let output = ip
        .args(["-o", "link", "show", "dev", SERVING])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.split_whitespace();
    words.find(|word| *word == "link/ether").unwrap();
    words.next().unwrap().to_owned()
}
