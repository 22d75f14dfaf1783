//! The last records, so that whoever sees a number can look at what is behind it.
//!
//! One ring for all keys, filtered by the expression of `--where` when it is asked for. Records are copied in chunks; a
//! closed chunk never changes, so a reader holds the lock only as long as it takes to share them.
//!
//! Memory: [`MAX_RECORDS`] records, [`MAX_BYTES`] and one chunk more at the most. Cost: a copy of each record, only
//! where a console is open, and only of kinds that have records behind their rows: a gateway copies none.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use linkweir_record::{Filter, RecordBatch, RecordKind, Value};
use serde::Serialize;
use serde_json::Map;

use crate::text::clean;

/// Records that are kept.
pub const MAX_RECORDS: usize = 20_000;
/// Bytes of the chunks.
const MAX_BYTES: usize = 16 << 20;
/// Records and bytes of a chunk.
const CHUNK_RECORDS: usize = 1000;
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks, however small: readers close them early.
const MAX_CHUNKS: usize = 512;
/// Longest text of a record that readers get, bytes.
const MAX_TEXT: usize = 512;
/// How long something took, in the order in which kinds have it.
const TIMES: [&str; 2] = ["response_time_ns", "durat"];

/// Which record comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecentOrder {
    /// The newest.
    Newest,
    /// That which took longest; those without a time are left out.
    Slowest,
}

/// Records that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Found {
    /// The expression of `--where` that they meet.
    #[serde(rename = "where")]
    pub condition: String,
    /// Records that were looked through.
    pub of: usize,
    /// How many meet it.
    pub matching: usize,
    /// The first of them: columns that have a value, texts cut at 512 bytes. Every time and duration is in nanoseconds and its
    /// name ends in `_ns`: `first`, which files have in milliseconds, is `first_ns`.
    pub records: Vec<Map<String, serde_json::Value>>,
}

/// The last records of a kind.
pub struct Ring<R: RecordKind> {
    /// Oldest first.
    chunks: VecDeque<Arc<R::Batch>>,
    open: R::Batch,
    records: usize,
    bytes: usize,
}

impl<R: RecordKind> Default for Ring<R> {
    fn default() -> Self {
        Self {
            chunks: VecDeque::new(),
            open: R::Batch::default(),
            records: 0,
            bytes: 0,
        }
    }
}

impl<R: RecordKind> fmt::Debug for Ring<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl<R: RecordKind> Ring<R> {
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let chunk = std::mem::take(&mut self.open);
        self.records += chunk.len();
        self.bytes += chunk.memory_bytes();
        self.chunks.push_back(Arc::new(chunk));
        while self.records > MAX_RECORDS || self.bytes > MAX_BYTES || self.chunks.len() > MAX_CHUNKS
        {
            let Some(old) = self.chunks.pop_front() else {
                return;
            };
            self.records -= old.len();
            self.bytes -= old.memory_bytes();
        }
    }
}

/// Chunks that do not change any more.
pub type Chunks<R> = Vec<Arc<<R as RecordKind>::Batch>>;

impl<R: RecordKind> Ring<R> {
    /// Keeps the records of a batch.
    pub(crate) fn keep(&mut self, batch: &R::Batch) {
        for view in batch.views() {
            self.open.push_view(&view);
            if self.open.len() >= CHUNK_RECORDS || self.open.memory_bytes() >= CHUNK_BYTES {
                self.close();
            }
        }
    }

    /// What there is at this moment.
    pub(crate) fn share(&mut self) -> Chunks<R> {
        self.close();
        self.chunks.iter().cloned().collect()
    }
}

/// The records that meet a filter and `is_meant`, at most `most`.
pub(crate) fn find<R: RecordKind>(
    chunks: &Chunks<R>,
    condition: &str,
    mut is_meant: impl FnMut(&R::View<'_>) -> bool,
    order: RecentOrder,
    most: usize,
) -> Result<Found, String> {
    let filter = Filter::<R>::read(condition).map_err(|error| error.to_string())?;
    let time = TIMES.iter().find_map(|name| R::column(name));
    let span = |view: &R::View<'_>| match R::value(view, time?) {
        Value::SpanNs(span) | Value::Millis(span) => Some(span),
        _ => None,
    };
    let mut found = Found {
        condition: condition.to_owned(),
        of: chunks.iter().map(|chunk| chunk.len()).sum(),
        ..Found::default()
    };
    // Time taken, chunk, place; newest first.
    let mut places: Vec<(u64, &R::Batch, usize)> = Vec::new();
    for chunk in chunks.iter().rev() {
        for at in (0..chunk.len()).rev() {
            let Some(view) = chunk.get(at) else { continue };
            if !filter.matches(&view) || !is_meant(&view) {
                continue;
            }
            found.matching += 1;
            match order {
                RecentOrder::Newest if places.len() >= most => {}
                RecentOrder::Newest => places.push((0, chunk, at)),
                RecentOrder::Slowest => places.extend(span(&view).map(|span| (span, &**chunk, at))),
            }
        }
    }
    // Stable: of equals the newest is first.
    places.sort_by_key(|(span, _, _)| std::cmp::Reverse(*span));
    places.truncate(most);
    let views = places.iter().filter_map(|(_, chunk, at)| chunk.get(*at));
    found.records = views.map(|view| object::<R>(&view)).collect();
    Ok(found)
}

/// The columns of a record that have a value.
fn object<R: RecordKind>(view: &R::View<'_>) -> Map<String, serde_json::Value> {
    let mut object = Map::new();
    let text = |bytes: &[u8]| clean(bytes.get(..MAX_TEXT).unwrap_or(bytes)).into();
    let shape = R::shape(view);
    for (at, field) in R::fields().iter().enumerate() {
        let mut name = Cow::Borrowed(field.name);
        let value = match R::value(view, at) {
            _ if !R::has_column(shape, at) => continue,
            Value::Null => continue,
            Value::U64(n) => n.into(),
            Value::SpanNs(ns) | Value::TimeNs(ns) | Value::Millis(ns) => {
                // Columns that files have in milliseconds are named without a unit.
                if !name.ends_with("_ns") {
                    name.to_mut().push_str("_ns");
                }
                ns.into()
            }
            Value::Ip(address) => address.to_canonical().to_string().into(),
            Value::Port(port) => port.into(),
            Value::Text(bytes) => text(bytes),
            Value::Short(short) => text(short.as_bytes()),
            Value::Word(word) => word.into(),
            // Addresses of files and the like: nobody reads them here.
            Value::Bytes(_) => continue,
        };
        object.insert(name.into_owned(), value);
    }
    object
}

/// `column ~ "^text$"`: exactly a text of a table, in letters of either case.
pub(crate) fn is_text(column: &str, text: &str) -> String {
    format!("{column} ~ \"^{}$\"", literal(text))
}

/// A text as a regular expression without quotes in it, so that it can stand in any; `\xHH` of a byte that is no text
/// remains.
pub(crate) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let hex = rest.strip_prefix("\\x").and_then(|after| after.get(..2));
        if let Some(hex) = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            out.push_str("\\x");
            out.push_str(hex);
            rest = rest.get(4..).unwrap_or_default();
            continue;
        }
        match c {
            '"' => out.push_str("\\x22"),
            '\'' => out.push_str("\\x27"),
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/') || !c.is_ascii() => {
                out.push(c);
            }
            c => out.extend(['\\', c]),
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::By;
    use crate::{Kind as _, Live, LiveOptions};
    use linkweir_record::{HttpBatch, HttpKind, HttpRow, HttpState, Text};

    fn batch(count: u64, host: &[u8], uri: &[u8]) -> HttpBatch {
        let mut batch = HttpBatch::default();
        for at in 1..=count {
            let row = HttpRow {
                request_ts_ns: Some(1_000_000_000),
                response_ts_ns: Some(1_000_000_000 + at % 7 * 1_000_000),
                status_code: Some(200),
                server_port: 80,
                state: HttpState::Complete,
                ..HttpRow::default()
            };
            let text = Text {
                method: b"GET",
                host,
                uri,
                ..Text::default()
            };
            batch.push(row, &text);
        }
        batch
    }

    fn behind(live: &Live, by: By, key: &str) -> Found {
        let behind = HttpKind::behind(by, key).unwrap();
        live.records(&behind, RecentOrder::Slowest, 10).unwrap()
    }

    #[test]
    fn the_ring_is_bounded_by_records_and_by_bytes() {
        let mut ring = Ring::<HttpKind>::default();
        for _ in 0..30 {
            ring.keep(&batch(1000, b"a", b"/"));
        }
        let kept: usize = ring.share().iter().map(|chunk| chunk.len()).sum();
        assert_eq!(kept, MAX_RECORDS);
        for _ in 0..30 {
            ring.keep(&batch(1000, b"a", &[b'/'; 4000]));
        }
        assert!(ring.bytes <= MAX_BYTES, "{} bytes", ring.bytes);
        for _ in 0..2 * MAX_CHUNKS {
            ring.keep(&batch(1, b"a", b"/"));
            ring.share();
        }
        assert!(ring.chunks.len() <= MAX_CHUNKS);
    }

    #[test]
    fn records_behind_a_row_are_those_of_the_row() {
        let live = Live::new(LiveOptions::default());
        live.take(&batch(1, b"a", b"/"));
        assert_eq!(behind(&live, By::Host, "a"), Found::default(), "not kept");
        live.keep_records();
        for (host, uri) in [
            (&b"Shop.test"[..], &b"/user/17/cart?x=1"[..]),
            (b"shop-test", b"/user/new/cart"),
            (b"shop.test:8080", b"/user/3/cart"),
            (b"a\"'\\.\xff", b"/"),
        ] {
            live.take(&batch(3, host, uri));
        }
        for (by, key, count) in [
            (By::Host, "shop.test", 3),
            (By::Host, "shop-test", 3),
            (By::Host, "a\"'\\.\\xff", 3),
            (By::Host, "a", 0),
            (By::Host, "", 0),
            (By::Url, "shop.test/user/{n}/cart", 3),
            (By::Url, "shop-test/user/{n}/cart", 0),
            (By::Url, "shop-test/user/new/cart", 3),
            (By::Server, "[::]:80", 12),
            (By::Server, "[::]:81", 0),
        ] {
            let found = behind(&live, by, key);
            assert_eq!(
                (found.matching, found.of),
                (count, 12),
                "{by:?} {key}: {}",
                found.condition
            );
        }
        let found = behind(&live, By::Host, "shop.test");
        assert_eq!(
            found.condition,
            r#"host ~ "^shop\.test$" and state != orphan"#
        );
        let times = found
            .records
            .iter()
            .map(|record| record["response_time_ns"].as_u64());
        assert_eq!(
            times.collect::<Vec<_>>(),
            [3_000_000, 2_000_000, 1_000_000].map(Some)
        );
        assert_eq!(found.records[0]["host"], "Shop.test");
        assert_eq!(found.records[0]["request_ts_ns"], 1_000_000_000);
        let rule = HttpKind::rule("p95 of host shop.test > 1 ms").unwrap();
        let behind = HttpKind::behind_rule(&rule).unwrap();
        let found = live.records(&behind, RecentOrder::Newest, 2).unwrap();
        assert_eq!((found.matching, found.records.len()), (6, 2), "any port");
    }
}
