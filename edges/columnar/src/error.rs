//! What can go wrong between records and columns.

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

/// What the Arrow and Parquet libraries refused.
#[derive(Debug, thiserror::Error)]
pub enum ColumnarError {
    /// Arrow arrays or a stream of them.
    #[error("Arrow: {0}")]
    Arrow(#[from] ArrowError),
    /// A Parquet file.
    #[error("Parquet: {0}")]
    Parquet(#[from] ParquetError),
    /// The bytes of a part that is complete in memory.
    #[error("encoding: {0}")]
    Io(#[from] std::io::Error),
    /// Bytes over which the library gave up, with its last words.
    #[error("damaged: {0}")]
    Damaged(String),
}
