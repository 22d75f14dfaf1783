//! How ClickHouse reads a column from a message, and how it keeps it.

use super::plan::Plan;
use crate::schema::{Field, FieldType};

/// The type of a moment.
pub(super) const MOMENT: &str = "DateTime64(9, 'UTC')";

/// The type as values have it, before the question whether they may be missing.
const fn plain(kind: FieldType) -> &'static str {
    match kind {
        FieldType::U16 | FieldType::Port => "UInt16",
        FieldType::U32 => "UInt32",
        FieldType::U64 => "UInt64",
        FieldType::SpanNs | FieldType::I64 => "Int64",
        FieldType::Millis => "Float64",
        FieldType::TimeNs | FieldType::TimeMillis => MOMENT,
        FieldType::Ip => "IPv6",
        FieldType::Text | FieldType::Bytes => "String",
        FieldType::Word => "LowCardinality(String)",
    }
}

/// Whether a value that is missing is told by `NULL`. Texts are never empty, so that the empty one
/// says it without a column of its own.
const fn is_nullable(kind: FieldType) -> bool {
    !matches!(kind, FieldType::Text | FieldType::Word | FieldType::Bytes)
}

fn nullable(type_name: &str, is_nullable: bool) -> String {
    if is_nullable {
        format!("Nullable({type_name})")
    } else {
        type_name.to_owned()
    }
}

/// The type of the column in the table.
pub(super) fn stored(field: &Field, plan: &Plan) -> String {
    if field.kind == FieldType::Text && plan.few.contains(&field.name) {
        return "LowCardinality(String)".to_owned();
    }
    let may_miss = is_nullable(field.kind) && !plan.ends.contains(&field.name);
    nullable(plain(field.kind), may_miss)
}

/// The type of the member of the JSON object.
///
/// Moments come as integers or decimals, which the text format of `DateTime64` is not. Milliseconds
/// have six decimals and up to 14 digits before them: as binary fractions they would lose the last.
pub(super) fn queued(field: &Field, plan: &Plan) -> String {
    let type_name = match field.kind {
        FieldType::TimeNs => "Int64",
        FieldType::Millis | FieldType::TimeMillis => "Decimal(20, 6)",
        FieldType::Word => "String",
        other => plain(other),
    };
    let may_miss = is_nullable(field.kind) && !plan.ends.contains(&field.name);
    nullable(type_name, may_miss)
}

/// The codec of a column: moments of neighbours are near one another, most counters leave most of
/// their bits unused.
pub(super) const fn codec(kind: FieldType) -> &'static str {
    match kind {
        FieldType::TimeNs | FieldType::TimeMillis => "Delta(8), ZSTD(1)",
        FieldType::U32 | FieldType::U64 | FieldType::I64 | FieldType::SpanNs => "T64, ZSTD(1)",
        FieldType::Text | FieldType::Bytes => "ZSTD(3)",
        FieldType::U16 | FieldType::Port | FieldType::Millis | FieldType::Ip | FieldType::Word => {
            "ZSTD(1)"
        }
    }
}

/// The moment of a message as nanoseconds.
pub(super) fn nanoseconds(field: &Field) -> String {
    let column = format!("q.`{}`", field.name);
    match field.kind {
        FieldType::TimeMillis => format!("toInt64({column} * 1000000)"),
        _ => column,
    }
}

/// What makes of the member of the message the value that is kept.
pub(super) fn conversion(field: &Field) -> String {
    let column = format!("q.`{}`", field.name);
    match field.kind {
        FieldType::TimeNs | FieldType::TimeMillis => {
            format!("fromUnixTimestamp64Nano({}, 'UTC')", nanoseconds(field))
        }
        FieldType::Millis => format!("toFloat64({column})"),
        FieldType::Bytes => format!("unhex({column})"),
        _ => column,
    }
}

/// The type of the argument of an aggregate function over the column; milliseconds are measured in
/// nanoseconds.
pub(super) fn measured(field: &Field) -> String {
    let kind = match field.kind {
        FieldType::Millis => FieldType::SpanNs,
        other => other,
    };
    nullable(plain(kind), is_nullable(kind))
}
