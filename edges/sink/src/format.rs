//! The formats, and what an encoder is.

use std::path::Path;

use linkweir_record::{RecordKind, find_column};

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned cells for people.
    Table,
    /// The paper's line: columns joined by `|`, no header.
    Text,
    /// One JSON object a line.
    Jsonl,
    /// RFC 4180 with a header line.
    Csv,
    /// Zeek's log of the same subject, for `zeek-cut`.
    Zeek,
    /// The same as Zeek writes it with `LogAscii::use_json=T`: one JSON object a line.
    ZeekJson,
    /// CSV that spreadsheets open without running or rounding what is in it.
    Spreadsheet,
    /// Apache Parquet, compressed by zstd.
    Parquet,
    /// A stream of Apache Arrow's IPC format.
    Arrow,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Table,
        Self::Text,
        Self::Jsonl,
        Self::Csv,
        Self::Zeek,
        Self::ZeekJson,
        Self::Spreadsheet,
        Self::Parquet,
        Self::Arrow,
    ];

    /// The name for `--format`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Text => "text",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Zeek => "zeek",
            Self::ZeekJson => "zeek-json",
            Self::Spreadsheet => "spreadsheet",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    /// The format a name of `--format` means.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// The format the ending of a path means: `.txt`, `.text`, `.log`; `.jsonl`, `.json`, `.ndjson`;
    /// `.csv`; `.parquet`; `.arrow`, `.arrows`; `.zeek`, and the names that Zeek gives its own logs: `http.log`,
    /// `conn.log`, `ssl.log`, `dns.log`; `.zeek.json` (`.zeek.jsonl`, `.zeek.ndjson`). No ending means `spreadsheet`.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        if matches!(name, "http.log" | "conn.log" | "ssl.log" | "dns.log") {
            return Some(Self::Zeek);
        }
        let ending = path.extension()?.to_str()?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "txt" | "text" | "log" => Self::Text,
            "jsonl" | "json" | "ndjson" => match Path::new(path.file_stem()?).extension() {
                Some(inner) if inner.eq_ignore_ascii_case("zeek") => Self::ZeekJson,
                _ => Self::Jsonl,
            },
            "csv" => Self::Csv,
            "zeek" => Self::Zeek,
            "parquet" => Self::Parquet,
            "arrow" | "arrows" => Self::Arrow,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Format {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Self::from_name(name).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("unknown format `{name}`; one of {names}")
        })
    }
}

/// What an encoder writes of the records of each shape, chosen once.
#[derive(Debug)]
pub(crate) struct Shapes<C>(Vec<Vec<C>>);

impl<C> Shapes<C> {
    /// By what `columns` makes of a shape.
    pub(crate) fn new<K: RecordKind>(columns: impl Fn(usize) -> Vec<C>) -> Self {
        Self((0..K::SHAPES).map(columns).collect())
    }

    /// What stands in a record.
    #[inline]
    pub(crate) fn of<K: RecordKind>(&self, view: &K::View<'_>) -> &[C] {
        self.0.get(K::shape(view)).map_or(&[], Vec::as_slice)
    }
}

/// The column as records of a shape have it; where they do not, one past the last, which is `Null` in all.
pub(crate) fn own_column<K: RecordKind>(shape: usize, column: usize) -> usize {
    if K::has_column(shape, column) {
        column
    } else {
        K::fields().len()
    }
}

/// All columns of a kind.
pub(crate) fn all_columns<K: RecordKind>() -> Vec<usize> {
    (0..K::fields().len()).collect()
}

/// The columns that a destination has: those that were chosen, or those of the format.
///
/// # Errors
/// What is wrong with the name of one.
pub(crate) fn chosen_columns<K: RecordKind>(
    fields: &[String],
    others: impl FnOnce() -> Vec<usize>,
) -> Result<Vec<usize>, String> {
    if fields.is_empty() {
        return Ok(others());
    }
    let mut columns = Vec::with_capacity(fields.len());
    for name in fields {
        let column = find_column::<K>(name.trim())?;
        if columns.contains(&column) {
            return Err(format!("`{}` is there twice", name.trim()));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Turns records into bytes. Every record is whole lines.
pub(crate) trait Encoder<K: RecordKind>: 'static {
    /// Appends what stands at the start of a file opened at wall-clock time `now_ns`.
    fn header(&self, _now_ns: u64, _out: &mut Vec<u8>) {}

    /// Appends one record with its line end.
    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>);

    /// Appends what stands at the end of a file completed at wall-clock time `now_ns`.
    fn footer(&self, _now_ns: u64, _out: &mut Vec<u8>) {}

    /// How many of the first bytes of `bytes`, which start at a record, are whole records.
    fn whole(&self, bytes: &[u8]) -> usize {
        bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_and_names() {
        let of = |path: &str| Format::from_path(Path::new(path));
        assert_eq!(of("a/out.TXT"), Some(Format::Text));
        assert_eq!(of("x.log"), Some(Format::Text));
        assert_eq!(of("a/http.log"), Some(Format::Zeek));
        assert_eq!(of("dns.log"), Some(Format::Zeek));
        assert_eq!(of("x.zeek"), Some(Format::Zeek));
        assert_eq!(of("x.ndjson"), Some(Format::Jsonl));
        assert_eq!(of("x.json"), Some(Format::Jsonl));
        assert_eq!(of("http.zeek.json"), Some(Format::ZeekJson));
        assert_eq!(of("zeek.json"), Some(Format::Jsonl));
        assert_eq!(of("x.csv"), Some(Format::Csv));
        assert_eq!(of("x.parquet"), Some(Format::Parquet));
        assert_eq!(of("x.arrow"), Some(Format::Arrow));
        assert_eq!(of("x.xls"), None);
        assert_eq!(of("csv"), None);
        assert_eq!("csv".parse(), Ok(Format::Csv));
        assert!(
            "xml"
                .parse::<Format>()
                .unwrap_err()
                .contains("table, text, jsonl, csv, zeek")
        );
    }
}
