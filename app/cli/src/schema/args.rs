//! The flags of `linkweir schema`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use linkweir_record::ddl::KindSchema;

const AFTER_HELP: &str = "Examples:
  linkweir schema http_transaction
  linkweir schema metrics
  linkweir schema all --format clickhouse --from kafka://broker:9092/linkweir | clickhouse-client --multiquery
  linkweir schema flow --format duckdb --from /data/flows > flows.sql

Exit codes:
  0  success
  2  invalid usage: no such kind, or a --from that does not go with the format
  3  standard output cannot be written";

/// Print the columns of a kind of records, as documentation or as statements that create tables.
///
/// Kinds are `http_transaction` (`linkweir http`), `flow` (`flows`), `gateway_event` (`gateway`),
/// `load_session` (`load`) and `http_half` (`halves`). Columns are never removed or renamed, nor do their
/// types change; each added column increments the version of the kind.
///
/// For ClickHouse: a table of the Kafka engine for the messages of `-w kafka://`, the table of the records,
/// in which repeated messages are removed by their `record_id`, the view between them, totals per minute
/// with quantiles that can be merged, and example queries. Messages of several kinds may share a topic. For
/// DuckDB: a view of Parquet files, also of earlier versions.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SchemaArgs {
    /// Kind of records; `all` is every kind but `http_half`, `metrics` are those of `/metrics` instead (as
    /// Markdown only).
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub(crate) kind: Kinds,

    /// What to print.
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) format: SchemaFormat,

    /// Where the records are: `kafka://BROKER[,BROKER]/TOPIC` for ClickHouse [default:
    /// `kafka://broker:9092/linkweir`], a directory for DuckDB, for `all` with a directory of each kind in it
    /// [default: records].
    #[arg(long, value_name = "URL|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) from: Option<String>,
}

/// Which kinds.
#[derive(Debug, Clone)]
pub(crate) enum Kinds {
    /// Every one.
    All,
    /// This one.
    One(KindSchema),
    /// Not records: the metrics of `/metrics`.
    Metrics,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// A table for people: what each column means.
    Markdown,
    /// A table for people: the type of each column in every format and store.
    Types,
    /// One JSON object, with the types of ClickHouse and DuckDB.
    Json,
    /// Statements for ClickHouse.
    Clickhouse,
    /// A view for DuckDB.
    Duckdb,
}

fn kinds() -> impl TypedValueParser<Value = Kinds> {
    let names = KindSchema::every().map(|schema| schema.name);
    let others = ["all", "metrics"].into_iter();
    PossibleValuesParser::new(others.chain(names)).map(|name| match name.as_str() {
        "metrics" => Kinds::Metrics,
        name => KindSchema::named(name).map_or(Kinds::All, Kinds::One),
    })
}
