//! File sharing and chat through a gateway that tells applications apart.
//!
//! A real torrent (opentracker, aria2) is shaped while downloads by HTTP beside it are not. Peers of our
//! own, of the protocols that nobody packages any more, send one another files and messages: some may,
//! some are dropped or rejected by their application, some carry what a scanner or a keyword catches.

mod act;
mod arrived;
mod downloads;
mod peer;
mod picture;
mod policy;
mod rate;
mod settings;
mod tables;
mod told;
mod torrent;
mod witnesses;

use std::time::Duration;

use linkweir_testkit::gateway::{Place, Torrent};
use linkweir_testkit::load as servers;

use crate::gateway::Gateway;
use crate::ground::{Ground, need};
use crate::scanner::{self, Scanner};
use crate::web::Web;
use crate::{Findings, LabError};
use act::{Fate, Outcome};
use downloads::Downloads;
pub use settings::Settings;
use told::Told;
use torrent::Download;
use witnesses::Witnesses;

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
pub(crate) fn run(settings: &Settings, ground: &mut Ground<'_>) -> Result<Findings, LabError> {
    need(&[&Torrent::NEEDED[..], &["nft", "tc", "sha256sum"]].concat())?;
    ground.tell("the web server");
    let web = Web::start(ground, &servers::Settings::default())?;
    let content = act::noise(ground.order.seed, settings.download_bytes);
    web.put(downloads::PATH.trim_start_matches('/'), &content)?;
    ground.route(downloads::CLIENTS)?;
    give_the_guest_an_address(ground)?;
    let scanner = match settings.infected {
        0 => None,
        _ => Scanner::start(ground)?,
    };
    ground.tell("the gateway");
    let gateway = Gateway::start(ground, &policy::policy(ground, settings, scanner.as_ref()))?;
    let witnesses = Witnesses::start(ground)?;
    let pages: Vec<_> = witnesses.consoles().chain(gateway.console()).collect();
    for (name, address) in pages {
        ground.tell(&format!("watch {name}: http://{address}/"));
    }
    ground.tell("a torrent is offered");
    let mut torrent = Download::offer(ground, settings)?;

    ground.tell("downloads alone");
    let alone = downloads::start(ground, settings, "alone", ALONE)?;
    let alone = Downloads::end(alone, ground, ALONE)?;
    ground.tell(&format!(
        "the torrent at {} kbit/s, downloads beside it, and peers",
        settings.shape_kbit
    ));
    torrent.begin(ground)?;
    let duration = settings.duration + BEGINNING;
    let beside = downloads::start(ground, settings, "beside", duration)?;
    let outcomes = peers(ground, settings, scanner.is_some())?;
    let torrent = torrent.end(ground, settings)?;
    let beside = Downloads::end(beside, ground, duration)?;

    ground.tell("the last frames");
    let expected = alone.load.count("load/responses") + beside.load.count("load/responses");
    let served = || {
        let visits = web.visits();
        u64::try_from(visits.len()).unwrap_or(u64::MAX)
    };
    // What the log lacks in the end is a finding.
    drop(ground.wait("the log", SETTLE, || served() >= expected));
    let seen = witnesses.finish()?;
    let gateway = gateway.finish(ground)?;
    let told = Told::read(ground)?;
    let files = outcomes.iter().filter_map(|one| one.file.as_ref());
    let files = files.chain([&torrent.file]);
    let hashes = arrived::hashes(files.flat_map(|(sent, came)| [sent.as_path(), came.as_path()]))?;
    let account = tables::Account {
        settings,
        outcomes: &outcomes,
        torrent: &torrent,
        alone: &alone,
        beside: &beside,
        served: served(),
        told: &told,
        seen: &seen,
        gateway: &gateway,
        hashes: &hashes,
    };
    let mut findings = account.findings();
    let picture = picture::rates(&told.before, settings.shape());
    findings.pictures.push(picture);
    if settings.infected > 0 && scanner.is_none() {
        findings.notes.push(scanner::MISSING.to_owned());
    }
    Ok(findings)
}

/// What is to wait in vain waits while the others go on, one after the other.
fn peers(
    ground: &Ground<'_>,
    settings: &Settings,
    has_scanner: bool,
) -> Result<Vec<Outcome>, LabError> {
    let mut waiting = Vec::new();
    let mut outcomes = Vec::new();
    for act in act::acts(settings, has_scanner) {
        let is_dropped = act.fate == Fate::Dropped;
        let begun = act.begin(ground, settings)?;
        if is_dropped {
            waiting.push(begun);
        } else {
            outcomes.push(begun.end(ground)?);
        }
    }
    for begun in waiting {
        outcomes.push(begun.end(ground)?);
    }
    Ok(outcomes)
}

/// The kernel of the clients takes the guest's address for what goes to a second one of the server.
fn give_the_guest_an_address(ground: &Ground<'_>) -> Result<(), LabError> {
    let server = policy::FOR_GUEST.to_string();
    let prefix = format!("{server}/24");
    ground.net.must(
        Place::Server,
        "ip",
        &["addr", "add", &prefix, "dev", "srv0"],
    )?;
    let source = policy::GUEST.to_string();
    let words = ["route", "add", &server, "via", "10.88.1.1", "src", &source];
    Ok(ground.net.must(Place::Client, "ip", &words)?)
}
