//! Several generators: the pair of the paper's Fig. 1, and workers under a controller.

use super::site;

use std::collections::BTreeSet;
use std::net::IpAddr;

use linkweir_testkit::load::{Place, generator, routed};
use linkweir_testkit::netns::Running;
use site::{Site, number, url};

#[test]
fn one_starts_the_sessions_and_the_other_takes_them_over() {
    let Some(site) = Site::open_with(2, &[]) else {
        return;
    };
    // What the server sends to these clients goes to the second generator.
    let words = |role: &str, peer: u8| {
        format!(
            "--clients {} --arrivals poisson:200 --sessions 150 --seed 5 --role {role} --peer {}",
            routed(1),
            generator(peer)
        )
    };
    let start = |number: u8, name: &str, words: &str| {
        Running::start(&mut site.load_command(number, name, &url("/small"), words)).unwrap()
    };
    let stat = start(1, "stat", &words("stat", 0));
    let init = start(0, "init", &words("init", 1));
    let stat = site.loaded("stat", stat);
    let init = site.loaded("init", init);
    assert_eq!(
        (init.code, stat.code),
        (Some(0), Some(0)),
        "{} {}",
        init.stderr,
        stat.stderr
    );
    stat.completes(150);
    let visits = site.visits(150);
    assert!(visits.iter().all(|visit| visit.status == 200));
    let sockets: BTreeSet<_> = visits
        .iter()
        .map(|visit| (visit.client, visit.port).into())
        .collect();
    assert!(stat.by_socket().keys().eq(&sockets));
    // The kernels of both had no part in it.
    for number in [0, 1] {
        assert_eq!(
            site.net.counter(Place::Generator(number), "TcpEstabResets"),
            Some(0)
        );
    }
}

#[test]
fn a_controller_adds_up_its_workers() {
    let Some(site) = Site::open_with(2, &[]) else {
        return;
    };
    let all = "--arrivals poisson:300 --sessions 240 --seed 9";
    let controller = [
        "load",
        &url("/small"),
        "-q",
        "--lag-limit",
        "1h",
        "--summary",
        "controller.json",
        "--role",
        "controller",
        "--generators",
        "2",
    ];
    let mut command = site.linkweir(Place::Generator(0), &controller);
    let controller = Running::start(command.args(all.split(' '))).unwrap();
    let worker = |number: u8| {
        let words = format!(
            "{all} --clients {} --role worker --peer {}",
            routed(number),
            generator(0)
        );
        let mut command =
            site.load_command(number, &format!("worker{number}"), &url("/small"), &words);
        Running::start(&mut command).unwrap()
    };
    let (first, second) = (worker(0), worker(1));
    let first = site.loaded("worker0", first);
    let second = site.loaded("worker1", second);
    let merged = site.loaded("controller", controller);
    for load in [&first, &second, &merged] {
        assert_eq!(load.code, Some(0), "{}", load.stderr);
    }
    // Each had its share of one schedule.
    let counts = ["planned", "completed"].map(|way| merged.count(way));
    assert_eq!(counts, [240, 240]);
    assert_eq!(first.records.len() + second.records.len(), 240);
    assert!(first.records.len() > 50 && second.records.len() > 50);
    let numbers = first.records.iter().chain(&second.records);
    let numbers: BTreeSet<u64> = numbers.map(|record| number(record, "session")).collect();
    assert_eq!(numbers.len(), 240, "a session was run by both");
    assert_eq!(merged.count("response_time_s.count"), 240);

    let visits = site.visits(240);
    let own = |number: u8| {
        let second = 128 + 16 * number;
        let is_own =
            move |ip: IpAddr| matches!(ip, IpAddr::V4(ip) if ip.octets()[1] & 0xf0 == second);
        visits.iter().filter(|visit| is_own(visit.client)).count()
    };
    assert_eq!(
        [own(0), own(1)],
        [first.records.len(), second.records.len()]
    );
}

#[test]
fn those_that_do_not_fit_together_part() {
    let Some(site) = Site::open_with(2, &[]) else {
        return;
    };
    let words = |seed: u32, role: &str, peer: u8| {
        format!(
            "--clients {} --arrivals poisson:200 --sessions 50 --seed {seed} --role {role} --peer {} --peer-wait 20s",
            routed(1),
            generator(peer)
        )
    };
    let start = |number: u8, name: &str, words: &str| {
        Running::start(&mut site.load_command(number, name, &url("/small"), words)).unwrap()
    };
    let stat = start(1, "stat", &words(5, "stat", 0));
    let init = start(0, "init", &words(6, "init", 1));
    let init = site.loaded("init", init);
    let stat = site.loaded("stat", stat);
    for load in [&init, &stat] {
        assert!(
            matches!(load.code, Some(2 | 3)),
            "{:?} {}",
            load.code,
            load.stderr
        );
        assert!(load.stderr.contains("seed"), "{}", load.stderr);
    }
    assert_eq!(site.visits(0), []);
}

#[test]
fn nobody_waits_for_ever() {
    let Some(site) = Site::open(&[]) else { return };
    let words = format!(
        "--clients {} --arrivals poisson:200 --sessions 50 --role init --peer {} --peer-wait 1s",
        routed(0),
        generator(1)
    );
    let load = site.try_load("run", &url("/small"), &words);
    assert_eq!(load.code, Some(3), "{}", load.stderr);
    assert!(
        load.stderr.contains(&generator(1).to_string()),
        "{}",
        load.stderr
    );
}
