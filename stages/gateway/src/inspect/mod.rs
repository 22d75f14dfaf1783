//! Inspectors: parsers of a connection's two streams that say what passes by.
//!
//! Bytes come in order, in pieces of any size, from either side. An inspector keeps only what it needs
//! to go on: no bodies, heads and messages up to a bound. What it does not understand it calls
//! malformed once; from then on the connection is [opaque](Inspector::opaque): every byte is text.

mod bittorrent;
mod decode;
mod edonkey;
mod gather;
mod http;
mod http2;
mod msn;
mod msnftp;
#[cfg(test)]
mod recorder;

pub use decode::{Coding, DecodeError, DecodeLimit, Decoder};

use linkweir_proto::application::Application;
pub use linkweir_wire::Side;

/// A file, as far as the protocol says before its first byte. Absent texts are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileInfo<'a> {
    /// Its name: of a URL the last segment of the path, percent-decoded; or of `Content-Disposition`.
    /// Any bytes.
    pub name: &'a [u8],
    /// Its length.
    pub announced_size: Option<u64>,
    /// The host it is asked of.
    pub host: &'a [u8],
    /// The hash or other identifier by which the protocol names it, in text.
    pub identifier: &'a [u8],
    /// Who sends it, as the protocol names it.
    pub from: &'a [u8],
    /// Who gets it.
    pub to: &'a [u8],
    /// How its bytes are coded on the way; [`Found::file_data`] gets them as they come.
    pub coding: Coding,
    /// Whether only the end of the connection ends it.
    pub is_until_close: bool,
    /// Whether it is a part of a file of unknown length.
    pub is_part: bool,
}

/// A request of HTTP, as its head says. Absent texts are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestInfo<'a> {
    /// Method token.
    pub method: &'a [u8],
    /// Request target as it was sent.
    pub target: &'a [u8],
    /// The host that is asked, without port.
    pub host: &'a [u8],
    /// `User-Agent`.
    pub user_agent: &'a [u8],
    /// The whole head, which [`Found::text`] has got; empty where that came in another form.
    pub head: &'a [u8],
    /// Whether requests are answered in any order, several at a time (HTTP/2).
    pub is_multiplexed: bool,
}

/// A final response of HTTP/1, as its head says. Absent texts are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseInfo<'a> {
    /// Media type without parameters.
    pub mime_type: &'a [u8],
    /// Bytes of its body, where they are known.
    pub length: Option<u64>,
    /// Bytes of its head.
    pub head_len: usize,
    /// Bytes of what was fed that brought its end.
    pub fed: usize,
}

/// A chat message. Absent texts are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChatMessage<'a> {
    /// Who sends it.
    pub from: &'a [u8],
    /// Who gets it.
    pub to: &'a [u8],
    /// Its text, UTF-8 as a rule.
    pub text: &'a [u8],
}

/// An offer to send a file over another connection, made in this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Invitation<'a> {
    /// What the other connection will show to say that it is the one.
    pub cookie: &'a [u8],
    /// The file.
    pub file: FileInfo<'a>,
}

/// Gets what an inspector finds.
///
/// The order within one direction is that of the stream. [`Found::text`] and [`Found::file_data`]
/// together give every byte that keywords are looked for in exactly once.
pub trait Found {
    /// Bytes that belong to no file: heads, commands, messages. A text may come in pieces.
    fn text(&mut self, sender: Side, bytes: &[u8]);
    /// The host or server name that is asked for.
    fn host(&mut self, host: &[u8]);
    /// A request follows, whose host was said. What is said of files of either side until the next one is of it.
    fn request(&mut self, _sender: Side, _request: &RequestInfo<'_>) {}
    /// A final response of HTTP/1 to the oldest request without one.
    fn response(&mut self, _sender: Side, _response: &ResponseInfo<'_>) {}
    /// What begins here is no request of HTTP. One may still follow.
    fn no_request(&mut self, _sender: Side) {}
    /// A chat message (whose bytes [`Found::text`] gets too).
    fn message(&mut self, sender: Side, message: &ChatMessage<'_>);
    /// A file is asked for, offered or announced here, without its bytes. `sender` is who would send it.
    fn file_named(&mut self, sender: Side, file: &FileInfo<'_>);
    /// What is said of files of `sender` is from here on of the one on this stream; those on others wait. Protocols
    /// that send one file after the other do not say it.
    fn stream(&mut self, _sender: Side, _stream: u32) {}
    /// The bytes of a file follow. A file of the same sender, on the same stream, that has not ended is cut.
    fn file_begin(&mut self, sender: Side, file: &FileInfo<'_>);
    /// Bytes of the file that `sender` sends.
    fn file_data(&mut self, sender: Side, bytes: &[u8]);
    /// The file has ended; incomplete where the connection ended first.
    fn file_end(&mut self, sender: Side, is_complete: bool);
    /// A file will come over another connection.
    fn invitation(&mut self, sender: Side, invitation: &Invitation<'_>);
    /// What was offered under this cookie: calls `use_it` where it is known.
    fn invited(&mut self, cookie: &[u8], use_it: &mut dyn FnMut(&FileInfo<'_>));
    /// From here on the connection carries something that is not parsed; `_what` is a short phrase. Whoever does not
    /// judge by it leaves it.
    fn not_followed(&mut self, _what: &'static str) {}
    /// What comes is not what the protocol allows; `why` is a short phrase.
    fn malformed(&mut self, sender: Side, why: &'static str);
}

/// The parser of a connection.
#[derive(Debug)]
pub enum Inspector {
    /// HTTP/1, and the transfers of FastTrack and Gnutella, which are HTTP.
    Http(Box<http::HttpInspector>),
    /// HTTP/2.
    Http2(Box<http2::Http2Inspector>),
    /// MSN Messenger (MSNP): chat and invitations.
    Msn(Box<msn::MsnInspector>),
    /// MSNFTP: one file.
    MsnFtp(Box<msnftp::MsnFtpInspector>),
    /// eDonkey and eMule: names, messages.
    EDonkey(Box<edonkey::EDonkeyInspector>),
    /// BitTorrent: names where they are visible.
    BitTorrent(Box<bittorrent::BitTorrentInspector>),
    /// Nothing is known: every byte is text.
    Opaque,
}

impl Inspector {
    /// The parser for an application; opaque where there is none.
    #[must_use]
    pub fn of(application: Option<Application>) -> Self {
        match application {
            Some(Application::Http | Application::FastTrack | Application::Gnutella) => {
                Self::Http(Box::default())
            }
            Some(Application::Http2 | Application::Grpc) => Self::Http2(Box::default()),
            Some(Application::Msn) => Self::Msn(Box::default()),
            Some(Application::MsnFtp) => Self::MsnFtp(Box::default()),
            Some(Application::EDonkey) => Self::EDonkey(Box::default()),
            Some(Application::BitTorrent) => Self::BitTorrent(Box::default()),
            _ => Self::Opaque,
        }
    }

    /// No parser: for connections that were picked up midstream or that lost bytes.
    #[must_use]
    pub const fn opaque() -> Self {
        Self::Opaque
    }

    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, bytes: &[u8], found: &mut F) {
        match self {
            Self::Http(inspector) => inspector.feed(sender, bytes, found),
            Self::Http2(inspector) => inspector.feed(sender, bytes, found),
            Self::Msn(inspector) => inspector.feed(sender, bytes, found),
            Self::MsnFtp(inspector) => inspector.feed(sender, bytes, found),
            Self::EDonkey(inspector) => inspector.feed(sender, bytes, found),
            Self::BitTorrent(inspector) => inspector.feed(sender, bytes, found),
            Self::Opaque => found.text(sender, bytes),
        }
    }

    /// How many of the next bytes of a side are of a file and of nothing else, as far as is known.
    #[must_use]
    pub const fn body_left(&self, sender: Side) -> u64 {
        match self {
            Self::Http(inspector) => inspector.body_left(sender),
            _ => 0,
        }
    }

    /// Bytes that wait for the rest of what they belong to, where that can be many.
    #[must_use]
    pub fn gathered(&self) -> usize {
        match self {
            Self::Http(inspector) => inspector.gathered(),
            Self::Http2(inspector) => inspector.gathered(),
            _ => 0,
        }
    }

    /// A side has sent all it will (FIN), or the connection is gone (both sides, one after the other).
    pub fn finish<F: Found>(&mut self, sender: Side, found: &mut F) {
        match self {
            Self::Http(inspector) => inspector.finish(sender, found),
            Self::Http2(inspector) => inspector.finish(sender, found),
            Self::MsnFtp(inspector) => inspector.finish(sender, found),
            Self::BitTorrent(inspector) => inspector.finish(sender, found),
            Self::Msn(_) | Self::EDonkey(_) | Self::Opaque => {}
        }
    }
}
