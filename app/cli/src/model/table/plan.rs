//! What the columns of a table are, by its heading and its first row.

use super::cell::{Unit, cells, count, time};

/// What each line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A count, and perhaps when its bin begins.
    Counts {
        column: usize,
        times: Option<(usize, Unit)>,
    },
    /// When something happened.
    Events { column: usize, unit: Unit },
}

/// How a table is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) separator: u8,
    pub(super) has_heading: bool,
    pub(super) kind: Kind,
}

/// Why a table cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoPlan {
    /// It is none.
    Input(&'static str),
    /// The flags do not fit it.
    Usage(String),
}

/// A column of a table, by its heading and its first row.
struct Column<'a> {
    name: Option<String>,
    first: &'a [u8],
}

impl Column<'_> {
    /// Whether its name speaks of time.
    fn is_named_time(&self) -> bool {
        const WORDS: [&str; 8] = [
            "time", "stamp", "date", "start", "period", "minute", "hour", "epoch",
        ];
        self.name.as_deref().is_some_and(|name| {
            name == "ts"
                || name.contains("_ts")
                || name.contains("ts_")
                || WORDS.iter().any(|word| name.contains(word))
        })
    }

    fn is_date(&self) -> bool {
        linkweir_model::log::calendar::parse_date(self.first).is_some()
    }

    fn is_count(&self) -> bool {
        count(self.first).is_some()
    }

    fn unit(&self) -> Unit {
        self.name.as_deref().map_or(Unit::BySize, Unit::of_heading)
    }

    /// Whether it holds times: dates, numbers under a name that says so, or numbers as large as the
    /// seconds since 1970 are now.
    fn is_time(&self) -> bool {
        /// 1973 to 2099.
        const RECENT_NS: std::ops::Range<u64> = 100_000_000_000_000_000..4_100_000_000_000_000_000;
        let read = time(self.first, self.unit());
        self.is_date()
            || (self.is_named_time() && read.is_some())
            || (self.name.is_none() && read.is_some_and(|ns| RECENT_NS.contains(&ns)))
    }
}

impl Plan {
    /// The plan of a table that begins so. `wanted` names the column, `events` says what it holds.
    pub(super) fn of(beginning: &[u8], wanted: Option<&str>, events: bool) -> Result<Self, NoPlan> {
        let mut rows = beginning
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|row| !row.is_empty() && !row.starts_with(b"#"));
        let first = rows.next().ok_or(NoPlan::Input("it is empty"))?;
        let separator = [b',', b'\t', b';']
            .into_iter()
            .find(|separator| first.contains(separator))
            .unwrap_or(b',');
        let is_data = |cell: &[u8]| time(cell, Unit::BySize).is_some() || is_negative(cell);
        let has_heading = !cells(first, separator).any(is_data);
        let row = if has_heading {
            rows.next()
                .ok_or(NoPlan::Input("it has a heading and no rows"))?
        } else {
            first
        };
        let mut names =
            cells(first, separator).map(|name| String::from_utf8_lossy(name).to_ascii_lowercase());
        let columns: Vec<Column<'_>> = cells(row, separator)
            .map(|first| Column {
                name: names.next().filter(|_| has_heading),
                first,
            })
            .collect();
        let kind = match wanted {
            Some(wanted) => named(&columns, wanted, events),
            None => told(&columns, events),
        };
        let kind = kind.map_err(NoPlan::Usage)?;
        Ok(Self {
            separator,
            has_heading,
            kind,
        })
    }
}

/// A negative number is data, though wrong data.
fn is_negative(cell: &[u8]) -> bool {
    cell.strip_prefix(b"-")
        .is_some_and(|rest| time(rest, Unit::BySize).is_some())
}

fn named(columns: &[Column<'_>], wanted: &str, events: bool) -> Result<Kind, String> {
    let name = wanted.to_ascii_lowercase();
    let by_name = columns
        .iter()
        .position(|column| column.name.as_deref() == Some(name.as_str()));
    let by_number = || wanted.parse::<usize>().ok()?.checked_sub(1);
    let place = by_name
        .or_else(by_number)
        .filter(|place| *place < columns.len())
        .ok_or_else(|| format!("it has no column `{wanted}`"))?;
    let unit = columns.get(place).map_or(Unit::BySize, Column::unit);
    if events {
        return Ok(Kind::Events {
            column: place,
            unit,
        });
    }
    let mut others = columns.iter().enumerate();
    let times = others.find(|(at, column)| *at != place && column.is_time());
    Ok(Kind::Counts {
        column: place,
        times: times.map(|(at, column)| (at, column.unit())),
    })
}

fn told(columns: &[Column<'_>], events: bool) -> Result<Kind, String> {
    let time = columns.iter().position(Column::is_time);
    let unit = |place: usize| columns.get(place).map_or(Unit::BySize, Column::unit);
    let at = |place: usize| Kind::Events {
        column: place,
        unit: unit(place),
    };
    if events {
        return Ok(at(time.unwrap_or(0)));
    }
    match (columns, time) {
        ([_], None) => Ok(Kind::Counts {
            column: 0,
            times: None,
        }),
        ([_, second], Some(0)) if second.is_count() && !second.is_date() => Ok(Kind::Counts {
            column: 1,
            times: Some((0, unit(0))),
        }),
        // The first column numbers the lines, or says nothing.
        ([_, _], None) => Ok(Kind::Counts {
            column: 1,
            times: None,
        }),
        (_, Some(place)) => Ok(at(place)),
        (_, None) => Err(
            "which column holds the counts? Say so with --column, or with --events which holds times"
                .to_owned(),
        ),
    }
}
