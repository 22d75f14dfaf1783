//! The rows of the table: what stands between client and server, or what is measured beside it as a limit;
//! what a run gives, and what the rows must reach.

use crate::bench::harness::{self, Target, find};
use crate::shell::grouped;
use Stands::{Accept, Automaton, Clamd, Gateway, Nat, Nothing, Proxy, Squid};
use anyhow::{Context as _, Result};

/// A row of the table.
pub(super) type Row = harness::Row<How>;

/// How a row is run and what it must reach.
#[derive(Debug)]
pub(super) struct How {
    /// What stands between.
    pub(super) stands: Stands,
    /// Whether packets of a download go through a queue to the end.
    pub(super) is_queued: bool,
    /// Whether it needs clamd.
    pub(super) scans: bool,
    /// Whether it is measured again with packets as on a cable.
    pub(super) on_cable: bool,
    /// Its target.
    pub(super) least: Option<Least>,
    /// Its target with packets as on a cable.
    pub(super) least_on_cable: Option<Least>,
}

/// The least part of another row, or of the smallest of several.
pub(super) type Least = (f64, &'static [&'static str]);

/// What stands between client and server.
#[derive(Debug)]
pub(super) enum Stands {
    /// `linkweir gateway` with a rule of these lines; without any, connections are left to the kernel.
    Gateway(&'static [&'static str]),
    /// The kernel alone, which forwards.
    Nothing,
    /// The kernel translates addresses.
    Nat,
    /// A program that accepts every packet.
    Accept,
    /// A proxy behind a port redirection that does what these lines of a rule say; without any, it copies.
    Proxy(&'static [&'static str]),
    /// squid behind a port redirection; with c-icap, which has clamd scan what passes.
    Squid { has_icap: bool },
    /// No network: the keyword automaton alone, over the file from memory.
    Automaton,
    /// There is no network: clamd over the file from memory.
    Clamd,
}

impl Stands {
    /// Whether the row has no network: a limit.
    pub(super) const fn is_limit(&self) -> bool {
        matches!(self, Self::Automaton | Self::Clamd)
    }
}

/// One run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    pub(super) gbit_s: f64,
    /// Of one core, by the programs of the row: 1.5 is one and a half cores.
    pub(super) processes: f64,
    /// Of all cores, by everything.
    pub(super) machine: f64,
    /// Of all cores, in the kernel.
    pub(super) kernel: f64,
    /// Packets that went through a queue.
    pub(super) queued: u64,
    /// Packets that the kernel dropped because a queue or its socket was full.
    pub(super) dropped: u64,
    /// Resident memory of the programs, bytes.
    pub(super) memory: u64,
    /// Of one core, by clamd.
    pub(super) clamd: f64,
}

/// The runs of one row.
pub(super) type Series = harness::Series<How, Run>;

const fn row(word: &'static str, name: &'static str, stands: Stands) -> Row {
    let how = How {
        stands,
        is_queued: false,
        scans: false,
        on_cable: false,
        least: None,
        least_on_cable: None,
    };
    harness::row(word, name, how)
}

impl Row {
    const fn queued(mut self) -> Self {
        self.how.is_queued = true;
        self
    }

    const fn scans(mut self) -> Self {
        self.how.scans = true;
        self
    }

    const fn on_cable(mut self) -> Self {
        self.how.on_cable = true;
        self
    }

    const fn at_least_on_cable(mut self, part: f64, of: &'static [&'static str]) -> Self {
        self.how.least_on_cable = Some((part, of));
        self
    }

    const fn at_least(mut self, part: f64, of: &'static [&'static str]) -> Self {
        self.how.least = Some((part, of));
        self
    }
}

/// Lines of rules: names of files are looked at, keywords in every byte, files are kept, and scanned.
pub(super) const NAMES: &str = "file-names = [\"*.exe\", \"*.scr\"]\n";
pub(super) const WORDS: &str = "keywords-file = \"keywords\"\n";
pub(super) const KEPT: &str = "record = true\n";
pub(super) const SCANNED: &str = "scan = \"clamd\"\n";
/// Nothing but what is asked for is recorded; packets go through user space to the end.
const AUDITED: &str = "audit = true\n";
/// 20 signatures of one's own as L7-filter has them: regular expressions over the first bytes of both ends. None matches.
const SIGNATURES: &str = include_str!("../../../../gateway/signatures.toml");

/// The configurations of the paper's Figs. 7 and 8, the proxies of Figs. 11 and 12, and two limits.
#[rustfmt::skip]
pub(super) static ROWS: [Row; 20] = [
    row("forward", "forward", Nothing).on_cable(),
    // The paper's "NAT".
    row("nat", "NAT (masquerade)", Nat),
    // "NAT+libipq": every packet goes to a program that accepts it.
    row("accept", "NFQUEUE, all accepted", Accept).queued().on_cable(),
    // "NAT+libipq+L7".
    row("classify", "gateway: classify, then the kernel's", Gateway(&[])).on_cable()
        .at_least(0.97, &["forward"]),
    // The same as in the paper: with 20 rules, and packets that go on through user space.
    row("l7", "gateway: 20 regular expressions, audit", Gateway(&[AUDITED, SIGNATURES])).queued(),
    // "P2P Proxy + Filter".
    row("inspect", "gateway: file names", Gateway(&[NAMES])).queued().on_cable()
        .at_least(0.85, &["accept"])
        .at_least_on_cable(0.95, &["accept"]),
    row("keywords", "gateway: 1000 keywords, all bytes", Gateway(&[WORDS])).queued().on_cable()
        .at_least(0.8, &["accept", "automaton"]),
    // "P2P Proxy + Log File".
    row("record", "gateway: file names, files kept", Gateway(&[NAMES, KEPT])).queued(),
    // "P2P Proxy + Virus Scan".
    row("scan", "gateway: clamd, windows of 32 KiB", Gateway(&[SCANNED])).queued().scans()
        .at_least(0.95, &["clamd"]),
    // "P2P Proxy + Filter + Log File + Virus Scan", and keywords.
    row("all", "gateway: all of these", Gateway(&[NAMES, WORDS, KEPT, SCANNED])).queued().scans(),
    // The same functions in a proxy (Figs. 11 and 12): row by row beside those of the gateway.
    row("redirect", "REDIRECT, proxy that copies", Proxy(&[])),
    row("redirect-inspect", "REDIRECT, proxy: file names", Proxy(&[NAMES])),
    row("redirect-keywords", "REDIRECT, proxy: 1000 keywords, all bytes", Proxy(&[WORDS])),
    row("redirect-record", "REDIRECT, proxy: file names, files kept", Proxy(&[NAMES, KEPT])),
    row("redirect-scan", "REDIRECT, proxy: clamd, windows of 32 KiB", Proxy(&[SCANNED])).scans(),
    row("redirect-all", "REDIRECT, proxy: all of these", Proxy(&[NAMES, WORDS, KEPT, SCANNED])).scans(),
    row("squid", "REDIRECT, squid without cache", Squid { has_icap: false }),
    row("squid-icap", "REDIRECT, squid with c-icap and clamd", Squid { has_icap: true }).scans(),
    row("automaton", "limit: keyword automaton, one core", Automaton),
    row("clamd", "limit: clamd alone, windows of 32 KiB", Clamd).scans(),
];

/// The row of a word.
///
/// # Errors
/// There is none.
pub(super) fn named(word: &str) -> Result<&'static Row> {
    let row = ROWS.iter().find(|row| row.word == word);
    row.with_context(|| format!("no row `{word}`"))
}

/// A target of a row, where it has one; `title` goes before its name.
pub(super) fn target(
    title: &str,
    row: &Row,
    least: Option<Least>,
    all: &[Series],
) -> Option<Target> {
    let (least, others) = least?;
    let names: Vec<&str> = ROWS
        .iter()
        .filter(|row| others.contains(&row.word))
        .map(|row| row.name)
        .collect();
    let of_what = match names.as_slice() {
        [one] => format!("\"{one}\""),
        several => format!("the smaller of \"{}\"", several.join("\" and \"")),
    };
    let what = format!("{title}{}: at least {least} of {of_what}", row.name);
    Some(part(&what, all, row.word, others, least))
}

/// What a row gets of the smallest of others is at least so much.
pub(super) fn part(what: &str, all: &[Series], word: &str, others: &[&str], least: f64) -> Target {
    let others = others
        .iter()
        .map(|other| find(all, other).map(|other| &other.runs));
    let others: Option<Vec<_>> = others.collect();
    match find(all, word).zip(others) {
        Some((own, others)) => {
            let ratio = own.ratio(&others, |run| run.gbit_s);
            Target::new(what, format!("{ratio:.2}"), ratio >= least)
        }
        None => Target::not_measured(what),
    }
}

/// The kernel drops no packet of any queue.
pub(super) fn no_drop(title: &str, all: &[Series]) -> Target {
    let dropped: u64 = all.iter().map(|series| series.sum(|run| run.dropped)).sum();
    let queued: u64 = all.iter().map(|series| series.sum(|run| run.queued)).sum();
    Target::new(
        format!("{title}: no packet dropped by a queue of the kernel"),
        format!("{} of {}", grouped(dropped), grouped(queued)),
        dropped == 0,
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row with these rates.
    pub(crate) fn series(word: &str, rates: &[f64]) -> Series {
        let run = |gbit_s: &f64| Run {
            gbit_s: *gbit_s,
            ..Run::default()
        };
        Series {
            row: named(word).unwrap(),
            runs: rates.iter().map(run).map(Some).collect(),
        }
    }

    #[test]
    fn a_part_is_of_the_smaller() {
        let mut all = vec![
            series("keywords", &[4.0]),
            series("accept", &[16.0]),
            series("automaton", &[5.0]),
        ];
        let target = |all: &[Series]| {
            let keywords = named("keywords").unwrap();
            target("", keywords, keywords.how.least, all).unwrap()
        };
        assert!(target(&all).is_reached);
        let others = ["accept", "automaton"];
        assert!(!part("t", &all, "keywords", &others, 0.81).is_reached);
        all.pop();
        let missing = target(&all);
        assert!(!missing.is_reached && missing.figure.starts_with("not measured"));
    }

    #[test]
    fn rows_are_compared_with_rows() {
        for row in &ROWS {
            let (_, others) = row.how.least.unwrap_or_default();
            assert!(
                others.iter().all(|word| named(word).is_ok()),
                "{}",
                row.word
            );
            let (_, others) = row.how.least_on_cable.unwrap_or_default();
            let is_measured = |word: &&str| named(word).is_ok_and(|row| row.how.on_cable);
            assert!(others.iter().all(is_measured), "{}", row.word);
            assert!(others.is_empty() || row.how.on_cable, "{}", row.word);
        }
        assert!(named("nothing").is_err());
    }

    #[test]
    fn one_dropped_packet_is_a_miss() {
        let run = |dropped| Run {
            dropped,
            ..Run::default()
        };
        let runs = |dropped: [u64; 2]| Series {
            row: &ROWS[2],
            runs: dropped.into_iter().map(run).map(Some).collect(),
        };
        assert!(no_drop("t", &[runs([0, 0])]).is_reached);
        assert!(!no_drop("t", &[runs([0, 1])]).is_reached);
    }
}
