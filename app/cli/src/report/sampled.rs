//! Some of the records, as they are shown.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use linkweir_record::stored::StoredRecord;
use linkweir_record::{FieldType, RecordKind, Stored, Value};
use linkweir_report::stored::{Sample, SampleValue};
use linkweir_sink::LineCells;

/// Makes samples.
pub(super) struct Sampler<K: RecordKind> {
    cells: RefCell<LineCells<Stored<K>>>,
    /// Whether programs read them.
    wants_columns: bool,
}

impl<K: RecordKind> Sampler<K> {
    pub(super) fn new(wants_columns: bool) -> Self {
        Self {
            cells: RefCell::default(),
            wants_columns,
        }
    }

    /// What is shown of the record at `place`, with a `mark`; made at most once, for all that keep it.
    pub(super) fn of<'a>(
        &'a self,
        view: &'a StoredRecord<'_>,
        mark: Option<&'static str>,
        place: impl Fn() -> String + 'a,
    ) -> impl Fn() -> Rc<Sample> + 'a {
        let made = OnceCell::new();
        move || {
            let sample = made.get_or_init(|| {
                let mut cells = self.cells.borrow_mut().of(view);
                if let (Some(last), Some(mark)) = (cells.last_mut(), mark) {
                    *last = format!("{last} ({mark})").trim_start().to_owned();
                }
                let columns = match self.wants_columns {
                    true => columns::<K>(view),
                    false => Vec::new(),
                };
                Rc::new(Sample {
                    place: place(),
                    cells,
                    columns,
                })
            });
            Rc::clone(sample)
        }
    }
}

/// The columns behind the cells of a line; those in milliseconds are named as nanoseconds, which they are here.
fn columns<K: RecordKind>(view: &StoredRecord<'_>) -> Vec<(String, Option<SampleValue>)> {
    let mut places: Vec<usize> = Vec::new();
    for cell in K::line() {
        let columns = cell.cell.columns().into_iter();
        for column in columns.filter_map(K::column) {
            if !places.contains(&column) {
                places.push(column);
            }
        }
    }
    let named = |column: usize| {
        let field = K::fields().get(column)?;
        let is_ms = matches!(field.kind, FieldType::Millis | FieldType::TimeMillis);
        let end = if is_ms { "_ns" } else { "" };
        Some((format!("{}{end}", field.name), value(&view.value(column))))
    };
    places.into_iter().filter_map(named).collect()
}

fn value(value: &Value<'_>) -> Option<SampleValue> {
    let text = |bytes: &[u8]| SampleValue::Text(String::from_utf8_lossy(bytes).into_owned());
    Some(match value {
        Value::Null => return None,
        Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) | Value::Millis(n) => {
            SampleValue::Number(*n)
        }
        Value::Port(port) => SampleValue::Number((*port).into()),
        Value::Ip(address) => SampleValue::Text(address.to_canonical().to_string()),
        Value::Text(bytes) | Value::Bytes(bytes) => text(bytes),
        Value::Short(short) => text(short.as_bytes()),
        Value::Word(word) => text(word.as_bytes()),
    })
}
