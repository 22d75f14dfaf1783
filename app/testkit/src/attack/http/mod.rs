//! Responses that clients read in different ways, and a server that gives them.
//!
//! Each is a head in an odd spelling and a body that has what is forbidden in one reading of it. Bodies in chunks
//! come in two forms: `Cut` is whole for who takes the chunks off, `Extension` for who does not.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

mod list;
mod random;
mod spellings;

pub use list::techniques;
pub use random::random;

/// The port of the first technique; each has its own, on every address.
const FIRST_PORT: u16 = 10_000;
/// Longest that a connection is waited for.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Longest request head.
const LONGEST: usize = 64 * 1024;

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Technique {
    /// Family and spelling.
    pub name: String,
    /// What its reader must get.
    pub expected: Option<Vec<u8>>,
    /// What is answered.
    response: Vec<u8>,
    /// What is answered to a request for a part, where that is something else.
    resumed: Option<Vec<u8>>,
    /// Bytes that are sent at once.
    piece: usize,
}

/// The port of a technique.
#[must_use]
pub fn port(technique: usize) -> u16 {
    FIRST_PORT.saturating_add(u16::try_from(technique).unwrap_or(u16::MAX))
}

/// Answers at the port of each of these, on every address, until it is killed. Creates `ready` when it listens.
///
/// # Errors
/// A port is in use.
pub fn serve(all: &[Technique], ready: &Path) -> io::Result<()> {
    let listen = |number| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port(number)));
    let listeners: io::Result<Vec<_>> = (0..all.len()).map(listen).collect();
    let listeners = listeners?;
    fs::write(ready, [])?;
    thread::scope(|scope| {
        for (technique, listener) in all.iter().zip(&listeners) {
            scope.spawn(move || {
                for stream in listener.incoming().flatten() {
                    // A client that goes is what is expected.
                    scope.spawn(move || drop(technique.answer(stream)));
                }
            });
        }
    });
    Ok(())
}

impl Technique {
    /// Whether it is of those that every run of the tests has: a tenth, by the name, so that a new technique changes
    /// nothing for the others.
    #[must_use]
    pub fn is_of_every_run(&self) -> bool {
        let sum: usize = self.name.bytes().map(usize::from).sum();
        self.expected.is_some() || sum % 10 == 7
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut head: Vec<u8> = Vec::new();
        let mut piece = [0; 4096];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < LONGEST {
            let length = stream.read(&mut piece)?;
            if length == 0 {
                return Ok(());
            }
            head.extend(piece.iter().take(length));
        }
        let asks_for_part = head.windows(8).any(|field| field == b"\r\nRange:");
        let resumed = self.resumed.as_ref().filter(|_| asks_for_part);
        let answer = resumed.unwrap_or(&self.response);
        stream.set_nodelay(true)?;
        for piece in answer.chunks(self.piece.max(1)) {
            stream.write_all(piece)?;
        }
        stream.shutdown(Shutdown::Write)?;
        io::copy(&mut stream, &mut io::sink()).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORBIDDEN: &[u8] = b"what must not pass, in so many bytes that it is cut anywhere";

    #[test]
    fn every_technique_has_a_name_of_its_own() {
        let all = techniques(FORBIDDEN);
        let names: std::collections::BTreeSet<_> = all.iter().map(|one| &one.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.len() >= 262, "{}", all.len());
        let tenth = all.iter().filter(|one| one.is_of_every_run()).count();
        assert!((all.len() / 12..all.len() / 8).contains(&tenth), "{tenth}");
    }

    #[test]
    fn forms_of_chunks_show_it_to_one_reader_each() {
        let all = techniques(FORBIDDEN);
        let has = |name: &str| {
            let one = all.iter().find(|one| one.name == name).unwrap();
            let mut windows = one.response.windows(FORBIDDEN.len());
            windows.any(|window| window == FORBIDDEN)
        };
        assert!(has("Transfer-Encoding: chunked, Extension"));
        assert!(!has("Transfer-Encoding: chunked, Cut"));
        assert!(has("Content-Encoding: gzip, not compressed"));
        assert!(!has("Content-Encoding: gzip, gzip"));
    }
}
