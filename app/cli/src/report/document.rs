//! The report as JSON: the figures of the terminal and of the page as numbers.

use linkweir_report::ReportMeta;
use linkweir_report::stored::{
    Compared, Figure, Moved, Sample, SampleValue, StoredReport, Total, compare,
};
use linkweir_sketch::BoundedCounts;
use serde_json::{Map, Value, json};

/// A figure: whole numbers, spans in nanoseconds, shares from 0 to 1.
fn number(figure: &Figure) -> Value {
    match figure.whole() {
        Some(whole) => whole.into(),
        None => figure.number().map_or(Value::Null, Value::from),
    }
}

/// The key of a figure: its name without blanks, with the unit of a span.
fn key(name: &str, figure: &Figure) -> String {
    let name = name.replace(' ', "_");
    match figure {
        Figure::Span(_) | Figure::About(_) => format!("{name}_ns"),
        _ => name,
    }
}

fn figures(all: &[Total]) -> Map<String, Value> {
    let pairs = all.iter();
    pairs
        .map(|(name, figure)| (key(name, figure), number(figure)))
        .collect()
}

fn samples<'a>(all: impl Iterator<Item = &'a Sample>) -> Value {
    let sample = |sample: &Sample| {
        let mut object = Map::new();
        object.insert("record".to_owned(), sample.place.clone().into());
        for (name, value) in &sample.columns {
            let value = match value {
                Some(SampleValue::Number(number)) => (*number).into(),
                Some(SampleValue::Text(text)) => text.clone().into(),
                None => Value::Null,
            };
            object.insert(name.clone(), value);
        }
        Value::Object(object)
    };
    all.map(sample).collect()
}

/// A report.
pub(super) fn of_report(report: &StoredReport, meta: &ReportMeta, rows: usize) -> Value {
    let subject = report.subject;
    let distributions: Map<String, Value> = report
        .distributions()
        .iter()
        .map(|(title, all)| (title.replace(' ', "_"), Value::Object(figures(all))))
        .collect();
    let counts = subject.counts.iter().zip(&report.counts);
    let counts: Map<String, Value> = counts
        .map(|((_, column), counts)| ((*column).to_owned(), counted(counts)))
        .collect();
    let tables = report.tables.iter().map(|table| {
        let rows = report.rows(table, rows);
        let rows = rows.iter().map(|row| {
            let mut object = Map::new();
            object.insert("key".to_owned(), row.key.clone().into());
            object.insert("where".to_owned(), row.condition.clone().into());
            object.insert("weight".to_owned(), row.weight.into());
            object.insert("weight_error".to_owned(), row.error.into());
            object.extend(figures(&row.figures));
            object.insert("samples".to_owned(), samples(row.samples()));
            Value::Object(object)
        });
        json!({
            "by": table.by,
            "weight_of_others": table.groups.floor(),
            "rows": rows.collect::<Vec<_>>(),
        })
    });
    let pairs = |all: &[(String, u64)]| -> Map<String, Value> {
        let all = all.iter();
        all.map(|(name, count)| (name.replace(' ', "_"), (*count).into()))
            .collect()
    };
    let mut document = json!({
        "kind": subject.kind,
        "inputs": meta.inputs,
        "first_ts_ns": report.time_ns.map(|(first, _)| first),
        "last_ts_ns": report.time_ns.map(|(_, last)| last),
        "dropped": pairs(&meta.drops),
        "notes": pairs(&meta.notes),
        "totals": figures(&report.totals()),
        "error": { "name": subject.error.0, "where": subject.error.1 },
        "status_classes": report.status_classes().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "distributions": distributions,
        "counts": counts,
        "tables": tables.collect::<Vec<_>>(),
        "slowest": samples(report.extreme.iter()),
    });
    if let (Some((of, apart)), Value::Object(object)) = (report.apart(), &mut document) {
        let apart = json!({
            "records": apart.records,
            "where": of.condition,
            "times": figures(&report.apart_times()),
            of.by: counted(&apart.counts),
        });
        object.insert(of.noun.to_owned(), apart);
    }
    document
}

/// Counts of values.
fn counted(counts: &BoundedCounts) -> Value {
    let pairs = counts.by_count().into_iter();
    let mut object: Map<String, Value> = pairs
        .map(|(key, count)| (String::from_utf8_lossy(key).into_owned(), count.into()))
        .collect();
    if counts.other() > 0 {
        object.insert("other".to_owned(), counts.other().into());
    }
    Value::Object(object)
}

fn compared(all: &[Compared]) -> Map<String, Value> {
    let of = |of: &Compared| {
        let [one, other] = &of.figures;
        let mut object = Map::new();
        object.insert("a".to_owned(), number(one));
        object.insert("b".to_owned(), number(other));
        let difference = of.difference();
        object.insert(
            "difference".to_owned(),
            difference.map_or(Value::Null, Value::from),
        );
        let moved = match of.moved {
            Moved::No => "no",
            Moved::Up => "up",
            Moved::Down => "down",
            Moved::TooFew => "too_few",
        };
        object.insert("moved".to_owned(), moved.into());
        (key(&of.name, one), Value::Object(object))
    };
    all.iter().map(of).collect()
}

/// Two reports side by side.
pub(super) fn of_both(reports: [&StoredReport; 2], names: [&str; 2], rows: usize) -> Value {
    let [one, other] = reports;
    let (totals, distributions) = compare(reports);
    let distributions: Map<String, Value> = distributions
        .iter()
        .map(|(title, all)| (title.replace(' ', "_"), Value::Object(compared(all))))
        .collect();
    let pairs = one.tables.iter().zip(&other.tables);
    let tables = pairs.map(|(a, b)| {
        let rows = one.compared_rows(other, [a, b], rows);
        let rows = rows.iter().map(|row| {
            let mut object = Map::new();
            object.insert("key".to_owned(), row.key.clone().into());
            object.insert("where".to_owned(), row.condition.clone().into());
            object.extend(compared(&row.figures));
            Value::Object(object)
        });
        json!({ "by": a.by, "rows": rows.collect::<Vec<_>>() })
    });
    json!({
        "kind": one.subject.kind,
        "a": names[0],
        "b": names[1],
        "totals": compared(&totals),
        "distributions": distributions,
        "tables": tables.collect::<Vec<_>>(),
    })
}
