//! `linkweir schema`: the columns of records, for people and for stores.

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use linkweir_record::Topic;
use linkweir_record::ddl::{
    KindSchema, clickhouse_ddl, duckdb_view, elasticsearch_template, schema_json, schema_markdown,
    types_markdown,
};
use linkweir_sink::index_of;
use serde_json::json;

use crate::common_args::HeaderArgs;
use crate::exit::{Exit, Wrong};
use crate::files::print;

const AFTER_HELP: &str = "Examples:
  linkweir schema http_transaction
  linkweir schema all --format clickhouse --from kafka://broker:9092/linkweir | clickhouse-client --multiquery
  linkweir schema http_transaction --format elasticsearch --from elasticsearch://search:9200/web > web.json
  linkweir schema flow --format duckdb --from /data/flows > flows.sql

Exit codes:
  0  success
  2  invalid usage: no such kind, or a --from that does not go with the format
  3  standard output cannot be written";

/// Print the columns of a kind of records, as documentation or as statements that create tables.
///
/// Kinds are `http_transaction` (`linkweir http`), `flow`, `tls_handshake` and `dns_query` (`flows`, by its `--kind`),
/// `gateway_event` (`gateway`), `load_session` (`load`) and `http_half` (`halves`). Columns are never removed or renamed, nor do their
/// types change; each added column increments the version of the kind.
///
/// For ClickHouse: a table of the Kafka engine for the messages of `-w kafka://`, the table of the records,
/// in which repeated messages are removed by their `record_id`, the view between them, totals per minute
/// with quantiles that can be merged, and example queries. Messages of several kinds may share a topic. For
/// DuckDB: a view of Parquet files, also of earlier versions. For Elasticsearch and OpenSearch: the index template of a data stream.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SchemaArgs {
    /// Kind of records; `all` is every kind but `http_half`.
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub(crate) kind: Kinds,

    /// What to print.
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) format: SchemaFormat,

    /// Where the records are: `kafka://BROKER[,BROKER]/TOPIC` for ClickHouse [default:
    /// `kafka://broker:9092/linkweir`], a directory for DuckDB, for `all` with a directory of each kind in it
    /// [default: records], `elasticsearch://HOST:PORT/INDEX` for Elasticsearch [default: an index of the name of the kind].
    #[arg(long, value_name = "URL|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) from: Option<String>,

    /// The header fields that `linkweir http` is given with the same flag: their columns are behind the others of
    /// `http_transaction`; may be repeated [default: none].
    #[arg(long, value_name = "NAME")]
    pub(crate) header: Vec<String>,
}

/// Which kinds.
#[derive(Debug, Clone)]
pub(crate) enum Kinds {
    /// Every one.
    All,
    /// The one of this name.
    One(&'static str),
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
    /// An index template for Elasticsearch and OpenSearch.
    Elasticsearch,
}

fn kinds() -> impl TypedValueParser<Value = Kinds> {
    let names = KindSchema::every().map(|schema| schema.name);
    PossibleValuesParser::new(std::iter::once("all").chain(names))
        .map(|name| KindSchema::named(&name).map_or(Kinds::All, |schema| Kinds::One(schema.name)))
}

/// Runs the command.
pub(crate) fn run(args: &SchemaArgs) -> anyhow::Result<Exit> {
    let headers = HeaderArgs {
        header: args.header.clone(),
    };
    headers.choose()?;
    let kinds = match &args.kind {
        Kinds::All => KindSchema::all().to_vec(),
        Kinds::One(name) => KindSchema::named(name).into_iter().collect(),
    };
    let from = args.from.as_deref();
    let text = match args.format {
        SchemaFormat::Markdown | SchemaFormat::Types | SchemaFormat::Json if from.is_some() => {
            return Err(wrong(
                "--from goes with --format clickhouse, duckdb or elasticsearch",
            ));
        }
        SchemaFormat::Markdown => tables(&kinds, schema_markdown),
        SchemaFormat::Types => tables(&kinds, types_markdown),
        SchemaFormat::Json => as_json(&kinds)?,
        SchemaFormat::Clickhouse => clickhouse(&kinds, from)?,
        SchemaFormat::Elasticsearch => elasticsearch(&kinds, from)?,
        SchemaFormat::Duckdb => duckdb(&args.kind, from)?,
    };
    print(&text)?;
    Ok(Exit::Done)
}

fn wrong(message: impl std::fmt::Display) -> anyhow::Error {
    anyhow!(Wrong(message.to_string()))
}

fn tables(kinds: &[KindSchema], table: fn(&KindSchema) -> String) -> String {
    let page = |schema: &KindSchema| {
        format!(
            "# {}\nVersion {}.\n\n{}",
            schema.name,
            schema.version,
            table(schema)
        )
    };
    kinds.iter().map(page).collect::<Vec<_>>().join("\n")
}

fn as_json(kinds: &[KindSchema]) -> anyhow::Result<String> {
    let kinds: Vec<_> = kinds.iter().map(schema_json).collect();
    let object = json!({ "linkweir_schema": 1, "kinds": kinds });
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}

fn clickhouse(kinds: &[KindSchema], from: Option<&str>) -> anyhow::Result<String> {
    let topic = match from {
        Some(url) => (url.parse()).map_err(|error| wrong(format!("--from {url}: {error}")))?,
        None => Topic::default(),
    };
    let statements = kinds.iter().map(|schema| {
        clickhouse_ddl(schema, &topic).ok_or_else(|| {
            wrong(format!(
                "{}: not a kind that is stored in ClickHouse",
                schema.name
            ))
        })
    });
    Ok(statements.collect::<anyhow::Result<Vec<_>>>()?.join("\n"))
}

fn elasticsearch(kinds: &[KindSchema], from: Option<&str>) -> anyhow::Result<String> {
    let [schema] = kinds else {
        return Err(wrong("an index template is for one kind of records"));
    };
    let index = match from {
        Some(url) => index_of(url).ok_or_else(|| {
            wrong(format!(
                "--from {url}: an index is elasticsearch://HOST:PORT/INDEX, in lower case"
            ))
        })?,
        None => schema.name,
    };
    let template = elasticsearch_template(schema, index);
    Ok(serde_json::to_string_pretty(&template)? + "\n")
}

/// The directory where nothing else is said.
const DIRECTORY: &str = "records";

fn duckdb(kinds: &Kinds, from: Option<&str>) -> anyhow::Result<String> {
    let directory = from.unwrap_or(DIRECTORY);
    if directory.is_empty() || directory.contains("://") {
        return Err(wrong(format!(
            "--from {directory}: DuckDB reads a directory of Parquet files"
        )));
    }
    Ok(match kinds {
        Kinds::One(name) => KindSchema::named(name)
            .map(|schema| duckdb_view(&schema, directory))
            .unwrap_or_default(),
        Kinds::All => {
            let views = KindSchema::all().map(|schema| {
                let directory = format!("{}/{}", directory.trim_end_matches('/'), schema.name);
                duckdb_view(&schema, &directory)
            });
            views.join("\n")
        }
    })
}
