//! Web logs as requests: when, and from which client.
//!
//! Bytes come in, in any pieces; [`Decoder`] gives out requests and counts what it could not read by
//! cause. Nothing here opens a file.

pub use linkweir_wire::calendar;
mod common;
mod decoder;
mod request;
mod transactions;

pub use decoder::{DETECT_BYTES, Decoder, MOST_LINE_BYTES, detect};
pub use request::{Cause, Client, Faults};
pub use transactions::RECORD_BYTES;

/// One request of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// When it came, nanoseconds since 1970 (UTC). Most logs have whole seconds.
    pub time_ns: u64,
    /// From whom.
    pub client: Client,
    /// The line or record of its log that it is, from 1; 0 where only that line is known.
    pub line: u64,
}

/// A form of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Common Log Format, or Combined, which only adds fields at the end.
    Common,
    /// Binary records of the 1998 World Cup logs, 20 bytes each.
    WorldCup,
    /// `http_transaction` records, one JSON object a line.
    HttpJson,
    /// `http_transaction` records with commas, under a heading.
    HttpCsv,
    /// `http_transaction` records as text, 13 fields parted by `|`.
    HttpText,
}

impl LogFormat {
    /// What it is called in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Common => "Common Log Format",
            Self::WorldCup => "WorldCup98 records",
            Self::HttpJson => "http records (JSON)",
            Self::HttpCsv => "http records (CSV)",
            Self::HttpText => "http records (text)",
        }
    }
}
