//! `linkweir gateway`: the attacks of `linkweir_testkit::attack`. What is forbidden does not pass where the policy is
//! closed; where it is open, what passes has its event.
//!
//! Every run of the tests has a tenth of them. All, beside what happens without a gateway, printed as a table:
//! `LINKWEIR_ATTACKS=all cargo test -p linkweir --test network -- attacks --nocapture`.

mod clients;
mod http;
mod tcp;

use super::site::{self, Gateway};

/// Whether all are asked for.
fn is_long_run() -> bool {
    std::env::var_os("LINKWEIR_ATTACKS").is_some_and(|which| which == "all")
}

/// What stands between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    /// A router.
    Nothing,
    /// A gateway whose policy is closed, or open.
    Gateway { fail: &'static str },
}

impl Between {
    const OPEN: Self = Self::Gateway { fail: "open" };
    const CLOSED: Self = Self::Gateway { fail: "closed" };
    const ALL: [Self; 3] = [Self::Nothing, Self::CLOSED, Self::OPEN];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "without",
            Self::Gateway { fail } => fail,
        }
    }
}

/// What became of one technique.
#[derive(Debug)]
struct Outcome {
    /// Which of them, and in which way: the version of IP, or the client.
    number: usize,
    way: String,
    between: Between,
    /// Whether the honest end has what is forbidden.
    arrived: bool,
    /// The events of its connections that tell of something.
    told: Vec<String>,
    /// Whether what must arrive did, where anything must.
    is_served: bool,
}

impl Outcome {
    /// What is wrong with it, behind a gateway.
    fn fault(&self) -> Option<&'static str> {
        match self.between {
            _ if !self.is_served => Some("what is allowed did not arrive"),
            Between::Nothing => None,
            Between::CLOSED if self.arrived => Some("it passes"),
            _ if self.arrived && self.told.is_empty() => Some("it passes unseen"),
            Between::Gateway { .. } => None,
        }
    }
}

/// The kinds of event that tell of something; the others come with any connection.
const TELLING: [&str; 7] = [
    "blocked",
    "keyword",
    "file_name",
    "infected",
    "unscanned",
    "limit",
    "malformed",
];

/// What was told of these connections, each kind once.
fn told<'a>(events: impl Iterator<Item = &'a serde_json::Value>) -> Vec<String> {
    let kinds = events.filter_map(|event| event["event"].as_str());
    let kinds = kinds.filter(|kind| TELLING.contains(kind));
    once(kinds.map(str::to_owned))
}

fn once(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = words.collect();
    words.sort();
    words.dedup();
    words
}

/// Prints the table of a long run, a line for each technique: the ways in which what is forbidden arrives, and the
/// events. Fails where one is not held.
#[expect(clippy::print_stdout, reason = "what a long run is for")]
fn judge(names: &[String], outcomes: &[Outcome]) {
    let mut faults = Vec::new();
    let mut table = String::new();
    for (number, name) in names.iter().enumerate() {
        let of_it = outcomes.iter().filter(|outcome| outcome.number == number);
        let of_it: Vec<&Outcome> = of_it.collect();
        if of_it.is_empty() {
            continue;
        }
        table += name;
        for between in Between::ALL {
            let of_it = of_it.iter().filter(|one| one.between == between);
            let of_it: Vec<_> = of_it.collect();
            let arrived = of_it.iter().filter(|one| one.arrived);
            let ways = once(arrived.map(|one| one.way.clone())).join(" ");
            let ways = if ways.is_empty() { "-" } else { &ways };
            let told = once(of_it.iter().flat_map(|one| one.told.clone())).join(", ");
            let told = if told.is_empty() {
                told
            } else {
                format!(" ({told})")
            };
            table += &format!(" | {} {ways}{told}", between.name());
            for one in of_it {
                // What the documents say that it passes is in the table all the same.
                let fault = one
                    .fault()
                    .filter(|_| !name.ends_with("(a documented limit)"));
                faults.extend(fault.map(|fault| {
                    let told = one.told.join(", ");
                    format!("{name}, {} {}: {fault} ({told})", between.name(), one.way)
                }));
            }
        }
        table += "\n";
    }
    if is_long_run() {
        println!("{table}");
    }
    assert!(
        faults.is_empty(),
        "{} faults\n{}",
        faults.len(),
        faults.join("\n")
    );
}
