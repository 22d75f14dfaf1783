//! Sessions of several requests: pages and their objects, think times, connections that are kept and
//! connections beside each other, as nginx saw them.

use super::site;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linkweir_testkit::load::EMBEDDED;
use linkweir_testkit::load::log::Visit;
use site::{Site, number, url};

/// The lines of each client, in order.
fn by_client(visits: &[Visit]) -> BTreeMap<IpAddr, Vec<&Visit>> {
    let mut all: BTreeMap<IpAddr, Vec<&Visit>> = BTreeMap::new();
    for visit in visits {
        all.entry(visit.client).or_default().push(visit);
    }
    all
}

fn connections(visits: &[&Visit]) -> usize {
    let numbers: BTreeSet<u64> = visits.iter().map(|visit| visit.connection).collect();
    numbers.len()
}

fn targets<'a>(visits: &[&'a Visit]) -> Vec<&'a str> {
    visits.iter().map(|visit| visit.target.as_str()).collect()
}

#[test]
fn a_script_of_pages_bursts_and_think_times() {
    let Some(site) = Site::open(&[]) else { return };
    // httperf's --wsesslog: a page, the objects that go out with it, and the rest after both.
    let script = site.put(
        "script",
        "# comment\n/page think=0.3\n    /one.png\n    /two.png\n/small\n",
    );
    // As many clients as sessions, so that each client is one.
    let words =
        format!("--clients 10.128.0.0/14 --arrivals constant:50 --sessions 20 --script {script}");
    let load = site.load("run", &url("/"), &words);
    load.completes(20);
    assert_eq!((load.count("requests"), load.count("pages")), (80, 40));
    let visits = site.visits(80);
    let clients = by_client(&visits);
    assert_eq!(clients.len(), 20);
    for visits in clients.values() {
        let targets = targets(visits);
        assert_eq!((targets[0], targets[3]), ("/page", "/small"));
        let objects: BTreeSet<&str> = targets[1..3].iter().copied().collect();
        assert_eq!(objects, BTreeSet::from(["/one.png", "/two.png"]));
        let rest = visits[3].ended_s - visits[2].ended_s;
        assert!(rest >= 0.29, "{rest}");
        assert!(visits.iter().all(|visit| visit.status == 200));
    }
    for record in &load.records {
        assert_eq!(
            (number(record, "requests"), number(record, "responses")),
            (4, 4)
        );
        assert_eq!(
            (number(record, "pages"), number(record, "responses_2xx")),
            (2, 4)
        );
        assert!(number(record, "duration_ns") >= 300_000_000);
    }
}

#[test]
fn connections_are_kept_or_closed() {
    let Some(site) = Site::open(&[]) else { return };
    let script = site.put("script", &"/small\n".repeat(10));
    for (index, (mode, expected)) in [("--keep-alive", 1), ("--close", 10)]
        .into_iter()
        .enumerate()
    {
        let words = format!(
            "--clients 10.{}.0.0/16 --arrivals constant:100 --sessions 30 --script {script} {mode}",
            128 + index
        );
        let load = site.load(&format!("run{index}"), &url("/"), &words);
        load.completes(30);
        for record in &load.records {
            assert_eq!(number(record, "connections"), expected, "{mode}");
        }
        let visits = site.visits(300 * (index + 1));
        let own = |visit: &&Visit| matches!(visit.client, IpAddr::V4(ip) if usize::from(ip.octets()[1]) == 128 + index);
        let serials: BTreeSet<u64> = visits
            .iter()
            .filter(own)
            .map(|visit| visit.connection)
            .collect();
        assert_eq!(
            serials.len(),
            30 * usize::try_from(expected).unwrap(),
            "{mode}"
        );
    }
}

#[test]
fn objects_of_a_page_are_found_and_fetched() {
    let Some(site) = Site::open(&[]) else { return };
    for (index, parallel) in [1_usize, 4].into_iter().enumerate() {
        let words = format!(
            "--clients 10.{}.0.0/16 --arrivals constant:50 --sessions 20 --embedded --parallel {parallel}",
            128 + index
        );
        let load = site.load(&format!("run{parallel}"), &url("/page"), &words);
        load.completes(20);
        assert_eq!((load.count("requests"), load.count("pages")), (100, 20));
        let visits = site.visits(100 * (index + 1));
        let clients = by_client(visits.get(100 * index..).unwrap());
        for visits in clients.values() {
            let mut targets = targets(visits);
            assert_eq!(targets.remove(0), "/page");
            targets.sort_unstable();
            let mut expected = EMBEDDED.to_vec();
            expected.sort_unstable();
            assert_eq!(targets, expected);
            assert!(connections(visits) <= parallel, "{parallel}: {visits:?}");
        }
    }
}

#[test]
fn bodies_of_every_kind_come_whole() {
    let Some(site) = Site::open(&[]) else { return };
    site.nginx.put("file", &vec![b'f'; 200_000]).unwrap();
    let script = site.put("script", "/file\n/chunked/file\n/close/file\n/file\n");
    let words =
        format!("--clients 10.128.0.0/16 --arrivals constant:30 --sessions 15 --script {script}");
    let load = site.load("run", &url("/"), &words);
    load.completes(15);
    let visits = site.visits(60);
    assert!(
        visits
            .iter()
            .all(|visit| visit.status == 200 && visit.bytes > 200_000)
    );
    let bytes: u64 = visits.iter().map(|visit| visit.bytes).sum();
    assert_eq!(load.count("response_bytes"), bytes);
    // nginx closes after the third, so the fourth has a connection of its own.
    assert!(
        load.records
            .iter()
            .all(|record| number(record, "connections") == 2)
    );
}

#[test]
fn uploads_go_through() {
    let Some(site) = Site::open(&[]) else { return };
    let contents = "u".repeat(30_000);
    let script = site.put(
        "script",
        &format!("/upload method=POST contents='{contents}'\n"),
    );
    let words =
        format!("--clients 10.128.0.0/16 --arrivals constant:30 --sessions 10 --script {script}");
    let load = site.load("run", &url("/"), &words);
    load.completes(10);
    assert!(load.count("request_bytes") > 300_000);
    let visits = site.visits(10);
    assert!(
        visits
            .iter()
            .all(|visit| visit.method == "POST" && visit.status == 200)
    );
}

#[test]
fn littles_law_holds() {
    let Some(site) = Site::open(&[]) else { return };
    let script = site.put("script", "/small think=0.5\n/small\n");
    let words =
        format!("--clients 10.128.0.0/16 --arrivals constant:100 --duration 2s --script {script}");
    let load = site.load("run", &url("/"), &words);
    assert!(load.failures().is_empty());
    // Sessions that are open, from their number per second and how long they last.
    let error = load.number("little.error");
    assert!(error.abs() < 0.1, "{}", load.value("little"));
    assert!(load.count("peak_open") >= 40);
}
