//! Record formats, atomic files, documents such as summaries: what leaves the program.
//!
//! A run opens each destination once with [`open_sink`] and hands it batches of records. The formats
//! ([`Format`]) derive every column from the one schema in `linkweir-record`; nothing here lists
//! columns. Text from the network is escaped in every format, each in its own way (see the encoders).
#![forbid(unsafe_code)]

mod chosen;
#[cfg(feature = "parquet")]
mod columnar;
mod csv;
mod delivery;
mod document;
mod elasticsearch;
pub mod escape;
mod format;
mod ipfix;
mod jsonl;
#[cfg(feature = "kafka")]
mod kafka;
mod message;
mod names;
pub mod number;
mod options;
mod output;
mod queued;
mod rotate;
mod series;
mod sink;
mod syslog;
mod table;
mod text;
mod transport;
mod zeek;

pub use delivery::without_password;
pub use document::Document;
pub use elasticsearch::index_of;
pub use format::Format;
pub use ipfix::{is_collector, open_ipfix};
pub use names::{partial_name, with_number};
pub use options::{Existing, OutputOptions, Partition};
pub use output::io_error;
pub use rotate::Rotation;
pub use series::{announce_name, exists};
pub use sink::{is_table, open_sink};
pub use table::{LineCells, TableOptions, TimeStyle};
