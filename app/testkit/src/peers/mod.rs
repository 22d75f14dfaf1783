//! Programs that speak the protocols of old file sharing and chat, for tests of what is between them.
//!
//! Nobody packages clients of FastTrack, Gnutella, MSN or eDonkey any more. These are small ones of our
//! own over the sockets of the standard library, as far as one transfer or one conversation needs.
//!
//! ```text
//! serve fasttrack|gnutella|msnftp|edonkey|raw --listen ADDRESS --file FILE
//! serve fasttrack|gnutella --push ADDRESS --file FILE        connects, and offers the file
//! serve msn --listen ADDRESS                                 a switchboard
//! serve proxy --listen ADDRESS                               a transparent proxy that copies
//! fetch fasttrack|gnutella|msnftp|raw --connect ADDRESS --out FILE
//! fetch edonkey --connect ADDRESS --out FILE --size BYTES [--say TEXT]..
//! fetch fasttrack|gnutella --listen ADDRESS --out FILE       for one who offers it
//! chat --connect ADDRESS --as HANDLE (--to HANDLE | --answer) [--say TEXT].. [--hear COUNT]
//!      [--offer FILE --listen ADDRESS | --accept FILE]
//!      [--reply TEXT [--then COUNT]]     said when so many were heard; then so many more
//! attack --role ROLE --rows NUMBER,.. --out DIRECTORY [--list FILE]    an end of the rows of `attack`, or of a list
//! attack http --out FILE [--seed NUMBER --count NUMBER]    the server of `attack::http`, or of what chance makes; the file
//!                               is made when it listens
//! idle --connect ADDRESS --path PATH --count COUNT           HTTP connections that stay
//!
//! --split OFFSET,..   what is sent is cut at these offsets of the stream
//! --chunk BYTES --pause MILLISECONDS    so many bytes at a time, and a rest after each
//! --timeout SECONDS   for each answer (10)
//! ```
//!
//! They end with [`COMPLETE`], [`WRONG`], [`USAGE`], [`RESET`] or [`TIMED_OUT`]. What they have to say
//! goes to standard output.

use crate::attack;
use crate::clamd::EICAR;
use options::Options;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;

mod edonkey;
mod fasttrack;
mod gnutella;
mod http;
mod msn;
mod msnftp;
mod options;
mod proxy;
mod raw;
pub mod record;
mod talk;

/// All came.
pub const COMPLETE: u8 = 0;
/// Something went wrong that is none of the others.
pub const WRONG: u8 = 1;
/// The words do not say what to do.
pub const USAGE: u8 = 2;
/// The connection was reset.
pub const RESET: u8 = 3;
/// No answer came in time.
pub const TIMED_OUT: u8 = 4;

/// Does what the words say; gives the code to end with.
#[must_use]
pub fn run(words: &[String]) -> u8 {
    let Ok((options, what)) = Options::read(words) else {
        say("wrong words");
        return USAGE;
    };
    let what: Vec<&str> = what.iter().map(String::as_str).collect();
    let end = match what.as_slice() {
        ["serve", "fasttrack"] => fasttrack::serve(&options),
        ["serve", "gnutella"] => gnutella::serve(&options),
        ["serve", "msn"] => msn::serve(&options),
        ["serve", "msnftp"] => msnftp::serve(&options),
        ["serve", "edonkey"] => edonkey::serve(&options),
        ["serve", "raw"] => raw::serve(&options),
        ["serve", "proxy"] => proxy::serve(&options),
        ["fetch", "fasttrack"] => fasttrack::fetch(&options),
        ["fetch", "gnutella"] => gnutella::fetch(&options),
        ["fetch", "msnftp"] => msnftp::fetch(&options),
        ["fetch", "edonkey"] => edonkey::fetch(&options),
        ["fetch", "raw"] => raw::fetch(&options),
        ["chat"] => msn::chat(&options),
        ["attack", "http"] => attack_http(&options),
        ["attack"] => attack_segments(&options),
        ["idle"] => http::hold(&options),
        _ => Err(ErrorKind::InvalidInput.into()),
    };
    match end {
        Ok(()) => COMPLETE,
        Err(error) => {
            say(format_args!("failed: {error}"));
            code(&error)
        }
    }
}

/// One of the four programs of [`crate::attack`].
fn attack_segments(options: &Options) -> io::Result<()> {
    let [role, rows]: [String; 2] = [options.get("role")?, options.get("rows")?];
    let rows: Result<Vec<usize>, _> = rows.split(',').map(str::parse).collect();
    let rows = rows.map_err(|_| ErrorKind::InvalidInput)?;
    let out: PathBuf = options.get("out")?;
    let list: Option<PathBuf> = options.find("list")?;
    attack::play(&role, list.as_deref(), &rows, &out)
}

fn attack_http(options: &Options) -> io::Result<()> {
    let ready: PathBuf = options.get("out")?;
    let all = match options.find("seed")? {
        Some(seed) => attack::http::random(seed, options.get("count")?, &EICAR),
        None => attack::http::techniques(&EICAR),
    };
    attack::http::serve(&all, &ready)
}

fn code(error: &io::Error) -> u8 {
    match error.kind() {
        ErrorKind::InvalidInput => USAGE,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => RESET,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => TIMED_OUT,
        _ => WRONG,
    }
}

/// A line for who started us. If nobody listens there is nothing to be done about it.
fn say(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}

/// What the other side said is not what the protocol has there.
fn strange(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::{fs, thread};
    use tempfile::{TempDir, tempdir};

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
}
