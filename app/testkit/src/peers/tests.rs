//! The peers with each other, on the loopback interface.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use tempfile::{TempDir, tempdir};

use super::*;

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).display().to_string()
}

fn words(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// An address that nobody has and gets: on one of its own, no client is given the port, which goes out from
/// 127.0.0.1, and no other test.
fn free() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let own = Ipv4Addr::new(127, 77, 0, NEXT.fetch_add(1, Ordering::Relaxed));
    let listener = TcpListener::bind((own, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// Runs a server on a thread that ends with the test program.
fn beside(line: String) {
    thread::spawn(move || run(&words(&line)));
}

fn content() -> Vec<u8> {
    (0..700_001_u32).flat_map(u32::to_le_bytes).collect()
}

#[test]
fn a_file_comes_over_by_every_protocol() {
    let directory = tempdir().unwrap();
    fs::write(path(&directory, "song.mp3"), content()).unwrap();
    let (file, out) = (path(&directory, "song.mp3"), path(&directory, "out"));
    let more = [
        ("fasttrack", ""),
        ("fasttrack", "--lf"),
        ("gnutella", ""),
        ("gnutella", "--urn sha1"),
        ("msnftp", ""),
        ("edonkey", "--say hello --size 2800004"),
        ("raw", "--say hello"),
    ];
    for (protocol, more) in more {
        let server = free();
        beside(format!(
            "serve {protocol} --listen {server} --file {file} --split 10,500"
        ));
        let line = format!("fetch {protocol} --connect {server} --out {out} {more}");
        assert_eq!(run(&words(&line)), COMPLETE, "{protocol}");
        assert!(fs::read(&out).unwrap() == content(), "{protocol}");
    }
}

#[test]
fn a_file_is_pushed() {
    let directory = tempdir().unwrap();
    fs::write(path(&directory, "song.mp3"), content()).unwrap();
    let (file, out) = (path(&directory, "song.mp3"), path(&directory, "out"));
    for protocol in ["fasttrack", "gnutella"] {
        let server = free();
        beside(format!("serve {protocol} --push {server} --file {file}"));
        let line = format!("fetch {protocol} --listen {server} --out {out}");
        assert_eq!(run(&words(&line)), COMPLETE, "{protocol}");
        assert!(fs::read(&out).unwrap() == content(), "{protocol}");
    }
}

#[test]
fn two_talk_and_a_file_goes_over() {
    let directory = tempdir().unwrap();
    fs::write(path(&directory, "plan.doc"), content()).unwrap();
    let server = free();
    beside(format!("serve msn --listen {server}"));
    let sender = format!(
        "chat --connect {server} --as b@example.test --answer --say hi --hear 2 \
         --offer {} --listen 127.0.0.1:0",
        path(&directory, "plan.doc")
    );
    let sender = thread::spawn(move || run(&words(&sender)));
    let receiver = format!(
        "chat --connect {server} --as a@example.test --to b@example.test --say one --say two \
         --hear 0 --accept {}",
        path(&directory, "out")
    );
    assert_eq!(run(&words(&receiver)), COMPLETE);
    assert_eq!(sender.join().unwrap(), COMPLETE);
    assert!(fs::read(path(&directory, "out")).unwrap() == content());
}

#[test]
fn the_end_says_what_happened() {
    assert_eq!(run(&words("fetch nothing")), USAGE);
    assert_eq!(run(&words("fetch raw --connect")), USAGE);
    assert_eq!(run(&words("serve raw --listen 127.0.0.1:0")), USAGE);

    let directory = tempdir().unwrap();
    let out = path(&directory, "out");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let line = format!("fetch fasttrack --connect {address} --out {out} --timeout 1");
    let fetch = |line: String| thread::spawn(move || run(&words(&line)));
    let silent = fetch(line.clone());
    let held = listener.accept().unwrap();
    assert_eq!(silent.join().unwrap(), TIMED_OUT);
    // What was sent and not read makes the close a reset.
    let broken = fetch(line);
    let (stream, _) = listener.accept().unwrap();
    stream.peek(&mut [0; 8]).unwrap();
    drop(stream);
    assert_eq!(broken.join().unwrap(), RESET);
    drop(held);
}
