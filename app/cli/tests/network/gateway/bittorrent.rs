//! `linkweir gateway`: real BitTorrent, by opentracker and aria2.

use super::site;

use std::time::Duration;

use linkweir_testkit::gateway::Torrent;
use linkweir_testkit::netns::{Running, until};
use site::{PATIENCE, Site, noise, pause, same, timed};

fn policy(what: &str) -> String {
    format!("[[rule]]\nname = \"torrents\"\napplication = [\"bittorrent\"]\n{what}\n")
}

#[test]
fn bittorrent_is_known_shaped_and_dropped() {
    let Some(site) = Site::open(&Torrent::NEEDED) else {
        return;
    };
    let bytes = noise(5_000_000);
    let gateway = site.gateway(&policy("action = \"allow\"\nshape = \"10mbit\""));
    let torrent = match Torrent::seed(&site.net, &site.path(""), &bytes) {
        Ok(torrent) => torrent,
        Err(error) if site.net.is_unprivileged() => {
            return crate::common::skipped(&error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let directory = site.path("leech");
    std::fs::create_dir(&directory).unwrap();
    let mut fetch = torrent.fetch(&site.net, &directory);
    let mut fetch = Running::start(&mut fetch).unwrap();
    let (took, is_done) = timed(|| until(PATIENCE, || !matches!(fetch.ended(), Ok(None))));
    let log = || std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    assert!(is_done, "{}", log());
    same(&directory.join("shared.bin"), &bytes);
    // 5 MB at 1.19 MB/s; without, it takes two to three seconds.
    assert!(took > Duration::from_secs(4), "{took:?}");

    gateway.reload(&policy("action = \"drop\""));
    let directory = site.path("dropped");
    std::fs::create_dir(&directory).unwrap();
    let mut fetch = torrent.fetch(&site.net, &directory);
    let mut fetch = Running::start(&mut fetch).unwrap();
    pause(took + Duration::from_secs(1));
    assert!(matches!(fetch.ended(), Ok(None)), "it came in spite of it");
    drop(fetch);
    let events = gateway.end();
    let decided = events.decisions();
    assert!(decided.contains(&("bittorrent", "allow")), "{decided:?}");
    assert!(decided.contains(&("bittorrent", "drop")), "{decided:?}");
}
