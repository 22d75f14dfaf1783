//! Programs that speak the protocols of old file sharing and chat, for tests of what is between them.
//!
//! Nobody packages clients of FastTrack, Gnutella, MSN or eDonkey any more. These are small ones of our
//! own over the sockets of the standard library, as far as one transfer or one conversation needs.
//!
//! ```text
//! serve fasttrack|gnutella|msnftp|edonkey|raw --listen ADDRESS --file FILE
//! serve fasttrack|gnutella --push ADDRESS --file FILE        connects, and offers the file
//! serve msn --listen ADDRESS                                 a switchboard
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

mod accept;
mod edonkey;
mod fasttrack;
mod gnutella;
mod http;
mod idle;
mod msn;
mod msnftp;
mod options;
mod raw;
mod switchboard;
mod talk;

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;

use options::Options;

use crate::attack;
use crate::clamd::EICAR;

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
        ["serve", "msn"] => switchboard::serve(&options),
        ["serve", "msnftp"] => msnftp::serve(&options),
        ["serve", "edonkey"] => edonkey::serve(&options),
        ["serve", "raw"] => raw::serve(&options),
        ["fetch", "fasttrack"] => fasttrack::fetch(&options),
        ["fetch", "gnutella"] => gnutella::fetch(&options),
        ["fetch", "msnftp"] => msnftp::fetch(&options),
        ["fetch", "edonkey"] => edonkey::fetch(&options),
        ["fetch", "raw"] => raw::fetch(&options),
        ["chat"] => msn::chat(&options),
        ["attack", "http"] => attack_http(&options),
        ["attack"] => attack_segments(&options),
        ["idle"] => idle::hold(&options),
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
mod tests;
