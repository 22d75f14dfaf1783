//! Segments that no honest stack sends.

use std::fs;
use std::path::Path;

use linkweir_testkit::attack::{self, Family, Role, Row};
use linkweir_testkit::netns::{Running, until};
use serde_json::Value;

use super::site::{Events, PATIENCE, Site};
use super::{Between, Outcome, is_long_run, judge, told};

fn policy(fail: &str) -> String {
    format!(
        "fail = \"{fail}\"\n[[rule]]\nname = \"web\"\napplication = [\"http\"]\n\
         clients = [\"10.88.1.0/24\", \"fd00:88:1::/64\"]\naction = \"inspect\"\n\
         keywords = [\"project aurora\"]\nfile-names = [\"*.exe\"]\nfail = \"{fail}\"\n\
         [[rule]]\nname = \"names\"\napplication = [\"tls\"]\nsni = [\"evil.test\"]\naction = \"reject\"\n\
         [[rule]]\nname = \"torrents\"\napplication = [\"bittorrent\"]\naction = \"drop\"\n"
    )
}

/// Plays rows, of a list or of the matrix, with this between the ends.
fn played(
    site: &Site,
    between: Between,
    list: Option<&Path>,
    rows: &[(usize, Row)],
) -> Vec<Outcome> {
    let directory = site.empty(between.name());
    let gateway = match between {
        Between::Nothing => None,
        Between::Gateway { fail } => Some(site.gateway(&policy(fail))),
    };
    play(site, &directory, list, rows);
    let events = gateway.map_or_else(|| Events(Vec::new()), super::Gateway::end);
    let mut outcomes = Vec::new();
    for (number, row) in rows {
        for family in Family::BOTH {
            if row.families.has(family) {
                let came = attack::read_by_honest_end(&directory, *number, family);
                let came = fs::read(came).unwrap_or_default();
                let has = |text: &[u8]| came.windows(text.len()).any(|window| window == text);
                let of_it = events.0.iter();
                let of_it = of_it.filter(|event| is_of(event, *number, row, family));
                outcomes.push(Outcome {
                    number: *number,
                    way: family.name().to_owned(),
                    between,
                    arrived: row.has_passed(&came),
                    told: told(of_it),
                    is_served: row.expected.as_deref().is_none_or(has),
                });
            }
        }
    }
    outcomes
}

/// The four programs, until all of them are over.
fn play(site: &Site, directory: &Path, list: Option<&Path>, rows: &[(usize, Row)]) {
    let numbers: Vec<String> = rows.iter().map(|(number, _)| number.to_string()).collect();
    let numbers = numbers.join(",");
    let mut running = Vec::new();
    for role in Role::ALL {
        let words = ["attack", "--role", role.name(), "--rows", &numbers, "--out"];
        let mut words = [&words[..], &[directory.to_str().unwrap()]].concat();
        words.extend(
            list.iter()
                .flat_map(|list| ["--list", list.to_str().unwrap()]),
        );
        running.push(Running::start(&mut site.peer(role.place(), &words)).unwrap());
        let ready = attack::ready(directory, role);
        assert!(until(PATIENCE, || ready.exists()), "{role:?}");
    }
    for one in running {
        let status = one.output().unwrap().status;
        assert!(status.success(), "{status}");
    }
}

/// Whether an event is of a row.
fn is_of(event: &Value, number: usize, row: &Row, family: Family) -> bool {
    let address = event["client_ip"].as_str().unwrap_or_default();
    let ports = [&event["client_port"], &event["server_port"]];
    // What was not decoded has no ports.
    let is_undecoded = ports.iter().all(|port| **port == 0) && row.name.contains("17 headers");
    address.contains(':') == (family == Family::V6)
        && (ports.contains(&&attack::port(number).into())
            || ports.contains(&&attack::client_port(number).into())
            || is_undecoded)
}

#[test]
fn segments_that_no_honest_stack_sends() {
    let Some(site) = Site::open(&["ip"]) else {
        return;
    };
    attack::set_up(&site.net).unwrap();
    let all = attack::tcp().unwrap();
    let name = |row: &Row| format!("{:?}, {}", row.hostile, row.name);
    let names: Vec<String> = all.iter().map(name).collect();
    let rows: Vec<(usize, Row)> = all
        .into_iter()
        .enumerate()
        .filter(|(_, row)| is_long_run() || row.is_of_every_run)
        .collect();
    let mut outcomes = Vec::new();
    for between in Between::ALL {
        if is_long_run() || between != Between::Nothing {
            outcomes.extend(played(&site, between, None, &rows));
        }
    }
    judge(&names, &outcomes);
}

/// Rows that chance makes, as [`super::by_chance`] says.
#[test]
fn segments_by_chance() {
    let Some(site) = Site::open(&["ip"]) else {
        return;
    };
    attack::set_up(&site.net).unwrap();
    super::by_chance(12, |seed, count, _| {
        let text = attack::random(seed, count);
        let list = site.put("list", text.as_bytes());
        let rows = attack::rows(&text).unwrap().into_iter().enumerate();
        let rows: Vec<(usize, Row)> = rows.collect();
        let scripts: Vec<String> = text.split_terminator("\n\n").map(str::to_owned).collect();
        assert_eq!(scripts.len(), rows.len());
        let ways = [Between::CLOSED, Between::OPEN].into_iter();
        let outcomes = ways.flat_map(|between| played(&site, between, Some(&list), &rows));
        (scripts, outcomes.collect())
    });
}
