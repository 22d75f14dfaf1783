//! Records as Apache Arrow arrays: Parquet files and IPC streams, and back.
//!
//! Every kind of record has one schema ([`schema_of`]), derived from its fields. [`Columns`] collects
//! records by column; [`ParquetFile`] and [`ArrowStream`] make bytes of them, which whoever owns the
//! destination writes: nothing here opens a file or looks at a clock.
#![forbid(unsafe_code)]

mod columns;
mod file;
mod half;
mod schema;
mod select;
mod stored;
mod stream;
mod text;
mod values;
mod vet;

pub use columns::Columns;
pub use file::ParquetFile;
pub use half::{HalfError, Halves};
pub use schema::ColumnarError;
pub use schema::{KIND_KEY, VERSION_KEY, data_type, metadata_of, schema_of};
pub use select::{Described, Form, SelectError, Table, moments, texts};
pub use stored::Rows;
pub use stream::ArrowStream;
pub use vet::is_guarded;
