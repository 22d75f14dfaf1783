//! Tests that need interfaces of their own: each runs again in a network namespace.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linkweir_capture::{LiveCapture, LiveOptions, LiveSource};
use linkweir_engine::{Fault, Source, SourceEvent};
use linkweir_sys::interface;
use linkweir_sys::packet_socket::{Framing, PacketSocket};
use linkweir_wire::{LinkType, Timestamp};

const INSIDE: &str = "LINKWEIR_TEST_NAMESPACE";

/// Whether the caller runs inside a namespace of its own. If not, the test of this name is run
/// there, and its failure is that of the caller.
///
/// As root a network namespace is enough; otherwise a user namespace gives the privileges, where
/// the kernel allows it.
pub(crate) fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let ways: [&[&str]; 2] = [&["-n"], &["-U", "-r", "-n"]];
    for way in ways {
        let can = Command::new("unshare")
            .args(way)
            .args(["ip", "link", "set", "dev", "lo", "up"])
            .output();
        if !can.is_ok_and(|output| output.status.success()) {
            continue;
        }
        let program = std::env::current_exe().unwrap();
        let output = Command::new("unshare")
            .args(way)
            .arg(program)
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{test} failed in its namespace");
        assert!(text.contains("1 passed"), "{test} was not run");
        return false;
    }
    println!("skipped: {test} needs root or user namespaces, and the programs unshare and ip");
    false
}

/// Runs `ip` with these words.
pub(crate) fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {error}");
}

/// Two interfaces, what leaves one arrives at the other; without the talk of IPv6.
pub(crate) fn veth(one: &str, other: &str) {
    ip(&format!("link add {one} type veth peer name {other}"));
    for name in [one, other] {
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1").ok();
        ip(&format!("link set dev {name} up"));
    }
}

/// A socket that sends frames through an interface.
pub(crate) fn sender(name: &str) -> PacketSocket {
    let socket = PacketSocket::open(Framing::Link).unwrap();
    socket
        .bind_to_send(interface::index_of(name).unwrap())
        .unwrap();
    socket
}

/// A frame that was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) timestamp: Timestamp,
    pub(crate) bytes: Vec<u8>,
    pub(crate) wire_len: u32,
    pub(crate) link: LinkType,
}

/// Everything a source gave.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) frames: Vec<Seen>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) idles: usize,
    pub(crate) has_ended: bool,
}

impl Taken {
    /// Takes events until the condition holds; ten seconds at most.
    pub(crate) fn until(&mut self, source: &mut LiveSource, enough: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !enough(self) {
            assert!(started.elapsed() < Duration::from_secs(10), "{self:?}");
            match source.next_event().unwrap() {
                SourceEvent::Batch(batch) => {
                    assert!(!batch.is_empty());
                    self.frames.extend(batch.frames().map(|frame| Seen {
                        timestamp: frame.timestamp,
                        bytes: frame.bytes.to_vec(),
                        wire_len: frame.wire_len,
                        link: frame.link,
                    }));
                }
                SourceEvent::Idle => self.idles += 1,
                SourceEvent::Fault(fault) => self.faults.push(fault),
                SourceEvent::End => {
                    self.has_ended = true;
                    return;
                }
            }
        }
    }
}

/// Opens one source.
pub(crate) fn open(options: &LiveOptions) -> LiveSource {
    let mut sources = LiveCapture::open(options).unwrap();
    assert_eq!(sources.len(), 1);
    sources.remove(0)
}

/// Asks for the end and takes what is left.
pub(crate) fn finish(options: &LiveOptions, source: &mut LiveSource, taken: &mut Taken) {
    options.stop.store(true, Ordering::Relaxed);
    taken.until(source, |taken| taken.has_ended);
    assert!(taken.has_ended);
}
