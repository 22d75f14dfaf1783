//! Two lines between the clients and the server, and what is measured of both: in one run, and by a feeder for each.

use crate::http::{Measured, Record, differences, totals, unique};
use crate::traffic::Site;
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, SERVER, client, interface};
use serde_json::Value;
use tempfile::tempdir;

const FIRST: &str = interface(Side::Server);
const SECOND: &str = "srv1";
/// Requests of each client.
const REQUESTS: usize = 8;
/// The client whose requests take the first line, and whose responses the second: what two interfaces of a tap see.
const SPLIT: u8 = 0;
/// The clients that have a line for themselves.
const OF_FIRST: u8 = 1;
const OF_SECOND: u8 = 4;

/// Gives the site its second line.
fn add_line(site: &Site) {
    let far = "cli1";
    site.wire.connect_too(SECOND, far).unwrap();
    let must = |side, program: &str, words: String| {
        let words: Vec<&str> = words.split(' ').collect();
        site.wire.must(side, program, &words).unwrap();
    };
    for number in [SPLIT, OF_SECOND] {
        let back = format!("route add {}/32 dev {SECOND}", client(number));
        must(Side::Server, "ip", back);
    }
    // What comes from where it would not be sent to is taken.
    for name in ["all", interface(Side::Client), far] {
        let off = format!("-q -w net.ipv4.conf.{name}.rp_filter=0");
        must(Side::Client, "sysctl", off);
    }
    for name in ["all", FIRST, SECOND] {
        let off = format!("-q -w net.ipv4.conf.{name}.rp_filter=0");
        must(Side::Server, "sysctl", off);
    }
    let rule = format!("rule add from {} table 7", client(OF_SECOND));
    must(Side::Client, "ip", rule);
    let route = format!("route add {SERVER}/32 dev {far} table 7");
    must(Side::Client, "ip", route);
}

fn feeder(site: &Site, feed: &str, interfaces: &[&str]) -> Running {
    let mut command = site.linkweir();
    command
        .args(["feed", "-q", "--consumers", "2", "--name", feed])
        .args(["--summary", &format!("{feed}.json")])
        .args(interfaces.iter().flat_map(|name| ["-i", name]));
    site.listening(&mut command, interfaces.len())
}

fn of_client(records: &[Record], number: u8) -> Vec<&Record> {
    let address = format!("\"{}\"", client(number));
    let records = records.iter();
    records
        .filter(|record| record.rest.contains(&address))
        .collect()
}

/// Each interface of a summary: its name, its packets, what it dropped.
fn each(totals: &Value) -> Vec<(String, u64, u64)> {
    let interfaces = totals["interfaces"].as_array().unwrap();
    let of = |one: &Value| {
        let name = one["name"].as_str().unwrap().to_owned();
        let dropped = one["dropped"]["kernel"].as_u64().unwrap();
        (name, one["packets"].as_u64().unwrap(), dropped)
    };
    interfaces.iter().map(of).collect()
}

/// The names of what [`each`] gives.
fn names_of(totals: &Value) -> Vec<String> {
    each(totals).into_iter().map(|(name, ..)| name).collect()
}

/// Fails with what is different.
fn assert_same(live: &[Record], other: &[Record], who: &str) {
    let wrong = differences(live, other, who);
    assert_eq!(wrong, None, "{}", wrong.as_deref().unwrap_or_default());
}

/// Every transaction is there and complete, and each interface says what it had.
fn assert_complete(all: &[Record], sum: &Value) {
    assert_eq!(all.len(), 3 * REQUESTS);
    for number in [SPLIT, OF_FIRST, OF_SECOND] {
        let records = of_client(all, number);
        assert_eq!(records.len(), REQUESTS, "client {number}");
        let is_complete = |one: &&Record| one.rest.contains(r#""state":"complete""#);
        assert!(records.iter().all(is_complete), "client {number}");
    }
    assert_eq!(names_of(sum), [FIRST, SECOND]);
    let counts = each(sum);
    let packets: u64 = counts.iter().map(|one| one.1).sum();
    assert_eq!(Some(packets), sum["packets"].as_u64());
    let is_whole = |one: &(String, u64, u64)| one.1 > 0 && one.2 == 0;
    assert!(counts.iter().all(is_whole), "{counts:?}");
}

/// A flow whose directions take different lines has both, in order: its handshake, its data and its end.
fn assert_flows(text: &str) {
    let address = format!("\"{}\"", client(SPLIT));
    let split = text.lines().filter(|line| line.contains(&address));
    let split: Vec<Value> = split
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(split.len(), REQUESTS);
    for flow in &split {
        assert_eq!(flow["conn_state"], "SF", "{flow}");
        assert!(flow["c_rtt_cnt"].as_u64() > Some(0), "{flow}");
    }
}

/// Ends a program that must have lost nothing.
fn ended(running: Running) {
    let output = running.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn two_lines_in_one_run_and_a_feeder_for_each() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    add_line(&site);
    let lines = ["-i", FIRST, "-i", SECOND];
    let both = Measured::start(&site, "both", 2, &lines);
    let workers = [&lines[..], &["--workers", "2"]].concat();
    let workers = Measured::start(&site, "workers", 4, &workers);
    let alone = Measured::start(&site, "alone", 1, &lines[..2]);
    let mut flows = site.linkweir();
    flows.args(["flows", "-q", "-w", "flows.jsonl"]).args(lines);
    let flows = site.listening(&mut flows, 2);
    // As in Fig. 1b of Vega et al. (2017), and one for all.
    let names = ["line0", "line1", "lines"].map(unique);
    let feeders = [
        feeder(&site, &names[0], &[FIRST]),
        feeder(&site, &names[1], &[SECOND]),
        feeder(&site, &names[2], &[FIRST, SECOND]),
    ];
    let of_feed = |name: &String| [0, 1].map(|n| (format!("{name}-{n}"), format!("{name}/{n}")));
    let consumers: Vec<(String, String)> = names.iter().flat_map(of_feed).collect();
    let consumers = Measured::consumers(&site, &consumers);

    for _ in 0..REQUESTS {
        for number in [SPLIT, OF_FIRST, OF_SECOND] {
            assert!(site.ask(number, &[]), "client {number}");
        }
    }
    Site::settle();

    let (all, sum) = both.finish(directory.path(), &[0]);
    assert_complete(&all, &sum);
    let (shared, sum) = workers.finish(directory.path(), &[0]);
    assert_same(&shared, &all, "two workers");
    assert_eq!(names_of(&sum), [FIRST, SECOND]);
    // One line alone has no responses for the client whose requests it sees.
    let (alone, sum) = alone.finish(directory.path(), &[0]);
    assert!(sum.get("interfaces").is_none());
    let half = of_client(&alone, SPLIT);
    let is_unanswered = |one: &&Record| one.rest.contains(r#""state":"unanswered""#);
    assert!(half.len() == REQUESTS && half.iter().all(is_unanswered));
    ended(flows);
    assert_flows(&std::fs::read_to_string(directory.path().join("flows.jsonl")).unwrap());

    feeders.into_iter().for_each(ended);
    let mut records = consumers
        .into_iter()
        .map(|consumer| consumer.finish(directory.path(), &[0]).0);
    let mut next = |count| -> Vec<Record> {
        let mut all: Vec<Record> = records.by_ref().take(count).flatten().collect();
        all.sort_unstable();
        all
    };
    // A line of its own is all that a feeder of one line can know.
    let apart = next(4);
    for number in [OF_FIRST, OF_SECOND] {
        let own = |records: &[Record]| -> Vec<Record> {
            of_client(records, number).into_iter().cloned().collect()
        };
        assert_same(&own(&apart), &own(&all), "a feeder for each line");
    }
    assert_same(&next(2), &all, "a feeder for both lines");
    assert_eq!(
        names_of(&totals(directory.path(), &names[2])),
        [FIRST, SECOND]
    );
}
