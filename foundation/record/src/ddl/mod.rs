//! Statements that make tables of records in ClickHouse and DuckDB, and the schema as documents. All of
//! it is made from the columns of the kind; nothing here lists them again.

mod clickhouse;
mod document;
mod duckdb;
mod elasticsearch;
mod kind;

pub use clickhouse::{clickhouse_ddl, clickhouse_type};
pub use document::{schema_json, schema_markdown, types_markdown};
pub use duckdb::{duckdb_type, duckdb_view};
pub use elasticsearch::elasticsearch_template;
pub use kind::KindSchema;
