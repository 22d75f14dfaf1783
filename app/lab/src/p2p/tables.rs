//! What each of them says, side by side.

use super::Settings;
use super::act::{Fate, Outcome};
use super::policy::{GUEST, MEMBER};
use super::rate::steady;
use super::recorded::{Recorded, Seen};
use super::torrent::{self, CONTENT, Downloaded, Downloads, PATH};
use crate::program::Ended;
use crate::report::{Report, Rule, Table, Unit};
use linkweir_testkit::peers;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What rates of the same transfer may be apart, a part of the largest: bins of a quarter of a second at
/// the edges, and the queue of the shaper (200 ms) of which one side sees the end and the other the
/// beginning.
const RATES: f64 = 0.05;
/// Everything that was said.
pub(super) struct Observations<'a> {
    pub(super) settings: &'a Settings,
    pub(super) outcomes: &'a [Outcome],
    pub(super) torrent: &'a Downloaded,
    pub(super) alone: &'a Downloads,
    pub(super) beside: &'a Downloads,
    /// Requests of the downloads in the log of nginx.
    pub(super) served: u64,
    pub(super) recorded: &'a Recorded,
    pub(super) seen: &'a Seen,
    pub(super) gateway: &'a Ended,
    pub(super) hashes: &'a BTreeMap<PathBuf, String>,
}

impl Observations<'_> {
    /// The tables.
    pub(super) fn report(&self) -> Report {
        let mut report = Report::default();
        let settings = self.settings;
        let tables = [
            self.connections(),
            self.transfers(),
            self.requests(),
            self.shaping(),
            self.beside(),
            self.losses(),
        ];
        report.tables.extend(tables);
        report.fact(
            "shaped",
            format!(
                "BitTorrent, to {}",
                Unit::BitsPerSecond.text(settings.shape())
            ),
        );
        report.notes.push(format!(
            "Rates are those of the middle of the transfer. Content is what full frames have of it, {} \
             of {} bytes: so much of the configured rate is expected.",
            torrent::PAYLOAD,
            torrent::FRAME
        ));
        report.fact("dropped", "eDonkey");
        report.fact("rejected", format!("FastTrack of {GUEST}"));
        report
    }

    fn with(&self, application: &str, fate: Fate) -> impl Iterator<Item = &Outcome> {
        let is_it = move |outcome: &&Outcome| {
            outcome.act.application == application && outcome.act.fate == fate
        };
        self.outcomes.iter().filter(is_it)
    }

    /// Connections that peers of a client opened for an application.
    fn opened(&self, application: &str, client: IpAddr) -> u64 {
        let all = self.outcomes.iter().flat_map(|one| &one.connections);
        count(all.filter(|(name, own)| *name == application && own.ip() == client))
    }

    fn connections(&self) -> Table {
        let observers = ["peers", "flows before", "gateway", "flows behind"];
        let mut table = Table::new("connections, by application", &observers);
        let recorded = self.recorded;
        for name in ["fasttrack", "gnutella", "msn", "msnftp", "unknown"] {
            let client = Some(MEMBER);
            let cells = [
                self.opened(name, MEMBER),
                recorded.before.connections(name, client),
                recorded.decided(name, client),
                recorded.behind.connections(name, client),
            ];
            table.count(name, Rule::Same, &cells.map(Some));
        }
        let bittorrent = [
            self.torrent.opened,
            recorded.before.connections("bittorrent", None),
            recorded.decided("bittorrent", None),
            recorded.behind.connections("bittorrent", None),
        ];
        table.count("bittorrent", Rule::Same, &bittorrent.map(Some));
        let cells = [
            self.downloads("load/connections"),
            recorded.before.connections("http", None),
            recorded.decided("http", None),
            recorded.behind.connections("http", None),
        ];
        table.count("http", Rule::Same, &cells.map(Some));
        let mut refused = 0;
        for (name, what) in [("fasttrack", "rejected"), ("edonkey", "dropped")] {
            let opened = self.opened(name, GUEST);
            refused += opened;
            let client = Some(GUEST);
            let cells = [
                opened,
                recorded.before.connections(name, client),
                recorded.decided(name, client),
            ];
            let [peers, before, decided] = cells.map(Some);
            table.count(
                &format!("{name}, {what}"),
                Rule::Same,
                &[peers, before, decided, None],
            );
        }
        let bare = recorded.behind.connections("unknown", Some(GUEST));
        table.count(
            "refused: handshakes without content",
            Rule::Same,
            &[Some(refused), None, None, Some(bare)],
        );
        let flows =
            |ended: &Ended| ended.count("flows/tcp_complete") + ended.count("flows/tcp_incomplete");
        let said: usize = self.outcomes.iter().map(|one| one.connections.len()).sum();
        let cells = [
            number(said) + self.torrent.opened + self.downloads("load/connections"),
            flows(&self.seen.before),
            recorded.all_decided(),
            flows(&self.seen.behind),
        ];
        table.count("all", Rule::Same, &cells.map(Some));
        table
    }

    fn transfers(&self) -> Table {
        let mut table = Table::new("outcomes", &["sent", "peers", "gateway"]);
        for name in ["fasttrack", "gnutella", "msn", "unknown"] {
            let sent = count(self.with(name, Fate::Arrives));
            let arrived = count(
                self.with(name, Fate::Arrives)
                    .filter(|one| self.is_whole(one)),
            );
            // What nobody knows is not looked into.
            let carrier = if name == "msn" { "msnftp" } else { name };
            let seen = (name != "unknown").then(|| {
                let all = self.with(name, Fate::Arrives);
                count(all.filter(|one| self.is_audited(one, carrier)))
            });
            table.count(
                &format!("{carrier}: whole files"),
                Rule::Same,
                &[Some(sent), Some(arrived), seen],
            );
        }
        let (sent, came) = &self.torrent.file;
        let came = u64::from(self.are_same(sent, came));
        table.count(
            "bittorrent: whole files",
            Rule::Same,
            &[Some(1), Some(came), None],
        );
        let talks = || {
            self.outcomes
                .iter()
                .filter(|one| one.act.application == "msn")
        };
        table.count(
            "msn: messages",
            Rule::Same,
            &[
                Some(talks().map(|one| number(one.said)).sum()),
                Some(talks().map(|one| number(one.heard)).sum()),
                Some(self.recorded.messages),
            ],
        );
        let caught = |event: &str, name: &str| self.recorded.found(event, name);
        let done = |name: &str, what: &str| self.recorded.done(name, GUEST, what);
        let refused = [
            (
                "gnutella",
                Fate::Infected,
                "EICAR",
                caught("infected", "gnutella"),
            ),
            (
                "msn",
                Fate::Infected,
                "EICAR by msnftp",
                caught("infected", "msnftp"),
            ),
            ("msn", Fate::Secret, "keyword", caught("keyword", "msn")),
            (
                "fasttrack",
                Fate::Rejected,
                "rejected",
                done("fasttrack", "reject"),
            ),
            ("edonkey", Fate::Dropped, "dropped", done("edonkey", "drop")),
        ];
        for (name, fate, what, caught) in refused {
            let sent = count(self.with(name, fate));
            if sent == 0 {
                continue;
            }
            let (end, felt) = match fate {
                Fate::Dropped => (peers::TIMED_OUT, "no answer"),
                _ => (peers::RESET, "reset"),
            };
            let felt_it = self.with(name, fate).filter(|one| one.code == Some(end));
            table.count(
                &format!("{name}, {what}: {felt}"),
                Rule::Same,
                &[Some(sent), Some(count(felt_it)), Some(caught)],
            );
            let arrived = self.with(name, fate);
            let arrived = count(arrived.filter(|one| one.is_out || self.is_whole(one)));
            table.count(
                "  arrived in spite of it",
                Rule::AtMost(0.0),
                &[None, Some(arrived), None],
            );
        }
        table
    }

    /// What its peer wanted is there as it was sent.
    fn is_whole(&self, outcome: &Outcome) -> bool {
        let file = outcome.file.as_ref();
        file.is_some_and(|(sent, came)| self.are_same(sent, came))
    }

    fn are_same(&self, sent: &Path, came: &Path) -> bool {
        let hash = |path: &Path| self.hashes.get(path);
        hash(sent).is_some() && hash(sent) == hash(came)
    }

    /// The gateway had the whole file pass by as this application.
    fn is_audited(&self, outcome: &Outcome, application: &str) -> bool {
        let sent = outcome
            .file
            .as_ref()
            .and_then(|(sent, _)| self.hashes.get(sent));
        sent.is_some_and(|hash| {
            let key = (application.to_owned(), hash.clone());
            self.recorded.files.contains(&key)
        })
    }

    fn requests(&self) -> Table {
        let mut table = Table::new("HTTP requests", &["sent", "nginx", "http"]);
        let recorded = self.recorded;
        table.count(
            "downloads",
            Rule::Same,
            &[
                Some(self.downloads("load/requests")),
                Some(self.served),
                Some(recorded.requests(PATH)),
            ],
        );
        for (name, begin) in [("fasttrack", "/.hash="), ("gnutella", "/get/")] {
            let all = [Fate::Arrives, Fate::Infected].into_iter();
            let sent = all.map(|fate| count(self.with(name, fate))).sum();
            table.count(
                &format!("{name}: transfers"),
                Rule::Same,
                &[Some(sent), None, Some(recorded.requests(begin))],
            );
        }
        table
    }

    fn shaping(&self) -> Table {
        let observers = ["configured", "tc", "flows before", "flows behind", "aria2"];
        let mut table = Table::new("rates", &observers);
        let shape = self.settings.shape();
        let unit = Unit::BitsPerSecond;
        table.row(
            "torrent, in frames",
            unit,
            Rule::WithinPart(RATES),
            &[Some(shape), steady(&self.torrent.shaped), None, None, None],
        );
        table.row(
            "torrent, in content",
            unit,
            Rule::WithinPart(RATES),
            &[
                Some(shape * CONTENT),
                None,
                steady(&self.recorded.before.counts("bittorrent")),
                steady(&self.recorded.behind.counts("bittorrent")),
                steady(&self.torrent.blocks),
            ],
        );
        table
    }

    /// Of the downloads alone and those beside the torrent.
    fn downloads(&self, way: &str) -> u64 {
        self.alone.load.count(way) + self.beside.load.count(way)
    }

    /// Downloads that nobody shapes.
    fn beside(&self) -> Table {
        let mut table = Table::new("downloads", &["alone", "beside the torrent"]);
        let both = [self.alone, self.beside];
        for (what, way) in [("planned", "load/planned"), ("completed", "load/completed")] {
            let cells = both.map(|one| Some(one.load.count(way)));
            table.count(what, Rule::Shown, &cells);
        }
        let failed = both.map(|one| {
            let [planned, completed] =
                ["load/planned", "load/completed"].map(|way| one.load.count(way));
            Some(planned.abs_diff(completed))
        });
        table.count("not completed", Rule::AtMost(0.0), &failed);
        // In the class of the torrent none could be faster, not even with all of it for itself. On a
        // machine with other work they take longer than on an idle one, but not as long.
        let settings = self.settings;
        let in_class = 8.0 * f64::from(settings.download_bytes) / (settings.shape() * CONTENT);
        table.row(
            "time of one, median",
            Unit::Seconds,
            Rule::AtMost(in_class),
            &both.map(Downloads::median),
        );
        table
    }

    /// What no observer may have lost.
    fn losses(&self) -> Table {
        let observers = ["flows before", "gateway", "flows behind", "http"];
        let mut table = Table::new("losses of observers", &observers);
        let all = [
            &self.seen.before,
            self.gateway,
            &self.seen.behind,
            &self.seen.http,
        ];
        let dropped = all.map(|ended| Some(ended.sum("dropped")));
        table.count("packets and records", Rule::AtMost(0.0), &dropped);
        table
    }
}

fn count<T>(all: impl Iterator<Item = T>) -> u64 {
    all.map(|_| 1).sum()
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
