//! What a feeder distributed, what became of it, and which transactions are missing.

use std::collections::BTreeSet;

use linkweir_testkit::load::log::Visit;

use super::records::{Ends, Transaction};
use crate::program::Ended;
use crate::report::{Rule, Table};

/// What consumers found that could say so: the one that was killed could not.
pub(super) struct Lives {
    /// Consumer 0, which was asked to end.
    pub(super) asked: Ended,
    /// The one that took its place.
    pub(super) after_asked: Ended,
    /// The one that took the place of consumer 1, which was killed.
    pub(super) after_killed: Ended,
}

/// Everything about one feeder.
pub(super) struct Observations<'a> {
    /// What failed.
    pub(super) title: &'static str,
    /// Size of its rings.
    pub(super) ring: &'static str,
    pub(super) load: &'a Ended,
    pub(super) feeder: &'a Ended,
    pub(super) lives: &'a Lives,
    /// What all consumers wrote.
    pub(super) records: Vec<Transaction>,
    /// Requests that the server answered, one a connection.
    pub(super) visits: &'a [Visit],
}

impl Observations<'_> {
    /// Its tables.
    pub(super) fn tables(&self) -> [Table; 2] {
        [self.packets(), self.transactions()]
    }

    /// A figure of a consumer, as the feeder knows it.
    fn fed(&self, number: usize, what: &str) -> u64 {
        self.feeder
            .count(&format!("feed/consumers/{number}/{what}"))
    }

    fn packets(&self) -> Table {
        let title = format!("{}: packets, rings of {}", self.title, self.ring);
        let mut table = Table::new(&title, &["feeder", "consumers"]);
        let all = |what: &str| self.fed(0, what) + self.fed(1, what);
        let (distributed, dropped) = (all("packets"), all("dropped"));
        table.count(
            "read; distributed or announced as dropped",
            Rule::Same,
            &[
                Some(self.feeder.count("packets")),
                Some(distributed + dropped),
            ],
        );
        let lives = self.lives;
        let taken = lives.asked.count("packets") + lives.after_asked.count("packets");
        table.count(
            "consumer 0, asked to end: distributed; taken by both lives",
            Rule::Same,
            &[Some(self.fed(0, "packets")), Some(taken)],
        );
        let killed = self.fed(1, "taken_by_killed");
        table.count(
            "consumer 1, killed: distributed; taken by both lives",
            Rule::Same,
            &[
                Some(self.fed(1, "packets")),
                Some(killed + lives.after_killed.count("packets")),
            ],
        );
        table.count(
            "consumer 1, killed: how often",
            Rule::Same,
            &[Some(self.fed(1, "killed")), Some(1)],
        );
        table.count("dropped", Rule::Shown, &[Some(dropped), None]);
        table.count(
            "taken by the killed one, perhaps not written",
            Rule::Shown,
            &[Some(self.fed(1, "unwritten_by_killed")), None],
        );
        table
    }

    fn transactions(&self) -> Table {
        let title = format!("{}: transactions, rings of {}", self.title, self.ring);
        let observers = ["load", "nginx", "recorded", "announced", "missing"];
        let mut table = Table::new(&title, &observers);
        let served = self.visits.iter().map(|one| (one.client, one.port));
        let served: BTreeSet<Ends> = served.collect();
        let of = |is_whole: bool| -> BTreeSet<Ends> {
            let records = self.records.iter();
            records
                .filter(|one| (one.state == "complete") == is_whole)
                .map(|one| (one.client_ip, one.client_port))
                .collect()
        };
        let (whole, any_half) = (of(true), of(false));
        let half: BTreeSet<Ends> = any_half.difference(&whole).copied().collect();
        let recorded: BTreeSet<Ends> = whole.union(&half).copied().collect();
        let missing = count(served.difference(&recorded).count());
        table.count(
            "answers, one for each connection",
            Rule::Same,
            &[
                Some(self.load.count("load/responses")),
                count(served.len()),
                None,
                None,
                None,
            ],
        );
        table.count(
            "recorded",
            Rule::Shown,
            &[None, count(served.len()), count(whole.len()), None, None],
        );
        table.count(
            "of one of its two messages alone: recorded as such",
            Rule::Shown,
            &[None, None, count(half.len()), None, None],
        );
        let foreign = count(recorded.difference(&served).count());
        table.count(
            "recorded, and not served",
            Rule::AtMost(0.0),
            &[None, None, foreign, None, None],
        );
        let dropped: u64 = (0..2).map(|number| self.fed(number, "dropped")).sum();
        let announced = dropped + self.fed(1, "unwritten_by_killed");
        table.count(
            "missing: a packet of each was announced as lost",
            Rule::Falling(0.0),
            &[None, None, None, Some(announced), missing],
        );
        table
    }
}

fn count(number: usize) -> Option<u64> {
    u64::try_from(number).ok()
}
