//! Attacks that chance makes: decoys and early pieces of a stream, and then the stream.

use std::fmt::Write as _;

/// What changes a segment so that some receiver drops it, or might.
const TURNS: [&str; 14] = [
    "ttl 2",
    "badsum",
    "ts -5000",
    "ts +5000",
    "ts none",
    "flags -",
    "flags P",
    "ack -20000",
    "ack -2000",
    "ack +70000",
    "md5",
    "urg 1",
    "reserved",
    "win 0",
];
/// The same, of IPv6 alone.
const TURNS_OF_V6: [&str; 4] = ["discard", "routing", "dstopt 1", "dstopt 17"];

/// Random numbers, always the same of a seed: `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    pub(super) fn one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let at = self.below(all.len());
        all.get(at).copied().unwrap_or_default()
    }

    /// So many small letters.
    pub(super) fn letters(&mut self, count: usize) -> String {
        let letter = |_| char::from(b'a' + u8::try_from(self.below(26)).unwrap_or(0));
        (0..count).map(letter).collect()
    }
}

/// A list of so many rows, in the words of [`super::rows`]. In every fourth nothing is forbidden and nobody lies: what is
/// sent must arrive.
#[must_use]
pub fn random(seed: u64, count: usize) -> String {
    let mut chance = Chance(seed);
    let mut list = String::new();
    for number in 0..count {
        let is_honest = number % 4 == 3;
        // A text that is written to memory.
        _ = row(
            &mut chance,
            &mut list,
            &format!("{seed} {number}"),
            is_honest,
        );
    }
    list
}

fn row(chance: &mut Chance, list: &mut String, name: &str, is_honest: bool) -> std::fmt::Result {
    let is_server = chance.below(3) > 0;
    let is_v6 = chance.below(4) == 0;
    let (who, only) = match (is_server, is_v6) {
        (true, false) => ("server", ""),
        (true, true) => ("server", "6"),
        (false, false) => ("client", ""),
        (false, true) => ("client", "6"),
    };
    writeln!(list, "{who}{only}: by chance, {name}")?;
    writeln!(list, "  open")?;
    let stream = if is_server {
        writeln!(list, "  wait request")?;
        response(chance, is_honest)
    } else {
        request(chance, is_honest)
    };
    for _ in 0..chance.below(7) {
        piece(chance, list, &stream, is_v6, is_honest)?;
    }
    let size = 1 + chance.below(stream.len() * 2);
    let order = if chance.below(2) == 0 {
        ""
    } else {
        " reversed"
    };
    writeln!(list, "  data \"{}\" pieces {size}{order}", written(&stream))?;
    if !is_server {
        writeln!(list, "  wait data")?;
    }
    writeln!(list, "  fin")?;
    if !is_server && !is_honest {
        // Nobody answers a head without its end, and the name of what it asks for counts when it is whole.
        writeln!(list, "  forbid {}", stream.len())?;
    }
    if is_honest {
        let end = stream.len().saturating_sub(24);
        writeln!(
            list,
            "  expect \"{}\"",
            written(stream.get(end..).unwrap_or_default())
        )?;
    }
    writeln!(list)
}

/// A piece of the stream that comes before it, as it is or as something else, and turned so that its receiver drops it or not.
fn piece(
    chance: &mut Chance,
    list: &mut String,
    stream: &str,
    is_v6: bool,
    is_honest: bool,
) -> std::fmt::Result {
    let from = chance.below(stream.len());
    let to = from + 1 + chance.below(stream.len() - from);
    let bytes = stream.get(from..to).unwrap_or_default();
    let mut turns = Vec::new();
    let mut bytes = bytes.to_owned();
    if !is_honest {
        if chance.below(2) == 0 {
            bytes = ".".repeat(bytes.len());
        }
        for _ in 0..chance.below(3) {
            turns.push(chance.one(&TURNS));
        }
        if is_v6 && chance.below(3) == 0 {
            turns.push(chance.one(&TURNS_OF_V6));
        }
        if chance.below(12) == 0 {
            let turn = chance.one(&["ttl 2", "badsum", "ts -5000"]);
            return writeln!(list, "  rst {turn}");
        }
    }
    turns.dedup();
    writeln!(
        list,
        "  data \"{}\" at {from} {}",
        written(&bytes),
        turns.join(" ")
    )
}

fn response(chance: &mut Chance, is_honest: bool) -> String {
    let body = text(chance, "project aurora", is_honest);
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn request(chance: &mut Chance, is_honest: bool) -> String {
    let name = if is_honest { "fine" } else { "evil.exe" };
    let field = text(chance, "of no matter", true);
    format!("GET /{name} HTTP/1.1\r\nHost: a.test\r\nX-Text: {field}\r\nConnection: close\r\n\r\n")
}

/// Letters, with what is forbidden somewhere in them.
fn text(chance: &mut Chance, forbidden: &str, is_honest: bool) -> String {
    let length = 30 + chance.below(600);
    let mut text = chance.letters(length);
    if !is_honest {
        let at = chance.below(length);
        text.insert_str(at, forbidden);
    }
    text
}

/// As it stands in a script.
fn written(bytes: &str) -> String {
    bytes.replace('\r', "\\r").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    #[test]
    fn what_chance_makes_are_scripts() {
        for seed in 0..20 {
            let list = random(seed, 50);
            let rows = rows(&list).unwrap_or_else(|wrong| panic!("{wrong}\n{list}"));
            assert_eq!(rows.len(), 50);
            assert_eq!(rows.iter().filter(|row| row.expected.is_some()).count(), 12);
            assert_eq!(random(seed, 50), list);
        }
        assert_ne!(random(1, 5), random(2, 5));
    }
}
