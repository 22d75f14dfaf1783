//! The socket over which consumers find their ring.
//!
//! A `SOCK_SEQPACKET` socket with an abstract name (unix(7)): the name goes with the feeder's process,
//! whatever ends it. One connection a consumer:
//!
//! ```text
//! consumer: "linkweir-feed 1 3"            protocol version, consumer number
//! feeder:   "ok 4" + two files             number of consumers; the ring's data and control
//!       or  "no what was wrong"            and closes
//! consumer: "bye"                          ends on purpose, then closes; without it: was killed
//! ```
//! The connection stays open meanwhile: each side learns by its end that the other is gone. Abstract
//! names belong to a network namespace: both sides must be in the same one.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, recvmsg, send, sendmsg, socket_with, sockopt,
};

/// Bytes of a message at most.
const LONGEST: usize = 256;
/// Version of what is said over the socket.
const VERSION: u32 = 1;
/// A consumer that ends on purpose says this.
pub(crate) const BYE: &[u8] = b"bye";

fn address(name: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(
        format!("linkweir/feed/{name}").as_bytes(),
    )?)
}

fn socket() -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Takes the name of a feed; `AddrInUse` where another feeder has it.
pub(crate) fn listen_as(name: &str) -> io::Result<OwnedFd> {
    let socket = socket()?;
    bind(&socket, &address(name)?)?;
    listen(&socket, 64)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// Goes to the feeder of a name; `ConnectionRefused` where there is none.
pub(crate) fn connect_to(name: &str) -> io::Result<OwnedFd> {
    let socket = socket()?;
    connect(&socket, &address(name)?)?;
    Ok(socket)
}

/// The next consumer that knocks, if one does; never blocks, nor will the connection.
pub(crate) fn accept_one(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(connection) => Ok(Some(connection)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// User and process at the other end.
pub(crate) fn peer(socket: &OwnedFd) -> io::Result<(u32, i32)> {
    let peer = sockopt::socket_peercred(socket)?;
    Ok((peer.uid.as_raw(), peer.pid.as_raw_nonzero().get()))
}

/// Sends text alone.
pub(crate) fn say(socket: &OwnedFd, text: &[u8]) -> io::Result<()> {
    send(socket, text, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Sends text with the files of a ring.
pub(crate) fn say_with(socket: &OwnedFd, text: &str, files: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(
        socket,
        &[IoSlice::new(text.as_bytes())],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// What came over a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A message.
    Text(Vec<u8>),
    /// Nothing now.
    Nothing,
    /// The other side is gone.
    Gone,
}

/// The next message, without waiting.
pub(crate) fn hear(socket: &OwnedFd) -> Heard {
    let mut text = [0; LONGEST];
    match recv(socket, &mut text[..], RecvFlags::DONTWAIT) {
        Ok((_, 0)) => Heard::Gone,
        Ok((_, len)) => Heard::Text(text.get(..len).unwrap_or(&text).to_vec()),
        Err(Errno::AGAIN | Errno::INTR) => Heard::Nothing,
        Err(_) => Heard::Gone,
    }
}

/// The next message with the files that came with it, waiting for it.
pub(crate) fn hear_with(socket: &OwnedFd) -> io::Result<(String, Vec<OwnedFd>)> {
    let mut text = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut text)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut files = Vec::new();
    for item in control.drain() {
        if let RecvAncillaryMessage::ScmRights(these) = item {
            files.extend(these);
        }
    }
    let text = text.get(..message.bytes).unwrap_or(&text);
    Ok((String::from_utf8_lossy(text).into_owned(), files))
}

/// Waits until one of the sockets has something to hear, up to `limit_ms`.
pub(crate) fn wait_any<'a>(
    sockets: impl Iterator<Item = &'a OwnedFd>,
    limit_ms: u32,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled: Vec<PollFd<'_>> = sockets
        .map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN))
        .collect();
    let limit = Timespec {
        tv_sec: i64::from(limit_ms / 1000),
        tv_nsec: i64::from(limit_ms % 1000) * 1_000_000,
    };
    match poll(&mut polled, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The first message of consumer `number`.
pub(crate) fn request(number: u32) -> String {
    format!("linkweir-feed {VERSION} {number}")
}

/// The consumer that a first message asks for.
pub(crate) fn parse_request(text: &[u8]) -> Result<u32, String> {
    let text = String::from_utf8_lossy(text);
    let mut words = text.split(' ');
    if words.next() != Some("linkweir-feed") {
        return Err("this is a linkweir feeder".to_owned());
    }
    let version = words.next().unwrap_or_default();
    if version != VERSION.to_string() {
        return Err(format!(
            "the feeder speaks version {VERSION} of the feed protocol, not {}; use the same linkweir for both",
            version.escape_default()
        ));
    }
    let number = words.next().and_then(|word| word.parse().ok());
    number.ok_or_else(|| "which consumer?".to_owned())
}

/// Letters of a name at most.
const MAX_NAME: usize = 64;

/// Whether a feed may be called so: `[A-Za-z0-9._-]`, 1 to 64 of them.
fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Checks the name of a feed.
///
/// # Errors
/// What is wrong with it, for a person.
pub fn check_name(text: &str) -> Result<&str, String> {
    if is_name(text) {
        Ok(text)
    } else {
        Err(format!(
            "`{text}` is not a valid feed name: 1 to {MAX_NAME} letters, digits, `.`, `_` or `-`"
        ))
    }
}

/// Which consumer of which feed: `NAME/K`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerName {
    /// The feed.
    pub feed: String,
    /// The consumer, from 0. The number of consumers itself is another name of 0, so that those who
    /// count from 1 to N are right too.
    pub number: u32,
}

impl std::str::FromStr for ConsumerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (feed, number) = text.rsplit_once('/').ok_or_else(|| {
            format!("`{text}` names no consumer: write NAME/K, for example {text}/0")
        })?;
        let feed = check_name(feed)?.to_owned();
        let number = number
            .parse()
            .map_err(|_| format!("`{number}` is not a consumer number: write {feed}/0"))?;
        Ok(Self { feed, number })
    }
}

impl std::fmt::Display for ConsumerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.feed, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        assert_eq!(parse_request(request(7).as_bytes()), Ok(7));
        let other = parse_request(b"linkweir-feed 2 0").unwrap_err();
        assert!(other.contains("version 1") && other.contains("not 2"));
        for wrong in [&b"GET / HTTP/1.1"[..], b"", b"linkweir-feed 1 x", b"\xff"] {
            assert!(parse_request(wrong).is_err());
        }
    }

    #[test]
    fn names() {
        let name: ConsumerName = "up-link.1/3".parse().unwrap();
        assert_eq!((name.feed.as_str(), name.number), ("up-link.1", 3));
        assert_eq!(name.to_string(), "up-link.1/3");
        for wrong in ["a", "a/", "/0", "a b/0", "a/-1", "a/b/0", "a/4294967296"] {
            assert!(wrong.parse::<ConsumerName>().is_err(), "{wrong}");
        }
        assert!(check_name(&"x".repeat(64)).is_ok() && check_name(&"x".repeat(65)).is_err());
        assert!(check_name("").is_err() && check_name("é").is_err());
    }
}
