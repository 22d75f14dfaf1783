//! Many HTTP connections that were used once and stay.

use std::io;
use std::time::Duration;

use super::http::{head, receive};
use super::options::Options;
use super::say;
use super::talk::{Talk, pause};

/// Opens them one after the other, each with a request and its response; says `holding COUNT` and
/// keeps them until it is killed.
pub(super) fn hold(options: &Options) -> io::Result<()> {
    let address = options.address("connect")?;
    let path: String = options.get("path")?;
    let count: usize = options.get("count")?;
    let request = head(
        &[&format!("GET {path} HTTP/1.1"), "Host: example.test"],
        false,
    );
    let mut held = Vec::new();
    for _ in 0..count {
        let mut talk = Talk::connect(address, options)?;
        talk.send(&request)?;
        receive(&mut talk, &mut io::sink())?;
        held.push(talk);
    }
    say(format_args!("holding {}", held.len()));
    loop {
        pause(Duration::from_secs(1));
    }
}
