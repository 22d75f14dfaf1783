//! Bytes of no protocol: the one sends its own, the other answers with a file.

use std::io::{self, ErrorKind, Write as _};

use super::options::Options;
use super::talk::Talk;
use super::{say, talk};

/// Answers whatever comes first with the file.
pub(super) fn serve(options: &Options) -> io::Result<()> {
    let file = options.shared("file")?;
    talk::each(options, |mut talk| {
        if !talk.some()?.is_empty() {
            talk.send(&file.bytes)?;
        }
        talk.close()
    })
}

/// Sends `--say TEXT` or `--hex DIGITS`; keeps what comes until the end of the stream.
pub(super) fn fetch(options: &Options) -> io::Result<()> {
    let mut bytes = Vec::new();
    for text in options.all("say") {
        bytes.extend(text.as_bytes());
    }
    for digits in options.all("hex") {
        bytes.extend(binary(digits)?);
    }
    let mut talk = Talk::connect(options.address("connect")?, options)?;
    let mut out = options.create("out")?;
    talk.send(&bytes)?;
    let mut length = 0;
    loop {
        let came = talk.some()?;
        if came.is_empty() {
            break;
        }
        length += came.len();
        out.write_all(&came)?;
    }
    say(format_args!("received {length}"));
    talk.close()
}

fn binary(digits: &str) -> io::Result<Vec<u8>> {
    let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    let bytes = bytes.filter(|_| odd.is_empty());
    bytes.ok_or_else(|| ErrorKind::InvalidInput.into())
}
