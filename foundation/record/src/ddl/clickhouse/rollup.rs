//! Totals and quantiles by the minute: a table of states, and the view that fills it.

use super::columns::{measured, stored};
use super::plan::Plan;
use crate::ddl::kind::{KindSchema, put};
use crate::schema::{Field, FieldType};

/// Relative error of quantiles, and which ones; a query that merges states must name the same.
const STATE: &str = "0.01, 0.5, 0.9, 0.95, 0.99, 0.999";

/// The table and the view.
pub(super) fn statements(out: &mut String, schema: &KindSchema, plan: &Plan) {
    let name = schema.name;
    let roll = &plan.rollup;
    put(
        out,
        format_args!(
            "-- Totals by the minute of the records' time. Counts are exact; quantiles are within 1 % of the value\n\
             -- at their rank, however states are merged: probes, hours, servers.\n\
             -- quantilesDDMerge wants the same numbers as the column.\n\
             CREATE TABLE IF NOT EXISTS {name}_per_minute\n(\n    \
             `minute` DateTime('UTC') CODEC(Delta(4), ZSTD(1)),\n    \
             `probe` LowCardinality(String)"
        ),
    );
    for field in roll.by.iter().filter_map(|name| schema.field(name)) {
        put(
            out,
            format_args!(",\n    `{}` {}", field.name, stored(field, plan)),
        );
    }
    if let Some((class, type_name, _)) = roll.class {
        put(out, format_args!(",\n    `{class}` {type_name}"));
    }
    put(
        out,
        format_args!(
            ",\n    `{}` SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD(1))",
            roll.count
        ),
    );
    for sum in roll.sums {
        put(
            out,
            format_args!(",\n    `{sum}` SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD(1))"),
        );
    }
    for field in roll.quantiles.iter().filter_map(|name| schema.field(name)) {
        let (column, type_name) = (measure(field), measured(field));
        put(
            out,
            format_args!(
                ",\n    `{column}_max` SimpleAggregateFunction(max, {type_name}) CODEC(ZSTD(1)),\n    \
                 `{column}_quantiles` AggregateFunction(quantilesDD({STATE}), {type_name}) CODEC(ZSTD(1))"
            ),
        );
    }
    put(
        out,
        format_args!(
            "\n)\nENGINE = AggregatingMergeTree\n\
             PARTITION BY toDate(`minute`)\n\
             ORDER BY (`minute`, `probe`{});\n\n\
             -- Records to totals.\n\
             CREATE MATERIALIZED VIEW IF NOT EXISTS {name}_to_minute TO {name}_per_minute AS\n",
            groups(plan)
        ),
    );
    select(out, schema, plan, "", "");
    out.push_str(";\n\n");
}

/// The columns by which records are grouped, behind minute and probe.
fn groups(plan: &Plan) -> String {
    let class = plan.rollup.class.map(|(name, _, _)| name);
    let names = plan.rollup.by.iter().copied().chain(class);
    names.map(|name| format!(", `{name}`")).collect()
}

/// What the column of a measured value is called. Milliseconds are measured in nanoseconds: in bins of
/// values below 1 the engine (26.9) is off by one, and its error is up to 3 %.
fn measure(field: &Field) -> String {
    if field.kind == FieldType::Millis {
        format!("{}_ns", field.name)
    } else {
        field.name.to_owned()
    }
}

/// What makes totals of records; `modifier` stands behind the table, `condition` may be empty.
pub(super) fn select(
    out: &mut String,
    schema: &KindSchema,
    plan: &Plan,
    modifier: &str,
    condition: &str,
) {
    let roll = &plan.rollup;
    put(
        out,
        format_args!(
            "SELECT\n    toStartOfMinute(t.`time`) AS `minute`,\n    t.`probe` AS `probe`"
        ),
    );
    for column in roll.by {
        put(out, format_args!(",\n    t.`{column}` AS `{column}`"));
    }
    if let Some((class, _, expression)) = roll.class {
        put(out, format_args!(",\n    {expression} AS `{class}`"));
    }
    put(out, format_args!(",\n    count() AS `{}`", roll.count));
    for sum in roll.sums {
        put(
            out,
            format_args!(",\n    ifNull(sum(t.`{sum}`), 0) AS `{sum}`"),
        );
    }
    for field in roll.quantiles.iter().filter_map(|name| schema.field(name)) {
        let column = measure(field);
        let mut value = format!("t.`{}`", field.name);
        if field.kind == FieldType::Millis {
            value = format!("toInt64(round({value} * 1e6))");
        }
        let condition = roll.measured.iter().find(|(name, _)| *name == field.name);
        if let Some((_, condition)) = condition {
            value = format!("if({condition}, {value}, NULL)");
        }
        put(
            out,
            format_args!(
                ",\n    max({value}) AS `{column}_max`,\n    \
                 quantilesDDState({STATE})({value}) AS `{column}_quantiles`"
            ),
        );
    }
    put(out, format_args!("\nFROM {} AS t", schema.name));
    if !modifier.is_empty() {
        put(out, format_args!(" {modifier}"));
    }
    let conditions = [roll.filter, condition];
    let conditions: Vec<&str> = conditions.into_iter().filter(|c| !c.is_empty()).collect();
    if !conditions.is_empty() {
        put(out, format_args!("\nWHERE {}", conditions.join(" AND ")));
    }
    put(
        out,
        format_args!("\nGROUP BY `minute`, `probe`{}", groups(plan)),
    );
}
