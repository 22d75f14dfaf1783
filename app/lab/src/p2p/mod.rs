//! File sharing and chat through a gateway that tells applications apart.
//!
//! A real torrent (opentracker, aria2) is shaped while downloads by HTTP beside it are not. Peers of our
//! own, of the protocols that nobody packages any more, send one another files and messages: some may,
//! some are dropped or rejected by their application, some carry what a scanner or a keyword catches.
//!
//! What a scenario of this kind says.

use crate::error::LabError;
use crate::gateway::Gateway;
use crate::report::Report;
use crate::services::{self, Scanner, Web};
use crate::settings::duration;
use crate::testbed::{Testbed, need};
use act::{Fate, Outcome};
use linkweir_testkit::gateway::{Place, Torrent};
use linkweir_testkit::load as servers;
use recorded::{Observers, Recorded};
use serde::Deserialize;
use std::time::Duration;
use torrent::{Download, Downloads};

mod act;
mod peer;
mod picture;
mod policy;
mod rate;
mod recorded;
mod tables;
mod torrent;

/// How long downloads go on alone.
const ALONE: Duration = Duration::from_secs(2);
/// How long a torrent takes until its peers talk: so long the downloads beside it go on longer.
const BEGINNING: Duration = Duration::from_secs(2);
/// How long the last lines may take.
const SETTLE: Duration = Duration::from_secs(10);

/// Is a peer, as its words say, until it ends; gives its exit code. Words and codes are those of
/// [`linkweir_testkit::peers`].
#[must_use]
pub fn speak(words: &[String]) -> u8 {
    linkweir_testkit::peers::run(words)
}

/// Runs it.
pub(crate) fn run(settings: &Settings, testbed: &mut Testbed<'_>) -> Result<Report, LabError> {
    need(&[&Torrent::NEEDED[..], &["nft", "tc", "sha256sum"]].concat())?;
    testbed.tell("the web server");
    let web = Web::start(testbed, &servers::Settings::default())?;
    let content = act::noise(testbed.order.seed, settings.download_bytes);
    web.put(torrent::PATH.trim_start_matches('/'), &content)?;
    testbed.route(torrent::CLIENTS)?;
    give_the_guest_an_address(testbed)?;
    let scanner = match settings.infected {
        0 => None,
        _ => Scanner::start(testbed)?,
    };
    testbed.tell("the gateway");
    let gateway = Gateway::start(
        testbed,
        &policy::policy(testbed, settings, scanner.as_ref()),
    )?;
    let observers = Observers::start(testbed)?;
    let pages: Vec<_> = observers.consoles().chain(gateway.console()).collect();
    for (name, address) in pages {
        testbed.tell(&format!("watch {name}: http://{address}/"));
    }
    testbed.tell("a torrent is offered");
    let mut torrent = Download::offer(testbed, settings)?;

    testbed.tell("downloads alone");
    let alone = torrent::start(testbed, settings, "alone", ALONE)?;
    let alone = Downloads::end(alone, testbed, ALONE)?;
    testbed.tell(&format!(
        "the torrent at {} kbit/s, downloads beside it, and peers",
        settings.shape_kbit
    ));
    torrent.begin(testbed)?;
    let duration = settings.duration + BEGINNING;
    let beside = torrent::start(testbed, settings, "beside", duration)?;
    let outcomes = peers(testbed, settings, scanner.is_some())?;
    let torrent = torrent.end(testbed, settings)?;
    let beside = Downloads::end(beside, testbed, duration)?;

    testbed.tell("the last frames");
    let expected = alone.load.count("load/responses") + beside.load.count("load/responses");
    let served = || {
        let visits = web.visits();
        u64::try_from(visits.len()).unwrap_or(u64::MAX)
    };
    // What the log lacks in the end is a finding.
    drop(testbed.wait("the log", SETTLE, || served() >= expected));
    let seen = observers.finish()?;
    let gateway = gateway.finish(testbed)?;
    let recorded = Recorded::read(testbed)?;
    let files = outcomes.iter().filter_map(|one| one.file.as_ref());
    let files = files.chain([&torrent.file]);
    let hashes = act::hashes(files.flat_map(|(sent, came)| [sent.as_path(), came.as_path()]))?;
    let observations = tables::Observations {
        settings,
        outcomes: &outcomes,
        torrent: &torrent,
        alone: &alone,
        beside: &beside,
        served: served(),
        recorded: &recorded,
        seen: &seen,
        gateway: &gateway,
        hashes: &hashes,
    };
    let mut report = observations.report();
    let picture = picture::rates(&recorded.before, settings.shape());
    report.pictures.push(picture);
    if settings.infected > 0 && scanner.is_none() {
        report.notes.push(services::MISSING.to_owned());
    }
    Ok(report)
}

/// What is to wait in vain waits while the others go on, one after the other.
fn peers(
    testbed: &Testbed<'_>,
    settings: &Settings,
    has_scanner: bool,
) -> Result<Vec<Outcome>, LabError> {
    let mut waiting = Vec::new();
    let mut outcomes = Vec::new();
    for act in act::acts(settings, has_scanner) {
        let is_dropped = act.fate == Fate::Dropped;
        let begun = act.begin(testbed, settings)?;
        if is_dropped {
            waiting.push(begun);
        } else {
            outcomes.push(begun.end(testbed)?);
        }
    }
    for begun in waiting {
        outcomes.push(begun.end(testbed)?);
    }
    Ok(outcomes)
}

/// The kernel of the clients takes the guest's address for what goes to a second one of the server.
fn give_the_guest_an_address(testbed: &Testbed<'_>) -> Result<(), LabError> {
    let server = policy::FOR_GUEST.to_string();
    let prefix = format!("{server}/24");
    testbed.net.must(
        Place::Server,
        "ip",
        &["addr", "add", &prefix, "dev", "srv0"],
    )?;
    let source = policy::GUEST.to_string();
    let words = ["route", "add", &server, "via", "10.88.1.1", "src", &source];
    Ok(testbed.net.must(Place::Client, "ip", &words)?)
}

/// Peers of file sharing and chat through the gateway.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// How long the torrent takes at the rate to which it is shaped: that says how long it is.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// What the gateway shapes BitTorrent to, kbit/s.
    pub shape_kbit: u32,
    /// Downloads by HTTP beside it, started in a second.
    pub rate: f64,
    /// Bytes of each of them.
    pub download_bytes: u32,
    /// Files of each protocol that may pass.
    pub transfers: u32,
    /// Bytes of each of them.
    pub file_bytes: u32,
    /// Transfers by eDonkey, which are dropped, and as many of guests by FastTrack, which are rejected.
    pub refused: u32,
    /// Files with the EICAR string by Gnutella, and as many by MSNFTP, where clamd is installed.
    pub infected: u32,
    /// Conversations in which a keyword is said.
    pub secrets: u32,
}

impl Settings {
    /// What the gateway shapes BitTorrent to, bit/s.
    fn shape(&self) -> f64 {
        1e3 * f64::from(self.shape_kbit)
    }
}
