//! Messages of DNS within flows: what Tstat's `log_dns_complete` has lines of.

use std::net::IpAddr;

/// What a line of DNS is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsEntry {
    /// A question.
    Question,
    /// A record of an answer: an address.
    Address(IpAddr),
    /// A record of an answer: another name, which is the second text.
    Name,
    /// A record of an answer, of another type.
    Other,
    /// An answer with this response code in place of records (RFC 1035 section 4.1.1).
    Fault(u16),
}

/// One question or record; its texts are the name asked for, and the name it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsRow {
    /// When the message was seen, nanoseconds since the epoch.
    pub time_ns: u64,
    /// Address and port of who asked.
    pub client: (IpAddr, u16),
    /// Address and port of who answers.
    pub server: (IpAddr, u16),
    /// Whether client and server are internal.
    pub is_internal: [bool; 2],
    /// Whether their addresses were replaced (Crypto-PAn).
    pub is_encrypted: bool,
    /// What it is.
    pub entry: DnsEntry,
    /// What question and answer have in common.
    pub id: u16,
    /// Class of the question or record; zero where there is none.
    pub class: u16,
    /// Type of the question or record; zero where there is none.
    pub kind: u16,
    /// How long a record may be kept, seconds.
    pub ttl: u32,
    /// Flags of the header, as they stand there.
    pub flags: u16,
    /// Entries of the four sections, as the header has them.
    pub counts: [u16; 4],
    /// Bytes of the message.
    pub size: u32,
}

/// Texts of a line.
pub const DNS_TEXTS: usize = 2;
