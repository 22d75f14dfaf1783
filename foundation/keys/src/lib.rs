//! TLS 1.2 and 1.3 opened with the secrets of a key log: what the two ends said, for who was given their keys.
//!
//! [`LiveLog`] holds the secrets, [`Connection`] opens the records of one connection from bytes in order, and finds the
//! number of a record again after a loss. The cryptography is `ring`'s, CBC that of `RustCrypto`. Secrets are
//! wiped when they go, and nothing here prints them.
#![forbid(unsafe_code)]

mod connection;
mod half;
mod log;
mod messages;
mod packet;
mod quic;
mod record;
mod suite;

pub use connection::Connection;
pub use log::{KeyLog, KeyLogCounters, Label, LiveLog, MAX_SECRET, MAX_SESSIONS, Secret, Secrets};
pub use packet::{Opened, PacketKeys, Phases};
pub use quic::{QuicConnection, StreamListener, StreamPart};
pub use record::{Agreed, Pair, RecordKeys, TAG};
pub use suite::{Cipher, Hash, Mac, Suite};

use linkweir_proto::tls::Ja4;
use linkweir_wire::Side;

/// What the two ends agreed on in the handshake, as far as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The version that the server chose, as on the wire; 0 before.
    pub version: u16,
    /// The suite that the server chose; 0 before.
    pub suite: u16,
    /// The name of the server that the client asked for; empty where there is none.
    pub server_name: Box<[u8]>,
    /// What the client offered, where its hello was seen whole.
    pub ja4: Option<Ja4>,
    /// The application protocol that the server chose; empty where there is none, or it is not known.
    pub alpn: Box<[u8]>,
}

/// What is of use of the data that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// All of it, of records whose tags were verified.
    All,
    /// So many bytes; then it is asked again.
    Bytes(usize),
    /// How much it is, of so many bytes at least; then it is asked again.
    Length(usize),
}

/// What the two ends say.
pub trait Listener {
    /// What is of use of the data that a side says next. Of a long record without all of it, only that is decrypted, as
    /// it comes, and the record's tag is not verified.
    fn due(&mut self, _side: Side) -> Due {
        Due::All
    }
    /// So many bytes of data, of which nothing else was of use.
    fn passed(&mut self, _about: &About, _side: Side, _len: u32, _ts_ns: u64) {}
    /// Data, in order. Pieces of one record whose segments came at different times come one by one.
    fn data(&mut self, about: &About, side: Side, bytes: &[u8], ts_ns: u64);
    /// Data may be missing here, nobody knows how much.
    fn lost(&mut self, side: Side);
}

/// What all connections share.
#[derive(Debug)]
pub struct Shared<'a> {
    /// The secrets.
    pub log: &'a LiveLog,
    /// Bytes of records that are not complete, of all connections: counted here by each.
    pub held: &'a mut usize,
    /// How many of them there may be; a record that finds no room is not read.
    pub max_held: usize,
    /// For a record that is complete in one segment.
    pub scratch: &'a mut Vec<u8>,
}

/// What became of the records of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionCounters {
    /// Records that were opened.
    pub opened: u64,
    /// Records without a secret in the log.
    pub without_secret: u64,
    /// Records that were not read: bytes of them are missing, or there was no room for them.
    pub spoiled: u64,
    /// Records that the keys do not open.
    pub refused: u64,
    /// Losses behind which the number of the next record was found again.
    pub found_again: u64,
    /// Directions given up: the number of a record was not found.
    pub given_up: u64,
}
