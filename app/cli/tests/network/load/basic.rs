//! `linkweir load` against nginx: every session of every client comes, and is counted once.

use super::site;

use std::collections::BTreeSet;
use std::net::IpAddr;

use linkweir_testkit::load::{
    BEHIND, BEHIND_V6, ON_LINK, Place, SERVER_V6, SMALL, generator, routed,
};
use linkweir_testkit::netns::{Running, until};
use site::{PATIENCE, Site, at, number, socket, url};

/// Keys of the summary that scripts rely on.
const KEYS: [&str; 18] = [
    "planned",
    "started",
    "completed",
    "failed",
    "response_time_s.min",
    "response_time_s.max",
    "response_time_s.avg",
    "response_time_s.stdev",
    "response_time_s.median",
    "response_time_s.p90",
    "response_time_s.p99",
    "response_time_s.p999",
    "rate_per_s",
    "schedule_lag_us.p50",
    "schedule_lag_us.p99",
    "schedule_lag_us.max",
    "failed.refused",
    "failed.unreachable",
];

/// Client addresses of the lines of nginx.
fn clients(site: &Site, count: usize) -> BTreeSet<IpAddr> {
    site.visits(count)
        .iter()
        .map(|visit| visit.client)
        .collect()
}

#[test]
fn a_thousand_clients_ask_once_each() {
    let Some(site) = Site::open(&[]) else { return };
    // 1,024 addresses; which of them ask is up to the generator.
    let words = "--clients 10.128.0.0/22 --arrivals constant:500 --sessions 400";
    let load = site.load("run", &url("/small"), words);
    load.completes(400);
    for key in KEYS {
        assert!(!load.value(key).is_null(), "{key}");
    }
    let response = |way: &str| load.number(&format!("response_time_s.{way}"));
    assert!(response("min") <= response("median") && response("median") <= response("p90"));
    assert!(response("p99") <= response("max") && response("avg") > 0.0);
    assert_eq!(load.count("response_time_s.count"), 400);

    let visits = site.visits(400);
    let by_socket = load.by_socket();
    for visit in &visits {
        assert_eq!((visit.status, visit.method.as_str()), (200, "GET"));
        assert_eq!(visit.target, "/small");
        let record = by_socket.get(&(visit.client, visit.port).into());
        let record = record.unwrap_or_else(|| panic!("no record of {visit:?}"));
        assert_eq!(number(record, "status_code"), 200);
        assert_eq!(number(record, "response_bytes"), visit.bytes);
        assert!(visit.bytes > u64::try_from(SMALL).unwrap());
    }
    let clients = clients(&site, 400);
    assert!(clients.len() > 250, "{} of 1024 clients", clients.len());
    let is_ours = |client: &IpAddr| matches!(client, IpAddr::V4(ip) if matches!(ip.octets(), [10, 128, 0..4, _]));
    assert!(clients.iter().all(is_ours));
    // The kernel of the generator had no part in it: it has sent no reset.
    assert_eq!(site.net.counter(Place::Generator(0), "TcpOutRsts"), Some(0));
    assert_eq!(site.net.counter(Place::Server, "TcpEstabResets"), Some(0));
}

#[test]
fn a_million_addresses() {
    let Some(site) = Site::open(&[]) else { return };
    let words = format!(
        "--clients {} --arrivals constant:2000 --sessions 6000",
        routed(0)
    );
    let load = site.load("run", &url("/small"), &words);
    load.completes(6000);
    // Of 1,048,576 hardly any is taken twice.
    let clients = clients(&site, 6000);
    assert!(clients.len() > 5900, "{} clients", clients.len());
}

#[test]
fn few_clients_use_their_ports_again_and_again() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.7/32 --arrivals constant:1000 --sessions 1500 --close";
    let load = site.load("run", &url("/small"), words);
    load.completes(1500);
    let clients = clients(&site, 1500);
    assert_eq!(clients, BTreeSet::from([IpAddr::from([10, 128, 0, 7])]));
}

#[test]
fn real_time_priority_is_had_where_it_may_be() {
    let Some(site) = Site::open(&[]) else {
        return;
    };
    let may = std::thread::spawn(|| linkweir_sys::schedule::realtime().is_ok());
    let load = site.load(
        "rt",
        &url("/small"),
        "--clients 10.128.0.0/24 --arrivals constant:100 --sessions 20 --rt",
    );
    load.completes(20);
    if may.join().unwrap() && !site.net.is_unprivileged() {
        assert!(!load.stderr.contains("real-time"), "{}", load.stderr);
    }
}

#[test]
fn the_server_asks_for_clients_on_the_link() {
    let Some(site) = Site::open(&[]) else { return };
    for (third, mac) in [(7, "virtual"), (10, "per-client")] {
        // Neighbours are few: the kernel's table is one for the whole machine.
        let words = format!(
            "--clients 10.1.{third}.0/26 --arrivals constant:200 --sessions 100 --mac {mac}"
        );
        site.load(mac, &url("/small"), &words).completes(100);
    }
    assert!(ON_LINK.starts_with("10.1."));
    let mut neighbours = site.net.command(Place::Server, "ip");
    let output = neighbours
        .args(["neigh", "show", "nud", "all"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let macs = |prefix: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| line.starts_with(prefix));
        let mac = |line: &str| Some(line.split_once("lladdr ")?.1.get(..17)?.to_owned());
        lines.filter_map(mac).collect()
    };
    assert_eq!(macs("10.1.7.").len(), 1, "{text}");
    assert!(macs("10.1.10.").len() > 30, "{text}");
}

#[test]
fn version_6() {
    let Some(site) = Site::open(&[]) else { return };
    let small = at(SERVER_V6, "/small");
    for (name, clients) in [("link", "fd00:1::/120"), ("routed", "fd00:2:0::/108")] {
        let words = format!("--clients {clients} --arrivals poisson:300 --sessions 150");
        site.load(name, &small, &words).completes(150);
    }
    let clients = clients(&site, 300);
    assert!(clients.iter().all(IpAddr::is_ipv6) && clients.len() > 150);
}

#[test]
fn through_a_router() {
    let Some(site) = Site::open(&[]) else { return };
    for (name, server, words) in [
        (
            "four",
            BEHIND,
            "--clients 10.128.0.0/20 --gateway 172.31.0.1",
        ),
        (
            "six",
            BEHIND_V6,
            "--clients fd00:2:0::/112 --gateway fd00:31::1",
        ),
    ] {
        let words = format!("{words} --arrivals constant:200 --sessions 60");
        site.load(name, &at(server, "/small"), &words).completes(60);
    }
    site.visits(120);
}

#[test]
fn whatever_is_answered_is_told() {
    let Some(site) = Site::open(&[]) else { return };
    let codes = [
        ("/small", 200),
        ("/moved", 302),
        ("/none", 404),
        ("/broken", 500),
    ];
    for (index, (path, code)) in codes.into_iter().enumerate() {
        let words = format!("--clients 10.128.{index}.0/24 --arrivals constant:100 --sessions 10");
        let load = site.load(&code.to_string(), &url(path), &words);
        load.completes(10);
        assert_eq!(load.count(&format!("status_codes.{code}")), 10);
        assert!(
            load.records
                .iter()
                .all(|record| number(record, "status_code") == code)
        );
    }
}

#[test]
fn asked_to_end_it_ends_with_everything_written() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.0/16 --arrivals constant:100 --duration 10m";
    let mut command = site.load_command(0, "run", &url("/small"), words);
    let running = Running::start(&mut command).unwrap();
    assert!(until(PATIENCE, || site.nginx.visits().len() >= 20));
    running.signal("INT").unwrap();
    let load = site.loaded("run", running);
    assert_eq!(load.code, Some(0), "{}", load.stderr);
    let ended = load.count("completed") + load.failures().values().sum::<u64>();
    assert_eq!(load.count("started"), ended);
    assert_eq!(load.records.len(), usize::try_from(ended).unwrap());
    assert!(ended >= 20);
}

#[test]
fn the_generators_own_address_is_no_client() {
    let Some(site) = Site::open(&[]) else { return };
    // The server and the generator have addresses in this prefix.
    let words = "--clients 172.31.0.0/27 --arrivals constant:300 --sessions 200 --close";
    let load = site.load("run", &url("/small"), words);
    load.completes(200);
    let clients: BTreeSet<IpAddr> = load.records.iter().map(|one| socket(one).ip()).collect();
    assert!(!clients.contains(&generator(0)) && !clients.contains(&linkweir_testkit::load::SERVER));
    assert!(clients.len() > 20, "{clients:?}");
}
