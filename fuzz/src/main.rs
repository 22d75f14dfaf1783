//! The fuzz targets, in one program: `FUZZ_TARGET` names the one that it runs, and `list` prints them.
//! `cargo xtask fuzz-smoke` builds and runs it.
#![no_main]

mod captures;
mod estimates;
mod flows;
mod http;
mod inspectors;
mod keys;
mod load;
mod proto;
mod stored;
mod wire;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// Takes one input; what it must not do is panic, hang, or take memory without bounds.
type Target = fn(&[u8]);

/// Every target. A parser of foreign bytes gets a function and a line here.
const TARGETS: &[(&str, Target)] = &[
    ("application", proto::application),
    ("decoder", inspectors::decoder),
    ("dns", proto::dns),
    ("estimates", estimates::estimates),
    ("flows_udp", flows::udp),
    ("http", http::one_stage),
    ("http1", proto::http1),
    ("http2", proto::http2),
    ("http2_direction", proto::http2_direction),
    ("http2_inspector", inspectors::http2),
    ("http_inspector", inspectors::http),
    ("load_response", load::response),
    ("load_script", load::script),
    ("pcap", captures::pcap),
    ("pcapng", captures::pcapng),
    ("peer_inspectors", inspectors::peers),
    ("qpack", proto::qpack),
    ("quic", proto::quic),
    ("quic_keys", keys::quic),
    ("rtp", proto::rtp),
    ("shards", http::shards),
    ("stored", stored::lines),
    ("stream", keys::stream),
    ("tls", proto::tls),
    ("tls_keys", keys::tls),
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
