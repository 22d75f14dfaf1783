//! Records as Apache Arrow arrays: Parquet files and IPC streams, and back.
#![forbid(unsafe_code)]
