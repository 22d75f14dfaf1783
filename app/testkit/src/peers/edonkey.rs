//! eDonkey between two clients: hello, the name of a file, its parts, chat (Kulbak and Bickson 2005).

use std::io::{self, Seek as _, SeekFrom, Write as _};

use super::options::{Options, Shared};
use super::talk::Talk;
use super::{say, strange, talk};

const PROTOCOL: u8 = 0xe3;
const HELLO: u8 = 0x01;
const SENDING_PART: u8 = 0x46;
const REQUEST_PARTS: u8 = 0x47;
const HELLO_ANSWER: u8 = 0x4c;
const CHAT: u8 = 0x4e;
const SET_FILE: u8 = 0x4f;
const FILE_STATUS: u8 = 0x50;
const START_UPLOAD: u8 = 0x54;
const ACCEPT_UPLOAD: u8 = 0x55;
const FILE_REQUEST: u8 = 0x58;
const FILE_NAME: u8 = 0x59;
/// The hash of the file.
const HASH: [u8; 16] = *b"sixteen bytes it";
/// Bytes of the file in a frame.
const BLOCK: usize = 10_240;
/// Bytes of a range that is asked for.
const RANGE: u32 = 184_320;

pub(super) fn serve(options: &Options) -> io::Result<()> {
    let file = options.shared("file")?;
    talk::each(options, |talk| upload(talk, &file))
}

fn upload(mut talk: Talk, file: &Shared) -> io::Result<()> {
    while let Some((kind, body)) = frame(&mut talk)? {
        match kind {
            HELLO => talk.send(&framed(HELLO_ANSWER, &identity()))?,
            FILE_REQUEST => {
                talk.send(&framed(FILE_NAME, &with_text(&HASH, &file.name)))?;
            }
            SET_FILE => {
                // No list of parts: all are there.
                let status = [&HASH[..], &[0, 0]].concat();
                talk.send(&framed(FILE_STATUS, &status))?;
            }
            START_UPLOAD => talk.send(&framed(ACCEPT_UPLOAD, &[]))?,
            REQUEST_PARTS => {
                for (start, end) in ranges(&body)? {
                    parts(&mut talk, file, start, end)?;
                }
            }
            CHAT => {
                let text = body.get(2..).unwrap_or_default();
                say(format_args!("heard {}", String::from_utf8_lossy(text)));
                talk.send(&framed(CHAT, &with_text(&[], "I hear you")))?;
            }
            _ => return Err(strange("an opcode")),
        }
    }
    Ok(())
}

/// A range, in frames.
fn parts(talk: &mut Talk, file: &Shared, start: u32, end: u32) -> io::Result<()> {
    let at = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
    let bytes = file.bytes.get(at(start)..at(end));
    let bytes = bytes.ok_or_else(|| strange("a range"))?;
    let mut start = start;
    for block in bytes.chunks(BLOCK) {
        let end = start + u32::try_from(block.len()).unwrap_or_default();
        let mut body = HASH.to_vec();
        body.extend(start.to_le_bytes());
        body.extend(end.to_le_bytes());
        body.extend(block);
        talk.send(&framed(SENDING_PART, &body))?;
        start = end;
    }
    Ok(())
}

pub(super) fn fetch(options: &Options) -> io::Result<()> {
    let mut talk = Talk::connect(options.address("connect")?, options)?;
    let mut out = options.create("out")?;
    // No message between clients has it: it comes from a server's list or a link.
    let size: u32 = options.get("size")?;
    let mut hello = vec![16];
    hello.extend(identity());
    talk.send(&framed(HELLO, &hello))?;
    must(&mut talk, HELLO_ANSWER)?;
    for text in options.all("say") {
        talk.send(&framed(CHAT, &with_text(&[], text)))?;
        let answer = must(&mut talk, CHAT)?;
        let answer = answer.get(2..).unwrap_or_default();
        say(format_args!("heard {}", String::from_utf8_lossy(answer)));
    }
    talk.send(&framed(FILE_REQUEST, &HASH))?;
    let name = must(&mut talk, FILE_NAME)?;
    let name = String::from_utf8_lossy(name.get(18..).unwrap_or_default()).into_owned();
    talk.send(&framed(SET_FILE, &HASH))?;
    must(&mut talk, FILE_STATUS)?;
    talk.send(&framed(START_UPLOAD, &HASH))?;
    must(&mut talk, ACCEPT_UPLOAD)?;
    let mut asked = 0;
    while asked < size {
        // Up to three ranges at a time; empty ones are not asked for.
        let edges = [0, 1, 2, 3].map(|part| asked.saturating_add(part * RANGE).min(size));
        let [first, second, third, end] = edges;
        let mut body = HASH.to_vec();
        for offset in [first, second, third, second, third, end] {
            body.extend(offset.to_le_bytes());
        }
        talk.send(&framed(REQUEST_PARTS, &body))?;
        let mut left = end - asked;
        while left > 0 {
            let part = must(&mut talk, SENDING_PART)?;
            let (start, data) = part
                .get(16..20)
                .and_then(|start| start.first_chunk())
                .zip(part.get(24..))
                .ok_or_else(|| strange("a part"))?;
            out.seek(SeekFrom::Start(u64::from(u32::from_le_bytes(*start))))?;
            out.write_all(data)?;
            let came = u32::try_from(data.len()).unwrap_or(u32::MAX);
            left = left.checked_sub(came).ok_or_else(|| strange("too much"))?;
        }
        asked = end;
    }
    say(format_args!("received {name} {size}"));
    talk.close()
}

/// The three ranges of a request: their starts, then their ends; empty ones are left out.
fn ranges(body: &[u8]) -> io::Result<Vec<(u32, u32)>> {
    let numbers = body.get(16..).unwrap_or_default().as_chunks::<4>().0;
    let numbers: Vec<u32> = numbers
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect();
    let (starts, ends) = numbers
        .split_at_checked(3)
        .filter(|(_, ends)| ends.len() == 3)
        .ok_or_else(|| strange("a request for parts"))?;
    let ranges = starts.iter().copied().zip(ends.iter().copied());
    Ok(ranges.filter(|(start, end)| start < end).collect())
}

/// Hash of the user, identifier, port, no tags, no server.
fn identity() -> Vec<u8> {
    let mut body = vec![0x0e; 16];
    body.extend([10, 88, 1, 11]);
    body.extend(4662_u16.to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    body.extend([0; 6]);
    body
}

/// Bytes, then a text with its length before it.
fn with_text(before: &[u8], text: &str) -> Vec<u8> {
    let mut body = before.to_vec();
    body.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    body.extend(text.as_bytes());
    body
}

fn framed(opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![PROTOCOL];
    let length = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
    bytes.extend(length.to_le_bytes());
    bytes.push(opcode);
    bytes.extend(body);
    bytes
}

/// The next frame; `None` where the stream has ended before it.
fn frame(talk: &mut Talk) -> io::Result<Option<(u8, Vec<u8>)>> {
    let header = match talk.exact(6) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        header => header?,
    };
    let Ok([PROTOCOL, a, b, c, d, opcode]) = <[u8; 6]>::try_from(header) else {
        return Err(strange("another protocol"));
    };
    let length = u32::from_le_bytes([a, b, c, d]).saturating_sub(1);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > 4 * BLOCK {
        return Err(strange("a long frame"));
    }
    Ok(Some((opcode, talk.exact(length)?)))
}

fn must(talk: &mut Talk, opcode: u8) -> io::Result<Vec<u8>> {
    match frame(talk)? {
        Some((came, body)) if came == opcode => Ok(body),
        Some((came, _)) => Err(strange(&format!("{came:#x} in place of {opcode:#x}"))),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
