//! `table`: lines for people, in aligned cells.
//!
//! The cells are those of [`RecordKind::line`]. On a terminal a line fits its width, and outcomes have colours; into a
//! file it is as long as it is. In text from the network `\` and bytes outside printable ASCII are `\xHH`.

use std::io::Write as _;
use std::marker::PhantomData;

use linkweir_record::human::{scaled, span, to_f64};
use linkweir_record::{Cell, Field, FieldType, LineCell, RecordKind, Value};
use linkweir_wire::calendar::format_date;
use linkweir_wire::civil::date_time;

use crate::escape::{is_unprintable, push_hex_escaped};
use crate::format::Encoder;
use crate::number::{push_ip, push_seconds6, push_u64};

/// Between cells.
const GAP: usize = 2;
/// Two addresses of IPv4 with ports: as wide as a cell of both ends is where there is room.
const ENDS: usize = 45;
/// Room for the last cell that leaves none of the others out.
const LAST: usize = 24;
/// Characters of a full bar.
const BAR: u32 = 10;
/// An empty bar and a full one, nanoseconds: the logarithm of 10 to the base of 10 is one of `DECADES`.
const BAR_FROM_NS: f64 = 1e5;
const DECADES: f64 = 5.0;

/// How times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeStyle {
    /// Time of day where the run is.
    #[default]
    Local,
    /// Time of day, UTC.
    Utc,
    /// Seconds since 1970.
    Epoch,
    /// Seconds since the first packet.
    Relative,
}

impl TimeStyle {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Local, Self::Utc, Self::Epoch, Self::Relative];

    /// The name for `--time`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Utc => "utc",
            Self::Epoch => "epoch",
            Self::Relative => "relative",
        }
    }

    /// What a name of `--time` means.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.as_str() == name)
    }
}

/// How lines for people are shown.
#[derive(Debug, Clone, Copy)]
pub struct TableOptions {
    /// Columns of the terminal; `None`: lines are as long as they are.
    pub width: Option<usize>,
    /// Whether there are colours.
    pub is_coloured: bool,
    /// How times are shown; `None`: as the default, without having been asked for.
    pub time: Option<TimeStyle>,
    /// How far local time is ahead of UTC at a moment, seconds. Libraries do not know where they are.
    pub offset_s: fn(u64) -> i32,
    /// The time of the first packet of the run, nanoseconds since the epoch; `None` where there is none, and times are
    /// relative to the first record.
    pub first_ns: fn() -> Option<u64>,
}

impl TableOptions {
    fn style(&self) -> TimeStyle {
        self.time.unwrap_or_default()
    }
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            width: None,
            is_coloured: false,
            time: None,
            offset_s: |_| 0,
            first_ns: || None,
        }
    }
}

/// The columns of a cell, by their places.
#[derive(Debug)]
struct Placed {
    cell: LineCell,
    columns: Vec<usize>,
    /// Characters that the cell has; a longer text moves those behind it in its line only.
    width: usize,
}

impl Placed {
    /// A column by itself.
    fn of(column: usize, field: &Field, options: &TableOptions) -> Self {
        let (cell, width) = match field.kind {
            FieldType::TimeNs | FieldType::TimeMillis => (Cell::Moment(&[]), 12),
            FieldType::SpanNs | FieldType::Millis => (Cell::Span(field.name), 8),
            FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::I64 => {
                (Cell::Number(field.name), 8)
            }
            FieldType::Port => (Cell::Number(field.name), 5),
            FieldType::Ip => (Cell::First(&[]), 15),
            FieldType::Text => (Cell::First(&[]), 20),
            FieldType::Word => (Cell::First(&[]), 10),
            FieldType::Bytes => (Cell::First(&[]), 16),
        };
        let cell = LineCell::new(field.name, width.max(field.name.len()), cell);
        Self {
            cell,
            columns: vec![column],
            width: width_of(&cell, options),
        }
    }
}

fn width_of(cell: &LineCell, options: &TableOptions) -> usize {
    match (cell.cell, options.style()) {
        (Cell::Moment(_), TimeStyle::Epoch) => cell.width.max(17),
        _ => cell.width,
    }
}

/// Writes aligned lines.
#[derive(Debug)]
pub(crate) struct TableEncoder {
    cells: Vec<Placed>,
    options: TableOptions,
    /// The text of a cell.
    text: Vec<u8>,
    first_ns: Option<u64>,
    /// The day that was shown last: year, month and day.
    day: Option<[u64; 3]>,
}

const fn is_special(byte: u8) -> bool {
    is_unprintable(byte) | (byte == b'\\')
}

/// Characters of a text of ours, each one column wide.
fn len_of(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

impl TableEncoder {
    pub(crate) fn new<K: RecordKind>(options: TableOptions) -> Self {
        let all: usize = K::line().iter().map(|cell| cell.width + GAP).sum();
        let last = K::line().last().map_or(0, |cell| cell.width);
        let is_narrow = options.width.is_some_and(|width| all - last + LAST > width);
        let cells = K::line()
            .iter()
            .filter(|cell| !(cell.is_optional && is_narrow));
        // What a terminal has left when all others have theirs.
        let spare = options.width.map_or(usize::MAX, |width| {
            (width + last).saturating_sub(all + LAST)
        });
        let cells = cells.map(|cell| Placed {
            cell: *cell,
            // One that is not there is past the last, which is `Null` in all.
            columns: cell
                .cell
                .columns()
                .iter()
                .map(|name| K::column(name).unwrap_or(usize::MAX))
                .collect(),
            width: match cell.cell {
                Cell::Ends(_) => cell.width.max(ENDS.min(cell.width.saturating_add(spare))),
                _ => width_of(cell, &options),
            },
        });
        Self::of(cells.collect(), options)
    }

    /// A table of these columns, each by itself.
    pub(crate) fn of_columns<K: RecordKind>(columns: &[usize], options: TableOptions) -> Self {
        let fields = columns.iter();
        let fields = fields.filter_map(|column| Some((*column, K::fields().get(*column)?)));
        let cells = fields.map(|(column, field)| Placed::of(column, field, &options));
        Self::of(cells.collect(), options)
    }

    fn of(cells: Vec<Placed>, options: TableOptions) -> Self {
        Self {
            cells,
            options,
            text: Vec::new(),
            first_ns: None,
            day: None,
        }
    }

    /// The time of a record; a line with its day before the first one of a day.
    fn push_moment(&mut self, nanos: u64, out: &mut Vec<u8>) {
        let begun = self.options.first_ns;
        let first = *self
            .first_ns
            .get_or_insert_with(|| begun().unwrap_or(nanos));
        match self.options.style() {
            TimeStyle::Epoch => return push_seconds6(&mut self.text, nanos),
            TimeStyle::Relative => {
                if nanos < first {
                    self.text.push(b'-');
                }
                return push_seconds6(&mut self.text, nanos.abs_diff(first));
            }
            TimeStyle::Local | TimeStyle::Utc => {}
        }
        let offset = match self.options.style() {
            TimeStyle::Local => i64::from((self.options.offset_s)(nanos)),
            _ => 0,
        };
        // West of Greenwich the first hours of 1970 are in 1969.
        let seconds = (nanos / 1_000_000_000).cast_signed() + offset;
        let [year, month, date, h, m, s] = date_time(seconds);
        let day = [year, month, date];
        if self.day.replace(day) != Some(day) {
            let zone = match (self.options.style(), offset) {
                (TimeStyle::Utc, _) => "UTC".to_owned(),
                (_, offset) => {
                    let sign = if offset < 0 { '-' } else { '+' };
                    let minutes = offset.unsigned_abs() / 60;
                    format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
                }
            };
            // Writing to a vector cannot fail.
            let _unfailing = writeln!(out, "-- {year:04}-{month:02}-{date:02}, {zone}");
        }
        let millis = nanos / 1_000_000 % 1000;
        let _unfailing = write!(self.text, "{h:02}:{m:02}:{s:02}.{millis:03}");
    }

    fn push_value(&mut self, value: Value<'_>) {
        let text = &mut self.text;
        match value {
            Value::Null => {}
            Value::U64(n) => push_u64(text, n),
            Value::TimeNs(n) => push_seconds6(text, n),
            Value::SpanNs(n) | Value::Millis(n) => text.extend_from_slice(span(n).as_bytes()),
            Value::Ip(address) => push_ip(text, address),
            Value::Port(port) => push_u64(text, u64::from(port)),
            Value::Text(bytes) => push_hex_escaped(text, bytes, is_special),
            Value::Short(short) => push_hex_escaped(text, short.as_bytes(), is_special),
            Value::Word(word) => text.extend_from_slice(word.as_bytes()),
            Value::Bytes(bytes) => crate::escape::push_digits(text, bytes),
        }
    }

    /// Makes the text of a cell; which colour it has.
    fn fill<K: RecordKind>(
        &mut self,
        view: &K::View<'_>,
        at: usize,
        out: &mut Vec<u8>,
    ) -> Option<&'static str> {
        self.text.clear();
        let placed = self.cells.get(at)?;
        let cell = placed.cell.cell;
        let value = |column: &usize| K::value(view, *column);
        let values: Vec<Value<'_>> = placed.columns.iter().map(value).collect();
        let first = values.iter().copied().find(|value| *value != Value::Null);
        match (cell, values.as_slice()) {
            (Cell::Moment(_), _) => {
                if let Some(Value::TimeNs(nanos) | Value::Millis(nanos)) = first {
                    self.push_moment(nanos, out);
                }
            }
            (Cell::Ends(_), &[client, client_port, server, server_port]) if first.is_some() => {
                self.push_end(client, client_port);
                self.text.extend_from_slice(" → ".as_bytes());
                self.push_end(server, server_port);
            }
            (Cell::Counts(_), &[client, server]) if first.is_some() => {
                self.push_value(client);
                self.text.push(b'/');
                self.push_value(server);
            }
            (Cell::Bytes(_), &[Value::U64(client), Value::U64(server)]) => {
                let [client, server] = [client, server].map(|bytes| scaled(to_f64(bytes), ""));
                let text = format!("{client}/{server}");
                self.text.extend_from_slice(text.as_bytes());
            }
            (Cell::Bar(_), &[Value::SpanNs(nanos) | Value::Millis(nanos)]) => {
                push_bar(&mut self.text, nanos);
                return Some(colour_of_span(nanos));
            }
            (Cell::Texts(_, between), values) => {
                for value in values.iter().filter(|value| **value != Value::Null) {
                    if !self.text.is_empty() {
                        self.text.extend_from_slice(between.as_bytes());
                    }
                    self.push_value(*value);
                }
            }
            (Cell::Outcome { good, .. }, _) => {
                let value = first?;
                self.push_value(value);
                return colour_of_outcome(&value, good);
            }
            _ => self.push_value(first.unwrap_or(Value::Null)),
        }
        None
    }

    fn push_end(&mut self, address: Value<'_>, port: Value<'_>) {
        let is_v6 = matches!(address, Value::Ip(ip) if ip.to_canonical().is_ipv6());
        if is_v6 {
            self.text.push(b'[');
        }
        self.push_value(address);
        if is_v6 {
            self.text.push(b']');
        }
        if port != Value::Null {
            self.text.push(b':');
            self.push_value(port);
        }
    }

    /// Cuts the text to so many characters.
    fn cut(&mut self, room: usize) {
        if len_of(&self.text) <= room {
            return;
        }
        let starts = self.text.iter().enumerate();
        let mut starts = starts.filter(|(_, byte)| **byte & 0xc0 != 0x80);
        let end = starts.nth(room.saturating_sub(1)).map_or(0, |(at, _)| at);
        self.text.truncate(end);
        if room > 0 {
            self.text.extend_from_slice("…".as_bytes());
        }
    }

    /// Appends the text of a cell with its colour.
    fn push_text(&self, colour: Option<&str>, out: &mut Vec<u8>) {
        match colour.filter(|_| self.options.is_coloured && !self.text.is_empty()) {
            Some(colour) => {
                out.extend_from_slice(colour.as_bytes());
                out.extend_from_slice(&self.text);
                out.extend_from_slice(b"\x1b[0m");
            }
            None => out.extend_from_slice(&self.text),
        }
    }
}

/// The cells of a line of a record as texts, without bars; times as RFC 3339 has them, in UTC.
#[derive(Debug)]
pub struct LineCells<K> {
    encoder: TableEncoder,
    kind: PhantomData<fn() -> K>,
}

impl<K: RecordKind> Default for LineCells<K> {
    fn default() -> Self {
        let mut encoder = TableEncoder::new::<K>(TableOptions::default());
        let is_bar = |cell: &Cell| matches!(cell, Cell::Bar(_));
        encoder.cells.retain(|placed| !is_bar(&placed.cell.cell));
        Self {
            encoder,
            kind: PhantomData,
        }
    }
}

impl<K: RecordKind> LineCells<K> {
    /// Their titles.
    #[must_use]
    pub fn titles(&self) -> Vec<&'static str> {
        let cells = self.encoder.cells.iter();
        cells.map(|placed| placed.cell.title).collect()
    }

    /// Those of a record.
    #[must_use]
    pub fn of(&mut self, view: &K::View<'_>) -> Vec<String> {
        let mut texts = Vec::with_capacity(self.encoder.cells.len());
        for at in 0..self.encoder.cells.len() {
            let placed = self.encoder.cells.get(at);
            let moment = placed.filter(|placed| matches!(placed.cell.cell, Cell::Moment(_)));
            if let Some(placed) = moment {
                let mut values = placed.columns.iter().map(|column| K::value(view, *column));
                let moment = values.find_map(|value| match value {
                    Value::TimeNs(nanos) | Value::Millis(nanos) => Some(format_date(nanos)),
                    _ => None,
                });
                texts.push(moment.unwrap_or_default());
                continue;
            }
            self.encoder.fill::<K>(view, at, &mut Vec::new());
            texts.push(String::from_utf8_lossy(&self.encoder.text).into_owned());
        }
        texts
    }
}

const fn is_right(cell: &Cell) -> bool {
    matches!(
        cell,
        Cell::Span(_) | Cell::Number(_) | Cell::Counts(_) | Cell::Bytes(_)
    )
}

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const CYAN: &str = "\x1b[36m";

/// By the class of a status code, or whether a word is one of those that are no errors.
fn colour_of_outcome(value: &Value<'_>, good: &[&str]) -> Option<&'static str> {
    match *value {
        Value::U64(200..300) => Some(GREEN),
        Value::U64(300..400) => Some(CYAN),
        Value::U64(400..500) => Some(YELLOW),
        Value::U64(500..) => Some(RED),
        Value::Word(word) if !good.contains(&word) => Some(RED),
        // A word that was stored.
        Value::Text(text) if !good.iter().any(|word| word.as_bytes() == text) => Some(RED),
        _ => None,
    }
}

const fn colour_of_span(nanos: u64) -> &'static str {
    match nanos {
        0..200_000_000 => GREEN,
        200_000_000..1_000_000_000 => YELLOW,
        _ => RED,
    }
}

/// A bar in eighths of a character.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the eighths of a full bar"
)]
fn push_bar(text: &mut Vec<u8>, nanos: u64) {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = (to_f64(nanos.max(1)) / BAR_FROM_NS).log10() / DECADES;
    let eighths = (share.clamp(0.0, 1.0) * f64::from(BAR * 8)).round() as usize;
    for _ in 0..eighths / 8 {
        text.extend_from_slice("█".as_bytes());
    }
    let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
    text.extend_from_slice(part.as_bytes());
}

fn pad(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

impl<K: RecordKind> Encoder<K> for TableEncoder {
    fn header(&self, _now_ns: u64, out: &mut Vec<u8>) {
        let mut line = String::new();
        for placed in &self.cells {
            let (title, width) = (placed.cell.title, placed.width);
            match is_right(&placed.cell.cell) {
                true => line.push_str(&format!("{title:>width$}")),
                false => line.push_str(&format!("{title:width$}")),
            }
            line.push_str("  ");
        }
        out.extend_from_slice(line.trim_end().as_bytes());
        out.push(b'\n');
    }

    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        // A line with the day may come first.
        let mut line = Vec::with_capacity(200);
        let mut used = 0;
        let last = self.cells.len().saturating_sub(1);
        for at in 0..self.cells.len() {
            let colour = self.fill::<K>(view, at, out);
            if at == last {
                if let Some(width) = self.options.width {
                    self.cut(width.saturating_sub(used));
                }
                let placed = self.cells.get(at);
                if let Some(placed) = placed.filter(|placed| is_right(&placed.cell.cell)) {
                    pad(&mut line, placed.width.saturating_sub(len_of(&self.text)));
                }
                self.push_text(colour, &mut line);
                break;
            }
            let len = len_of(&self.text);
            let Some(placed) = self.cells.get(at) else {
                break;
            };
            let width = placed.width;
            let room = width.saturating_sub(len);
            let before = if is_right(&placed.cell.cell) { room } else { 0 };
            pad(&mut line, before);
            self.push_text(colour, &mut line);
            pad(&mut line, room - before + GAP);
            used += len.max(width) + GAP;
        }
        while line.last() == Some(&b' ') {
            line.pop();
        }
        out.append(&mut line);
        out.push(b'\n');
    }
}
