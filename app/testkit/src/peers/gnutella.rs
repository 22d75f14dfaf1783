//! Gnutella 0.6: handshake, query and its hit, transfers by HTTP, pushes (draft of 2002).

use std::io;
use std::net::IpAddr;

use super::http::{Head, head, receive};
use super::options::{Options, Shared};
use super::talk::Talk;
use super::{say, strange, talk};

const QUERY: u8 = 0x80;
const HIT: u8 = 0x81;
/// The index of the file.
const INDEX: u32 = 7;
/// The identifier of the one who has it, in hexadecimal digits.
const SERVENT: &str = "00112233445566778899aabbccddeeff";
/// The hash of the file: 32 digits of base 32.
const URN: &str = "urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB";

pub(super) fn serve(options: &Options) -> io::Result<()> {
    let file = options.shared("file")?;
    if options.has("push") {
        let mut talk = Talk::connect(options.address("push")?, options)?;
        talk.send(format!("GIV {INDEX}:{SERVENT}/{}\n\n", file.name).as_bytes())?;
        let first = talk.must_line()?;
        return upload(talk, first, &file);
    }
    talk::each(options, |mut talk| {
        let first = talk.must_line()?;
        if first.starts_with("GNUTELLA CONNECT/0.6") {
            overlay(talk, first, &file)
        } else {
            upload(talk, first, &file)
        }
    })
}

/// The overlay's side: handshake, one query, one hit.
fn overlay(mut talk: Talk, first: String, file: &Shared) -> io::Result<()> {
    let hello = Head::read(&mut talk, Some(first))?;
    if hello.field("user-agent").is_none() {
        return Err(strange("a servent without a name"));
    }
    let lines = [
        "GNUTELLA/0.6 200 OK",
        "User-Agent: LimeWire/4.2.6",
        "X-Ultrapeer: True",
    ];
    talk.send(&head(&lines, false))?;
    Head::read(&mut talk, None)?;
    let (kind, query) = message(&mut talk)?;
    if kind != QUERY {
        return Err(strange("no query"));
    }
    say(format_args!("asked for {}", text(query.get(2..))));
    let address = talk.local()?;
    let IpAddr::V4(ip) = address.ip() else {
        return Err(strange("hits have IPv4 addresses"));
    };
    let mut hit = vec![1];
    hit.extend(address.port().to_le_bytes());
    hit.extend(ip.octets());
    hit.extend(1000_u32.to_le_bytes());
    hit.extend(INDEX.to_le_bytes());
    hit.extend(
        u32::try_from(file.bytes.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes(),
    );
    hit.extend(file.name.as_bytes());
    hit.extend([0, 0]);
    hit.extend([0x11; 16]);
    talk.send(&framed(HIT, &hit))?;
    talk.close()
}

/// A transfer, by index and name or by hash.
fn upload(mut talk: Talk, first: String, file: &Shared) -> io::Result<()> {
    let request = Head::read(&mut talk, Some(first))?;
    let target = request.target().unwrap_or_default();
    let is_it =
        target.starts_with(&format!("/get/{INDEX}/")) || target == format!("/uri-res/N2R?{URN}");
    if !is_it {
        talk.send(&head(
            &["HTTP/1.1 404 Not Found", "Content-Length: 0"],
            false,
        ))?;
        return talk.close();
    }
    let lines = [
        "HTTP/1.1 200 OK",
        "Server: LimeWire/4.2.6",
        "Content-Type: application/binary",
        &format!("Content-Length: {}", file.bytes.len()),
        &format!("X-Gnutella-Content-URN: {URN}"),
    ];
    talk.send(&head(&lines, false))?;
    talk.send(&file.bytes)?;
    talk.close()
}

pub(super) fn fetch(options: &Options) -> io::Result<()> {
    let (mut talk, target) = if options.has("connect") {
        let target = if options.has("urn") {
            format!("/uri-res/N2R?{URN}")
        } else {
            search(options)?
        };
        (Talk::connect(options.address("connect")?, options)?, target)
    } else {
        pushed(options)?
    };
    let lines = [
        &format!("GET {target} HTTP/1.1"),
        &format!("Host: {}", talk.peer()?),
        "User-Agent: LimeWire/4.2.6",
        "X-Queue: 0.1",
        "Connection: close",
    ];
    talk.send(&head(&lines, false))?;
    let length = receive(&mut talk, &mut options.create("out")?)?;
    say(format_args!("received {length}"));
    talk.close()
}

/// Joins the overlay, asks, and gives the target by which the file of the hit is had.
fn search(options: &Options) -> io::Result<String> {
    let mut talk = Talk::connect(options.address("connect")?, options)?;
    let lines = [
        "GNUTELLA CONNECT/0.6",
        "User-Agent: LimeWire/4.2.6",
        "X-Ultrapeer: False",
    ];
    talk.send(&head(&lines, false))?;
    let welcome = Head::read(&mut talk, None)?;
    if welcome.start != "GNUTELLA/0.6 200 OK" {
        return Err(strange("no welcome"));
    }
    talk.send(&head(&["GNUTELLA/0.6 200 OK"], false))?;
    let mut query = 0_u16.to_le_bytes().to_vec();
    query.extend(b"a song\0");
    talk.send(&framed(QUERY, &query))?;
    let (kind, hit) = message(&mut talk)?;
    // Count, port, address, speed; index, size, name.
    if kind != HIT || hit.first() != Some(&1) {
        return Err(strange("no hit"));
    }
    let name = text(hit.get(19..));
    say(format_args!("found {name}"));
    talk.close()?;
    Ok(format!("/get/{INDEX}/{name}"))
}

/// Waits for a push; gives the connection and the target.
fn pushed(options: &Options) -> io::Result<(Talk, String)> {
    let mut talk = talk::one(options)?;
    let offer = talk.must_line()?;
    let name = offer.strip_prefix(&format!("GIV {INDEX}:{SERVENT}/"));
    let target = name.map(|name| format!("/get/{INDEX}/{name}"));
    let target = target.ok_or_else(|| strange("no push"))?;
    if !talk.must_line()?.is_empty() {
        return Err(strange("no end of the push"));
    }
    say(&offer);
    Ok((talk, target))
}

/// Up to a zero.
fn text(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Identifier, type, time to live, hops, length.
fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x5a; 16];
    bytes.extend([kind, 3, 0]);
    bytes.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn message(talk: &mut Talk) -> io::Result<(u8, Vec<u8>)> {
    let header = talk.exact(23)?;
    let kind = header.get(16).copied().unwrap_or_default();
    let length = header.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= 64 * 1024);
    let body = talk.exact(length.ok_or_else(|| strange("a long message"))?)?;
    Ok((kind, body))
}
