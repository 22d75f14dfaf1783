//! MSNFTP: one file over a connection of its own, in blocks.

use std::io::{self, Write};

use super::options::{Options, Shared};
use super::talk::Talk;
use super::{say, strange, talk};

/// Bytes of a block after its header.
const BLOCK: usize = 2045;
/// "All of it came."
const SUCCESS: &str = "BYE 16777989";
/// The cookie where no invitation gives one.
const COOKIE: u32 = 4711;

pub(super) fn serve(options: &Options) -> io::Result<()> {
    let file = options.shared("file")?;
    let cookie = options.find("cookie")?.unwrap_or(COOKIE);
    talk::each(options, |talk| send(talk, &file, cookie))
}

pub(super) fn fetch(options: &Options) -> io::Result<()> {
    let talk = Talk::connect(options.address("connect")?, options)?;
    let cookie = options.find("cookie")?.unwrap_or(COOKIE);
    let length = receive(
        talk,
        "receiver@example.test",
        cookie,
        options.create("out")?,
    )?;
    say(format_args!("received {length}"));
    Ok(())
}

/// The sender's side of a connection.
pub(super) fn send(mut talk: Talk, file: &Shared, cookie: u32) -> io::Result<()> {
    expect(&mut talk, "VER MSNFTP")?;
    talk.send(b"VER MSNFTP\r\n")?;
    let user = talk.must_line()?;
    if user.split(' ').nth(2) != Some(&cookie.to_string()) {
        return Err(strange("another cookie"));
    }
    talk.send(format!("FIL {}\r\n", file.bytes.len()).as_bytes())?;
    expect(&mut talk, "TFR")?;
    for block in file.bytes.chunks(BLOCK) {
        let mut bytes = vec![0];
        bytes.extend(u16::try_from(block.len()).unwrap_or_default().to_le_bytes());
        bytes.extend(block);
        talk.send(&bytes)?;
    }
    talk.send(&[1, 0, 0])?;
    expect(&mut talk, SUCCESS)?;
    talk.close()
}

/// The receiver's side; gives how many bytes came.
pub(super) fn receive(
    mut talk: Talk,
    handle: &str,
    cookie: u32,
    mut out: impl Write,
) -> io::Result<u64> {
    talk.send(b"VER MSNFTP\r\n")?;
    expect(&mut talk, "VER MSNFTP")?;
    talk.send(format!("USR {handle} {cookie}\r\n").as_bytes())?;
    let size = talk.must_line()?;
    let size: Option<u64> = size.strip_prefix("FIL ").and_then(|n| n.parse().ok());
    let size = size.ok_or_else(|| strange("no size"))?;
    talk.send(b"TFR\r\n")?;
    let mut came = 0;
    loop {
        let header = talk.exact(3)?;
        let Ok([is_end, low, high]) = <[u8; 3]>::try_from(header) else {
            return Err(strange("a block"));
        };
        if is_end != 0 {
            break;
        }
        let length = u64::from(u16::from_le_bytes([low, high]));
        talk.copy(length, &mut out)?;
        came += length;
    }
    if came != size {
        return Err(strange("not all of the file"));
    }
    talk.send(format!("{SUCCESS}\r\n").as_bytes())?;
    talk.close()?;
    Ok(came)
}

fn expect(talk: &mut Talk, line: &str) -> io::Result<()> {
    let came = talk.must_line()?;
    if came == line {
        Ok(())
    } else {
        Err(strange(&format!("{came} in place of {line}")))
    }
}
