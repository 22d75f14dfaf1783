//! What stores of records are told about them: statements for ClickHouse and DuckDB, the schema as
//! JSON. All of it is made from the columns of the kind; nothing here lists them again.

mod clickhouse;
mod duckdb;
mod json;
mod kind;
mod topic;

pub use clickhouse::{clickhouse_ddl, clickhouse_type};
pub use duckdb::{duckdb_type, duckdb_view};
pub use json::schema_json;
pub use kind::KindSchema;
pub use topic::{NoTopic, Topic};

use std::fmt::Write;

/// Adds formatted text. Writing to a string cannot fail.
pub(crate) fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _unfailing = out.write_fmt(text);
}
