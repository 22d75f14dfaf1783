//! Record formats, atomic files, documents such as summaries: what leaves the program.
//!
//! A run opens each destination once with [`open_sink`] and hands it batches of records. The formats
//! ([`Format`]) derive every column from the one schema in `linkweir-record`; nothing here lists
//! columns. Text from the network is escaped in every format, each in its own way (see the encoders).
#![forbid(unsafe_code)]

pub mod archive;
#[cfg(feature = "parquet")]
mod columnar;
mod csv;
pub mod ddl;
mod document;
mod escape;
mod format;
mod ipfix;
mod jsonl;
#[cfg(feature = "kafka")]
mod kafka;
mod names;
mod number;
mod output;
mod rotate;
pub mod rrd;
mod schema_doc;
mod schema_types;
mod series;
mod sink;
mod text;
mod tstat;
mod zeek;

pub use document::Document;
pub use format::Format;
pub use linkweir_record::human;
pub use rotate::Rotation;
pub use schema_doc::schema_markdown;
pub use schema_types::types_markdown;
pub use sink::{Existing, OutputOptions, Partition, open_sink};
pub use tstat::{TstatOptions, open_histograms, open_tstat};
