//! The fuzz targets, in one program: `FUZZ_TARGET` names the one that it runs, and `list` prints them.
//! `cargo xtask fuzz-smoke` builds and runs it.
#![no_main]

mod capture_run;

mod application;
mod decoder;
mod dns;
mod http;
mod http1;
mod http_inspector;
mod load_response;
mod load_script;
mod pcap;
mod pcapng;
mod peer_inspectors;
mod quic;
mod shards;
mod tls;
mod wire;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// Takes one input; what it must not do is panic, hang, or take memory without bounds.
type Target = fn(&[u8]);

/// Every target. A parser of foreign bytes gets a file and a line here.
const TARGETS: &[(&str, Target)] = &[
    ("application", application::target),
    ("decoder", decoder::target),
    ("dns", dns::target),
    ("http", http::target),
    ("http1", http1::target),
    ("http_inspector", http_inspector::target),
    ("load_response", load_response::target),
    ("load_script", load_script::target),
    ("pcap", pcap::target),
    ("pcapng", pcapng::target),
    ("peer_inspectors", peer_inspectors::target),
    ("quic", quic::target),
    ("shards", shards::target),
    ("tls", tls::target),
    ("wire", wire::target),
];

static CHOSEN: OnceLock<Target> = OnceLock::new();

/// The target that the environment names; without one there is nothing to do but to say which there are.
fn choose() -> Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    if let Some((_, target)) = TARGETS.iter().find(|(known, _)| *known == name) {
        return *target;
    }
    for (known, _) in TARGETS {
        println!("{known}");
    }
    if name != "list" {
        eprintln!("FUZZ_TARGET={name}: not one of these");
    }
    std::process::exit(i32::from(name != "list") * 2)
}

fuzz_target!(init: { CHOSEN.get_or_init(choose); }, |input: &[u8]| CHOSEN.get_or_init(choose)(input));
