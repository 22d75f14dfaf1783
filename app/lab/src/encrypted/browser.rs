//! Chromium without a window: a page asks for everything and tells the origin what the browser's clock says.

use super::HOST;
use super::client::Reading;
use super::clients::{STREAMS, nanos};
use super::plan::{self, Ask};
use super::server::key_hash;
use super::settings::{Protocol, Settings};
use crate::error::LabError;
use crate::testbed::Testbed;
use linkweir_testkit::gateway::{Place, SERVER};
use serde::Deserialize;
use std::process::Command;

/// The page: groups of paths, each asked for at once and the next when they are there. The times are those of Resource
/// Timing (W3C): `requestStart`, `responseStart`, `responseEnd`, milliseconds.
///
/// It asks when the page itself and what belongs to it has been quiet for as long as an estimate wants to see after
/// several requests at a time.
const PAGE: &str = r#"<!doctype html><title>shop</title><link rel="icon" href="data:,"><script>
const groups = GROUPS;
performance.setResourceTimingBufferSize(100000);
(async () => {
  const ask = async path => (await fetch(path, {cache: "no-store"})).arrayBuffer();
  await new Promise(then => setTimeout(then, 2500));
  for (const group of groups) {
    await Promise.all(group.map(ask));
    await new Promise(then => setTimeout(then, 3));
  }
  await new Promise(then => setTimeout(then, 200));
  const entries = performance.getEntriesByType("resource").filter(one => one.name.includes("/d/"));
  const said = entries.map(one => ({
    name: one.name, protocol: one.nextHopProtocol,
    sent: one.requestStart, first: one.responseStart, last: one.responseEnd,
  }));
  await fetch("/report/NAME", {method: "POST", body: JSON.stringify(said)});
})();
</script>
"#;

/// What the page says of one request.
#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    protocol: String,
    sent: f64,
    first: f64,
    last: f64,
}

/// The browser with a page of its own, which is put where the origin finds it. When all is done, [`said`] is there.
pub(super) fn command(
    testbed: &Testbed<'_>,
    settings: &Settings,
    name: &str,
    asks: &[Ask],
    has_several: bool,
) -> Result<Command, LabError> {
    // HTTP/1.1 has no streams; a browser uses several connections there.
    let at_once = match (settings.http, has_several) {
        (Protocol::Http1, _) | (_, true) => STREAMS,
        _ => 1,
    };
    let paths: Vec<&str> = asks.iter().map(|ask| ask.path.as_str()).collect();
    let groups: Vec<&[&str]> = paths.chunks(at_once).collect();
    let groups = serde_json::json!(groups).to_string();
    let page = PAGE.replace("GROUPS", &groups).replace("NAME", &said(name));
    testbed.put(name, page.as_bytes())?;
    let profile = testbed.path(&format!("{name}.profile"));
    let mut chromium = testbed.command(Place::Client, "chromium");
    chromium.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--no-proxy-server",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-features=HttpsUpgrades,OptimizationHints",
    ]);
    chromium.arg(format!("--host-resolver-rules=MAP {HOST} {SERVER}"));
    chromium.arg(format!(
        "--ignore-certificate-errors-spki-list={}",
        key_hash(testbed)?
    ));
    match settings.http {
        Protocol::Http1 => chromium.arg("--disable-http2"),
        Protocol::Http2 => chromium.arg("--disable-quic"),
        Protocol::Http3 => chromium.arg(format!("--origin-to-force-quic-on={HOST}:443")),
    };
    chromium.arg(format!("--user-data-dir={}", profile.display()));
    chromium.arg(format!("https://{HOST}/page/{name}"));
    chromium
        .env("HOME", &profile)
        .env("TMPDIR", testbed.path(""));
    Ok(chromium)
}

/// The file of what the page of this name says.
pub(super) fn said(name: &str) -> String {
    format!("{name}-said")
}

/// What the page has told.
pub(super) fn readings(text: &str) -> Option<Vec<Reading>> {
    let entries: Vec<Entry> = serde_json::from_str(text).ok()?;
    let known = ["http/1.1", "h2", "h3"];
    let entries = entries.iter().map(|entry| {
        let is_known = known.contains(&entry.protocol.as_str()) && entry.sent > 0.0;
        is_known.then_some(Reading {
            id: plan::number(&entry.name)?,
            first_ns: Some(nanos((entry.first - entry.sent) / 1e3)),
            last_ns: nanos((entry.last - entry.sent) / 1e3),
        })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_page_says_is_read() {
        let text = r#"[{"name":"https://shop.test/d/30/200/5","protocol":"h2","sent":100.5,"first":160.505,"last":161.0}]"#;
        let reading = Reading {
            id: 5,
            first_ns: Some(60_005_000),
            last_ns: 60_500_000,
        };
        assert_eq!(readings(text), Some(vec![reading]));
        // A response of the cache has no time, and would be no measurement.
        assert_eq!(readings(&text.replace("100.5", "0")), None);
    }
}
