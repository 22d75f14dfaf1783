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

/// Plays attacks that chance makes: always the same `few`, or as many hundreds of others as `LINKWEIR_ATTACKS_HUNDREDS` says,
/// from the seed `LINKWEIR_ATTACKS_SEED` on. `play` gets a seed, a number of attacks, and whether every run has them; it gives
/// their names and what became of them. What fails has its seed in the message.
#[expect(clippy::print_stdout, reason = "what a long run is for")]
fn by_chance(few: usize, play: impl Fn(u64, usize, bool) -> (Vec<String>, Vec<Outcome>)) {
    let asked = |name| std::env::var(name).ok();
    let asked = |name| asked(name).map(|number| number.parse::<u64>().unwrap());
    let seed = asked("LINKWEIR_ATTACKS_SEED");
    let Some(hundreds) = asked("LINKWEIR_ATTACKS_HUNDREDS") else {
        let (names, outcomes) = play(seed.unwrap_or(1), few, true);
        return fail_with(&faults(&names, &outcomes));
    };
    let first = seed.unwrap_or_else(|| u64::from(std::process::id()) << 32);
    let mut wrong = Vec::new();
    let (mut tried, mut passed) = (0, 0);
    for seed in first..first + hundreds {
        let (names, outcomes) = play(seed, 100, false);
        tried += outcomes.len();
        passed += outcomes.iter().filter(|one| one.arrived).count();
        let faults = faults(&names, &outcomes);
        for fault in &faults {
            println!("{fault}");
        }
        wrong.extend(faults);
        println!(
            "seed {seed}: {tried} tried, {passed} passed with their event, {} faults",
            wrong.len()
        );
    }
    fail_with(&wrong);
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
    /// The events of its connections that tell of something: kind and detail.
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

/// What was reported of these connections, kind and detail, each once.
fn told<'a>(events: impl Iterator<Item = &'a serde_json::Value>) -> Vec<String> {
    let texts = events.map(|event| ["event", "detail"].map(|field| event[field].as_str()));
    let texts = texts.map(|texts| texts.map(Option::unwrap_or_default));
    let texts = texts.filter(|[kind, _]| TELLING.contains(kind));
    once(texts.map(|[kind, detail]| format!("{kind}: {detail}")))
}

fn once(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = words.collect();
    words.sort();
    words.dedup();
    words
}

/// What is wrong behind a gateway, but for what the documents say that it passes.
fn faults(names: &[String], outcomes: &[Outcome]) -> Vec<String> {
    let faults = outcomes.iter().filter_map(|outcome| {
        let name = &names[outcome.number];
        let is_documented = name.ends_with("(a documented limit)");
        let fault = outcome.fault().filter(|_| !is_documented)?;
        let (between, way) = (outcome.between.name(), &outcome.way);
        let told = outcome.told.join(", ");
        Some(format!("{name}, {between} {way}: {fault} ({told})"))
    });
    faults.collect()
}

/// Prints the table of a long run. Fails where an attack is not held.
fn judge(names: &[String], outcomes: &[Outcome]) {
    if is_long_run() {
        print_table(names, outcomes);
    }
    fail_with(&faults(names, outcomes));
}

fn fail_with(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} faults\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// A line for each technique: the ways in which what is forbidden arrives, and the events.
#[expect(clippy::print_stdout, reason = "what a long run is for")]
fn print_table(names: &[String], outcomes: &[Outcome]) {
    for (number, name) in names.iter().enumerate() {
        let of_it = outcomes.iter().filter(|outcome| outcome.number == number);
        let of_it: Vec<&Outcome> = of_it.collect();
        if of_it.is_empty() {
            continue;
        }
        let mut line = name.clone();
        for between in Between::ALL {
            let of_it = of_it.iter().filter(|one| one.between == between);
            let of_it: Vec<_> = of_it.collect();
            let arrived = of_it.iter().filter(|one| one.arrived);
            let ways = once(arrived.map(|one| one.way.clone())).join(" ");
            let ways = if ways.is_empty() { "-" } else { &ways };
            let told = of_it.iter().flat_map(|one| &one.told);
            let kinds = told.filter_map(|told| told.split(':').next());
            let told = once(kinds.map(str::to_owned)).join(", ");
            let told = if told.is_empty() {
                told
            } else {
                format!(" ({told})")
            };
            line += &format!(" | {} {ways}{told}", between.name());
        }
        println!("{line}");
    }
}
