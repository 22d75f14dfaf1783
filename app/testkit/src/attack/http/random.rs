//! Responses that chance makes: spellings of the list put together, bytes put in and taken out, cut anywhere.

use super::Technique;
use super::spellings::{CHUNK_SIZES, GZIP, LENGTHS, STATUS_LINES, TRANSFER_ENCODINGS};
use crate::attack::coding;
use crate::attack::random::Chance;

/// Fields that say nothing of the body, or what only some clients take for something.
const FIELDS: [&str; 18] = [
    "X: y",
    "Connection: close",
    "Connection: keep-alive",
    "Content-Type: text/plain",
    "Content-Range: bytes 0-9/10",
    "Content-Disposition: attachment; filename=x",
    "X",
    ": x",
    "X : y",
    " X: y",
    "X: y\r\n z",
    "Upgrade: x",
    "X\u{e9}: y",
    "X\x7f: y",
    "From x",
    "Content-Encoding: identity",
    "TE: chunked",
    "Trailer: X",
];
/// Fields that nobody minds.
const HARMLESS_FIELDS: [&str; 5] = [
    "X: y",
    "Content-Type: text/plain",
    "Server: x",
    "X:",
    "X-Text:   several words, \"quoted; too\"  ",
];
/// Ends of lines, beside the one that they have.
const LINE_ENDS: [&str; 7] = ["\n", "\r", "\r\r\n", "\n\r\n", " \r\n", "\0\r\n", "\t\r\n"];
/// What stands behind the last chunk.
const CHUNK_ENDS: [&str; 6] = [
    "0\r\n",
    "",
    "0000\r\n\r\n",
    "0;x\r\n\r\n",
    "0\r\nX: y\r\n\r\n",
    "00x\r\n\r\n",
];
/// Bytes that are put in.
const BYTES: &[u8] = b"\0\t\x0b\x0c\r\n ;,:\"\\0x-+\x80\xff";

/// So many responses. In every fourth nothing is forbidden and nothing odd: it must arrive whole.
#[must_use]
pub fn random(seed: u64, count: usize, forbidden: &[u8]) -> Vec<Technique> {
    let mut chance = Chance(seed);
    let all = (0..count).map(|number| {
        let (response, expected) = if number % 4 == 3 {
            let (response, body) = honest(&mut chance);
            (response, Some(body))
        } else {
            (hostile(&mut chance, forbidden), None)
        };
        let piece = match chance.below(2) {
            0 => response.len(),
            _ => 1 + chance.below(response.len() / 4),
        };
        Technique {
            name: format!("by chance, {seed} {number}: {}", response.escape_ascii()),
            expected,
            response,
            resumed: None,
            piece,
        }
    });
    all.collect()
}

fn honest(chance: &mut Chance) -> (Vec<u8>, Vec<u8>) {
    let length = 30 + chance.below(3000);
    let body = chance.letters(length).into_bytes();
    let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
    for _ in 0..chance.below(4) {
        head += chance.one(&HARMLESS_FIELDS);
        head += "\r\n";
    }
    let mut wire = Vec::new();
    match chance.below(3) {
        0 => {
            head += "Connection: close\r\n";
            wire.clone_from(&body);
        }
        1 => {
            head += &format!("Content-Length: {}\r\n", body.len());
            wire.clone_from(&body);
        }
        _ => {
            head += "Transfer-Encoding: chunked\r\n";
            for piece in pieces(chance, &body) {
                let size = match chance.below(3) {
                    0 => format!("{:x}", piece.len()),
                    1 => format!("{:X}", piece.len()),
                    _ => format!("0{:x}", piece.len()),
                };
                wire.extend(size.bytes());
                wire.extend(b"\r\n");
                wire.extend(piece);
                wire.extend(b"\r\n");
            }
            wire.extend(b"0\r\n\r\n");
        }
    }
    head += "\r\n";
    ([head.as_bytes(), &wire].concat(), body)
}

fn hostile(chance: &mut Chance, forbidden: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in [&b""[..], forbidden] {
        body.extend(part);
        let length = chance.below(200);
        body.extend(chance.letters(length).bytes());
    }
    let mut fields = Vec::new();
    if chance.below(4) == 0 {
        fields.push(chance.one(GZIP).to_owned());
        body = match chance.below(8) {
            0 => coding::zlib(&body),
            1 => coding::deflate(&body),
            2 => body,
            _ => coding::gzip(&body),
        };
    }
    let kind = chance.below(8);
    let is_chunked = kind < 4;
    let wire = match is_chunked {
        true if chance.below(8) == 0 => [b"5;", forbidden, b"\r\nhello\r\n0\r\n\r\n"].concat(),
        true if chance.below(8) == 0 => {
            [b"5\r\nhello\r\n0\r\nX: ", forbidden, b"\r\n\r\n"].concat()
        }
        true => chunks(chance, &body),
        // Behind a head that has no body to some clients, and to others has.
        false if chance.below(8) == 0 => {
            let field = [b"HTTP/1.1 200 OK\r\nX: ", forbidden].concat();
            [&field, &b"\r\nContent-Length: 0\r\n\r\n"[..]].concat()
        }
        false => body.clone(),
    };
    if is_chunked {
        fields.push(often(chance, "Transfer-Encoding: chunked", TRANSFER_ENCODINGS).to_owned());
    }
    if matches!(kind, 3..=6) {
        let length = match chance.below(8) {
            0 => wire.len() - 1,
            1 => wire.len() + 1,
            2 => body.len(),
            _ => wire.len(),
        };
        let field = often(chance, "Content-Length: N", LENGTHS);
        fields.push(field.replace('N', &length.to_string()));
    }
    for _ in 0..chance.below(4) {
        let field = match chance.below(8) {
            0 => chance.one(TRANSFER_ENCODINGS).to_owned(),
            1 => chance.one(LENGTHS).replace('N', &wire.len().to_string()),
            2 => chance.one(GZIP).to_owned(),
            3 => format!("X: {}", String::from_utf8_lossy(forbidden)),
            _ => chance.one(&FIELDS).to_owned(),
        };
        fields.push(field);
    }
    let mut head = often(chance, "HTTP/1.1 200 OK", STATUS_LINES).to_owned();
    while !fields.is_empty() {
        head += line_end(chance);
        head += &fields.swap_remove(chance.below(fields.len()));
    }
    head += line_end(chance);
    head += line_end(chance);
    let mut response = head.into_bytes();
    for _ in 0..chance.below(3) {
        turn_a_byte(chance, &mut response);
    }
    response.extend(wire);
    response
}

/// Mostly the usual one.
fn often<'a>(chance: &mut Chance, usual: &'a str, odd: &[&'a str]) -> &'a str {
    if chance.below(2) == 0 {
        usual
    } else {
        chance.one(odd)
    }
}

fn line_end(chance: &mut Chance) -> &'static str {
    if chance.below(8) > 0 {
        "\r\n"
    } else {
        chance.one(&LINE_ENDS)
    }
}

/// Puts a byte in, takes one out, or repeats some.
fn turn_a_byte(chance: &mut Chance, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let at = chance.below(bytes.len());
    match chance.below(4) {
        0 => drop(bytes.remove(at)),
        1 => {
            let to = bytes.len().min(at + 1 + chance.below(20));
            bytes.extend_from_within(at..to);
            let length = to - at;
            if let Some(behind) = bytes.get_mut(at..) {
                behind.rotate_right(length);
            }
        }
        _ => {
            let odd = BYTES.get(chance.below(BYTES.len())).copied();
            bytes.insert(at, odd.unwrap_or(0));
        }
    }
}

fn pieces<'a>(chance: &mut Chance, mut body: &'a [u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        let (piece, rest) = body.split_at(1 + chance.below(body.len()));
        pieces.push(piece);
        body = rest;
    }
    pieces
}

fn chunks(chance: &mut Chance, body: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    let is_odd = chance.below(3) > 0;
    for piece in pieces(chance, body) {
        let length = match chance.below(30) {
            0 if is_odd => piece.len() - 1,
            1 if is_odd => piece.len() + 1,
            _ => piece.len(),
        };
        let size = format!("{length:x}");
        let spelled = match chance.below(6) {
            0 if is_odd => chance.one(CHUNK_SIZES).replace('S', &size),
            _ => size.clone(),
        };
        wire.extend(spelled.replace('T', &size.to_uppercase()).bytes());
        for part in [&b""[..], piece] {
            wire.extend(part);
            let end = if is_odd && chance.below(4) == 0 {
                line_end(chance)
            } else {
                "\r\n"
            };
            wire.extend(end.bytes());
        }
    }
    let end = match chance.below(4) {
        0 if is_odd => chance.one(&CHUNK_ENDS),
        _ => "0\r\n\r\n",
    };
    wire.extend(end.bytes());
    wire
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_makes_the_same_of_a_seed() {
        const FORBIDDEN: &[u8] = b"what must not pass";
        let all = random(1, 400, FORBIDDEN);
        assert_eq!(all, random(1, 400, FORBIDDEN));
        assert_ne!(all, random(2, 400, FORBIDDEN));
        let (honest, hostile): (Vec<_>, Vec<_>) =
            all.iter().partition(|one| one.expected.is_some());
        assert_eq!((honest.len(), hostile.len()), (100, 300));
        let has = |one: &&Technique| {
            let mut windows = one.response.windows(FORBIDDEN.len());
            windows.any(|window| window == FORBIDDEN)
        };
        assert!(!honest.iter().any(has));
        // The others have it in chunks or coded.
        assert!((100..250).contains(&hostile.iter().filter(|one| has(one)).count()));
    }
}
