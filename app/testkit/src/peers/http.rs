//! HTTP as far as the transfers of FastTrack and Gnutella go (RFC 9112): one request, one response.
//!
//! Many HTTP connections that were used once and stay.

use super::options::Options;
use super::talk::{Talk, pause};
use super::{say, strange};
use std::io::{self, Write};
use std::time::Duration;

/// A head: its start line, and its fields with names in lower case.
#[derive(Debug)]
pub(super) struct Head {
    pub start: String,
    fields: Vec<(String, String)>,
}

impl Head {
    /// Reads one; `first` is its start line, where that is known.
    pub(super) fn read(talk: &mut Talk, first: Option<String>) -> io::Result<Self> {
        let start = first.map_or_else(|| talk.must_line(), Ok)?;
        let mut fields = Vec::new();
        loop {
            let line = talk.must_line()?;
            if line.is_empty() {
                return Ok(Self { start, fields });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| strange("a field"))?;
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|field| field.0 == name);
        found.map(|field| field.1.as_str())
    }

    /// The target of a GET.
    pub(super) fn target(&self) -> Option<&str> {
        let mut words = self.start.split(' ');
        (words.next() == Some("GET")).then(|| words.next())?
    }
}

/// Reads a response that must be of success, and writes its body.
pub(super) fn receive(talk: &mut Talk, out: &mut impl Write) -> io::Result<u64> {
    let head = Head::read(talk, None)?;
    let status = head.start.split(' ').nth(1).unwrap_or_default();
    if !matches!(status, "200" | "206") {
        return Err(strange(&format!("the answer is {}", head.start)));
    }
    let length = head.field("content-length").and_then(|n| n.parse().ok());
    let length = length.ok_or_else(|| strange("no length"))?;
    talk.copy(length, out)?;
    Ok(length)
}

/// A head with lines that end as they are to end.
pub(super) fn head(lines: &[&str], is_lf_only: bool) -> Vec<u8> {
    let end = if is_lf_only { "\n" } else { "\r\n" };
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push_str(end);
    }
    text.push_str(end);
    text.into_bytes()
}

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
