//! FastTrack (KaZaA): transfers by HTTP with fields of its own, and the push of who cannot be reached.

use std::io;

use super::http::{Head, head, receive};
use super::options::{Options, Shared};
use super::talk::Talk;
use super::{say, strange, talk};

/// The hash by which the file is asked for: 20 bytes in hexadecimal digits.
const HASH: &str = "8f8e4b7c0d5a6b3c2d1e0f9a8b7c6d5e4f3a2b1c";
/// The number of a push.
const PUSH_ID: &str = "1234567890";

pub(super) fn serve(options: &Options) -> io::Result<()> {
    let file = options.shared("file")?;
    let is_lf_only = options.has("lf");
    if options.has("push") {
        let mut talk = Talk::connect(options.address("push")?, options)?;
        talk.send(&head(&[&format!("GIVE {PUSH_ID}")], is_lf_only))?;
        return answer(talk, &file, is_lf_only);
    }
    talk::each(options, |talk| answer(talk, &file, is_lf_only))
}

fn answer(mut talk: Talk, file: &Shared, is_lf_only: bool) -> io::Result<()> {
    let request = Head::read(&mut talk, None)?;
    let wanted = request
        .target()
        .and_then(|target| target.strip_prefix("/.hash="));
    if wanted != Some(HASH) {
        talk.send(&head(&["HTTP/1.0 404 Not Found"], is_lf_only))?;
        return talk.close();
    }
    let size = file.bytes.len();
    let response = [
        "HTTP/1.1 206 Partial Content".to_owned(),
        format!("Content-Range: bytes 0-{}/{size}", size.saturating_sub(1)),
        format!("Content-Length: {size}"),
        "Accept-Ranges: bytes".to_owned(),
        "Server: KazaaClient Nov  3 2002 20:29:03".to_owned(),
        "Connection: close".to_owned(),
        "X-Kazaa-Username: sender".to_owned(),
        "X-Kazaa-Network: KaZaA".to_owned(),
        format!("X-Kazaa-IP: {}", talk.local()?),
        "X-Kazaa-SupernodeIP: 10.0.0.1:1214".to_owned(),
        format!("X-KazaaTag: 4={}", file.name),
        "X-KazaaTag: 6=Nobody".to_owned(),
        format!("X-KazaaTag: 3={HASH}"),
        "Content-Type: application/octet-stream".to_owned(),
    ];
    let response: Vec<&str> = response.iter().map(String::as_str).collect();
    talk.send(&head(&response, is_lf_only))?;
    talk.send(&file.bytes)?;
    talk.close()
}

pub(super) fn fetch(options: &Options) -> io::Result<()> {
    let is_lf_only = options.has("lf");
    let mut talk = if options.has("connect") {
        Talk::connect(options.address("connect")?, options)?
    } else {
        let mut talk = talk::one(options)?;
        let offer = talk.must_line()?;
        if offer.strip_prefix("GIVE ") != Some(PUSH_ID) || !talk.must_line()?.is_empty() {
            return Err(strange("no push"));
        }
        say(&offer);
        talk
    };
    let request = [
        &format!("GET /.hash={HASH} HTTP/1.1"),
        &format!("Host: {}", talk.peer()?),
        "UserAgent: KazaaClient Nov  3 2002 20:29:03",
        "X-Kazaa-Username: receiver",
        "X-Kazaa-Network: KaZaA",
        &format!("X-Kazaa-IP: {}", talk.local()?),
        "Connection: close",
    ];
    talk.send(&head(&request, is_lf_only))?;
    let length = receive(&mut talk, &mut options.create("out")?)?;
    say(format_args!("received {length}"));
    talk.close()
}
