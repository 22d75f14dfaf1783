//! Responses that clients read in different ways.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Stdio;

use linkweir_testkit::attack::http::{self, Technique};
use linkweir_testkit::clamd::{Clamd, EICAR};
use linkweir_testkit::gateway::Place;
use linkweir_testkit::netns::{Running, until};

use super::clients::{CLIENTS, Client};
use super::site::{Events, PATIENCE, Site};
use super::{Between, Outcome, is_long_run, judge, told};
use crate::common::skipped;

/// Where the policy is closed, files are held: what its sender makes of the end of one does not matter then.
fn policy(clamd: &Clamd, fail: &str) -> String {
    let hold = if fail == "closed" { "file" } else { "packet" };
    format!(
        "fail = \"{fail}\"\n[scanner.clamd]\naddress = \"{}\"\nwindow = \"32KiB\"\ntail = \"1KiB\"\n\
         timeout = \"5s\"\n[[rule]]\nname = \"web\"\napplication = [\"http\"]\naction = \"inspect\"\n\
         scan = {{ hold = \"{hold}\" }}\nfail = \"{fail}\"\n",
        clamd.socket().display()
    )
}

/// The server's address for a client and a technique: IPv4 and IPv6 in turn.
fn address(client: usize, technique: usize) -> IpAddr {
    let host = u8::try_from(100 + client).unwrap();
    if technique.is_multiple_of(2) {
        IpAddr::V4(Ipv4Addr::new(10, 88, 2, host))
    } else {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0x88, 2, 0, 0, 0, 1, host.into()))
    }
}

/// One technique for one client, by their places in their lists.
type Pair = (usize, usize);

/// What became of pairs with this between the ends.
fn tried(
    site: &Site,
    clamd: &Clamd,
    between: Between,
    all: &[Technique],
    pairs: &[Pair],
) -> Vec<Outcome> {
    let gateway = match between {
        Between::Nothing => None,
        Between::Gateway { fail } => Some(site.gateway(&policy(clamd, fail))),
    };
    let mut running = Vec::new();
    for (client, Client { name, .. }) in CLIENTS.iter().enumerate() {
        let own = pairs.iter().filter(|pair| pair.0 == client);
        let lines: Vec<String> = own.map(|pair| line(site, between, *pair)).collect();
        if !lines.is_empty() {
            let directory = format!("{}-{name}", between.name());
            site.empty(&directory);
            let list = site.put(&format!("{directory}.list"), lines.concat().as_bytes());
            let mut command = CLIENTS[client].command(site, &list);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            running.push(Running::start(&mut command).unwrap());
        }
    }
    for one in running {
        // Codes of clients are about what they were sent.
        one.output().unwrap();
    }
    let events = gateway.map_or_else(|| Events(Vec::new()), super::Gateway::end);
    let outcome = |pair: &Pair| {
        let (client, technique) = *pair;
        let came = fs::read(site.path(&out(between, *pair))).unwrap_or_default();
        let has = |text: &[u8]| came.windows(text.len()).any(|window| window == text);
        let server = address(client, technique).to_string();
        let of_it = events.0.iter().filter(|event| {
            event["server_ip"] == server && event["server_port"] == http::port(technique)
        });
        Outcome {
            number: technique,
            way: CLIENTS[client].name.to_owned(),
            between,
            arrived: has(&EICAR),
            told: told(of_it),
            is_served: all[technique].expected.as_deref().is_none_or(has),
        }
    };
    pairs.iter().map(outcome).collect()
}

fn out(between: Between, (client, technique): Pair) -> String {
    format!("{}-{}/{technique}", between.name(), CLIENTS[client].name)
}

/// What a client fetches, and where to.
fn line(site: &Site, between: Between, pair: Pair) -> String {
    let (client, technique) = pair;
    let host = match address(client, technique) {
        IpAddr::V4(host) => host.to_string(),
        IpAddr::V6(host) => format!("[{host}]"),
    };
    let out = site.path(&out(between, pair));
    format!(
        "http://{host}:{}/file {}\n",
        http::port(technique),
        out.display()
    )
}

/// A scanner, and the two ends with an address of the server for each client.
fn open() -> Option<(Clamd, Site)> {
    let clamd = Clamd::start().map_err(|error| skipped(&error.to_string()));
    let (clamd, site) = (clamd.ok()?, Site::open(&["ip"])?);
    for client in 0..CLIENTS.len() {
        for (technique, length) in [(0, 24), (1, 64)] {
            let address = format!("{}/{length}", address(client, technique));
            let mut words = vec!["addr", "add", &address, "dev", "srv0"];
            words.extend((length == 64).then_some("nodad"));
            site.net.must(Place::Server, "ip", &words).unwrap();
        }
    }
    Some((clamd, site))
}

/// The server, of the list or of so many that chance makes.
fn serve(site: &Site, chance: Option<(u64, usize)>) -> Running {
    let ready = site.path("ready");
    drop(fs::remove_file(&ready));
    let mut words = vec!["attack", "http", "--out", ready.to_str().unwrap()];
    let chance = chance.map(|(seed, count)| [seed.to_string(), count.to_string()]);
    if let Some([seed, count]) = &chance {
        words.extend(["--seed", seed, "--count", count]);
    }
    let server = site.serve(Place::Server, &words);
    assert!(until(PATIENCE, || ready.exists()), "no server");
    server
}

/// The clients that try these techniques.
fn pairs(is_long: bool, techniques: &[usize]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (client, one) in CLIENTS.iter().enumerate() {
        if !is_long && !one.is_of_every_run {
            continue;
        }
        if !one.is_there() {
            skipped(&format!("{} is not installed", one.name));
            continue;
        }
        pairs.extend(techniques.iter().map(|technique| (client, *technique)));
    }
    pairs
}

#[test]
fn responses_that_clients_read_in_different_ways() {
    let Some((clamd, site)) = open() else {
        return;
    };
    let _server = serve(&site, None);
    let all = http::techniques(&EICAR);
    let some = (0..all.len()).filter(|number| is_long_run() || all[*number].is_of_every_run());
    let mut pairs = pairs(is_long_run(), &some.collect::<Vec<_>>());
    let mut outcomes = Vec::new();
    if is_long_run() {
        outcomes = tried(&site, &clamd, Between::Nothing, &all, &pairs);
        // What a client does not read as a file anyway says nothing about a gateway.
        let arrived: BTreeSet<Pair> = pairs
            .iter()
            .zip(&outcomes)
            .filter(|(pair, outcome)| outcome.arrived || all[pair.1].expected.is_some())
            .map(|(pair, _)| *pair)
            .collect();
        pairs.retain(|pair| arrived.contains(pair));
    }
    for between in [Between::CLOSED, Between::OPEN] {
        outcomes.extend(tried(&site, &clamd, between, &all, &pairs));
    }
    let names: Vec<String> = all.into_iter().map(|technique| technique.name).collect();
    judge(&names, &outcomes);
}

/// Responses that chance makes, as [`super::by_chance`] says.
#[test]
fn responses_by_chance() {
    let Some((clamd, site)) = open() else {
        return;
    };
    super::by_chance(24, |seed, count, is_of_every_run| {
        let _server = serve(&site, Some((seed, count)));
        let all = http::random(seed, count, &EICAR);
        let pairs = pairs(!is_of_every_run, &(0..count).collect::<Vec<_>>());
        let ways = [Between::CLOSED, Between::OPEN].into_iter();
        let outcomes = ways.flat_map(|between| tried(&site, &clamd, between, &all, &pairs));
        let outcomes = outcomes.collect();
        (all.into_iter().map(|one| one.name).collect(), outcomes)
    });
}
