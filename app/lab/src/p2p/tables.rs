//! What each of them says, side by side.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linkweir_testkit::peers;

use super::act::{Fate, Outcome};
use super::downloads::{Downloads, PATH};
use super::policy::{GUEST, MEMBER};
use super::rate::steady;
use super::settings::Settings;
use super::told::Told;
use super::torrent::{self, CONTENT, Downloaded};
use super::witnesses::Seen;
use crate::findings::{Findings, Rule, Table, Unit};
use crate::program::Ended;

/// What rates of the same transfer may be apart, a part of the largest: bins of a quarter of a second at
/// the edges, and the queue of the shaper (200 ms) of which one side sees the end and the other the
/// beginning.
const RATES: f64 = 0.05;
/// Everything that was said.
pub(super) struct Account<'a> {
    pub(super) settings: &'a Settings,
    pub(super) outcomes: &'a [Outcome],
    pub(super) torrent: &'a Downloaded,
    pub(super) alone: &'a Downloads,
    pub(super) beside: &'a Downloads,
    /// Requests of the downloads in the log of nginx.
    pub(super) served: u64,
    pub(super) told: &'a Told,
    pub(super) seen: &'a Seen,
    pub(super) gateway: &'a Ended,
    pub(super) hashes: &'a BTreeMap<PathBuf, String>,
}

impl Account<'_> {
    /// The tables.
    pub(super) fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        let settings = self.settings;
        let tables = [
            self.connections(),
            self.transfers(),
            self.requests(),
            self.shaping(),
            self.beside(),
            self.losses(),
        ];
        findings.tables.extend(tables);
        findings.fact(
            "shaped",
            format!(
                "BitTorrent, to {}",
                Unit::BitsPerSecond.text(settings.shape())
            ),
        );
        findings.notes.push(format!(
            "Rates are those of the middle of the transfer. Content is what full frames have of it, {} \
             of {} bytes: so much of the configured rate is expected.",
            torrent::PAYLOAD,
            torrent::FRAME
        ));
        findings.fact("dropped", "eDonkey");
        findings.fact("rejected", format!("FastTrack of {GUEST}"));
        findings
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
        let witnesses = ["peers", "flows before", "gateway", "flows behind"];
        let mut table = Table::new("connections, by application", &witnesses);
        let told = self.told;
        for name in ["fasttrack", "gnutella", "msn", "msnftp", "unknown"] {
            let client = Some(MEMBER);
            let cells = [
                self.opened(name, MEMBER),
                told.before.connections(name, client),
                told.decided(name, client),
                told.behind.connections(name, client),
            ];
            table.count(name, Rule::Same, &cells.map(Some));
        }
        let bittorrent = [
            self.torrent.opened,
            told.before.connections("bittorrent", None),
            told.decided("bittorrent", None),
            told.behind.connections("bittorrent", None),
        ];
        table.count("bittorrent", Rule::Same, &bittorrent.map(Some));
        let cells = [
            self.downloads("load/connections"),
            told.before.connections("http", None),
            told.decided("http", None),
            told.behind.connections("http", None),
        ];
        table.count("http", Rule::Same, &cells.map(Some));
        let mut refused = 0;
        for (name, what) in [("fasttrack", "rejected"), ("edonkey", "dropped")] {
            let opened = self.opened(name, GUEST);
            refused += opened;
            let client = Some(GUEST);
            let cells = [
                opened,
                told.before.connections(name, client),
                told.decided(name, client),
            ];
            let [peers, before, decided] = cells.map(Some);
            table.count(
                &format!("{name}, {what}"),
                Rule::Same,
                &[peers, before, decided, None],
            );
        }
        let bare = told.behind.connections("unknown", Some(GUEST));
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
            told.all_decided(),
            flows(&self.seen.behind),
        ];
        table.count("all", Rule::Same, &cells.map(Some));
        table
    }

    fn transfers(&self) -> Table {
        let mut table = Table::new("what became of it", &["sent", "peers", "gateway"]);
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
                Some(self.told.messages),
            ],
        );
        let caught = |event: &str, name: &str| self.told.found(event, name);
        let done = |name: &str, what: &str| self.told.done(name, GUEST, what);
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
            self.told.files.contains(&key)
        })
    }

    fn requests(&self) -> Table {
        let mut table = Table::new("requests in it", &["sent", "nginx", "http"]);
        let told = self.told;
        table.count(
            "downloads",
            Rule::Same,
            &[
                Some(self.downloads("load/requests")),
                Some(self.served),
                Some(told.requests(PATH)),
            ],
        );
        for (name, begin) in [("fasttrack", "/.hash="), ("gnutella", "/get/")] {
            let all = [Fate::Arrives, Fate::Infected].into_iter();
            let sent = all.map(|fate| count(self.with(name, fate))).sum();
            table.count(
                &format!("{name}: transfers"),
                Rule::Same,
                &[Some(sent), None, Some(told.requests(begin))],
            );
        }
        table
    }

    fn shaping(&self) -> Table {
        let witnesses = ["configured", "tc", "flows before", "flows behind", "aria2"];
        let mut table = Table::new("rates", &witnesses);
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
                steady(&self.told.before.counts("bittorrent")),
                steady(&self.told.behind.counts("bittorrent")),
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

    /// What no witness may have lost.
    fn losses(&self) -> Table {
        let witnesses = ["flows before", "gateway", "flows behind", "http"];
        let mut table = Table::new("lost by a witness", &witnesses);
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
