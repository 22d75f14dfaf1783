//! `linkweir schema`: the columns of records, for people and for stores.

mod args;

use std::io::{ErrorKind, Write};

use anyhow::{Context, anyhow};
use linkweir_record::Topic;
use linkweir_record::ddl::{
    KindSchema, clickhouse_ddl, duckdb_view, schema_json, schema_markdown, types_markdown,
};
use serde_json::json;

pub(crate) use args::SchemaArgs;
use args::{Kinds, SchemaFormat};

use crate::exit::{Exit, Wrong};

/// Runs the command.
pub(crate) fn run(args: &SchemaArgs) -> anyhow::Result<Exit> {
    let kinds = match &args.kind {
        Kinds::All => KindSchema::all().to_vec(),
        Kinds::One(schema) => vec![*schema],
        Kinds::Metrics => Vec::new(),
    };
    let from = args.from.as_deref();
    let text = match args.format {
        SchemaFormat::Markdown if matches!(args.kind, Kinds::Metrics) && from.is_none() => {
            format!("# metrics\n\n{}", linkweir_live::metrics_markdown())
        }
        _ if matches!(args.kind, Kinds::Metrics) => {
            return Err(wrong("metrics are printed as markdown only, without --from"));
        }
        SchemaFormat::Markdown | SchemaFormat::Types | SchemaFormat::Json if from.is_some() => {
            return Err(wrong("--from goes with --format clickhouse or duckdb"));
        }
        SchemaFormat::Markdown => tables(&kinds, schema_markdown),
        SchemaFormat::Types => tables(&kinds, types_markdown),
        SchemaFormat::Json => as_json(&kinds)?,
        SchemaFormat::Clickhouse => clickhouse(&kinds, from)?,
        SchemaFormat::Duckdb => duckdb(&args.kind, from)?,
    };
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("standard output")
        }
        _ => Ok(Exit::Done),
    }
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
        Kinds::One(schema) => duckdb_view(schema, directory),
        Kinds::All | Kinds::Metrics => {
            let views = KindSchema::all().map(|schema| {
                let directory = format!("{}/{}", directory.trim_end_matches('/'), schema.name);
                duckdb_view(&schema, &directory)
            });
            views.join("\n")
        }
    })
}
