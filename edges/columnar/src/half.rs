//! Half-transactions from columns, as engines give them back.
//!
//! Columns are found by name and further ones passed over. Numbers may be of any integer type, or decimals
//! without a fraction; texts and bytes may be large, views or dictionaries.

use std::fs::File;
use std::io::{Cursor, Read};
use std::net::IpAddr;
use std::path::Path;

use arrow_array::RecordBatch;
use linkweir_record::{HalfBatch, HalfRow};

use crate::schema::ColumnarError;
use crate::select::{Form, SelectError, Table, texts};
use crate::values::{bytes, numbers};

/// The columns that are read.
const NAMES: [&str; 15] = [
    "order_ns",
    "file",
    "packet",
    "ts_ns",
    "src_ip",
    "src_port",
    "dst_ip",
    "dst_port",
    "vlan",
    "seq",
    "ack",
    "flags",
    "payload_len",
    "captured_len",
    "payload",
];

/// Rows that are taken at a time, however many a batch has.
const PIECE: usize = 2048;

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HalfError {
    /// The columns, or the library's word.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// What is read is neither a stream nor a Parquet file.
    #[error("{0}")]
    Form(&'static str),
    /// Reading failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A value that a row cannot have.
    #[error("row {row}: column `{column}` {what}")]
    Value {
        /// Its number, from 0.
        row: u64,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

impl From<ColumnarError> for HalfError {
    fn from(error: ColumnarError) -> Self {
        Self::Select(error.into())
    }
}

/// Rows of a stream or a file.
#[derive(Debug)]
pub struct Halves {
    table: Table,
    batch: Option<RecordBatch>,
    /// Rows of the batch that were given.
    done: usize,
    rows: u64,
    last: (u64, u32, u64),
    disordered: u64,
    first_disordered: u64,
}

impl Halves {
    /// Rows from a stream of Arrow's IPC format.
    ///
    /// # Errors
    /// Where it does not begin as one, or a column is missing.
    pub fn of_stream(mut bytes: impl Read + Send + 'static) -> Result<Self, HalfError> {
        let mut beginning = Vec::with_capacity(8);
        bytes.by_ref().take(8).read_to_end(&mut beginning)?;
        match Form::of(&beginning) {
            Some(Form::Stream) => {}
            Some(Form::Parquet) => {
                return Err(HalfError::Form(
                    "a Parquet file cannot be read from a pipe: name the file",
                ));
            }
            Some(Form::File) => {
                return Err(HalfError::Form(
                    "is an Arrow file (Feather): a stream of Arrow's IPC format is read",
                ));
            }
            None => {
                return Err(HalfError::Form(
                    "is neither a stream of Arrow's IPC format nor a Parquet file",
                ));
            }
        }
        let whole = Cursor::new(beginning).chain(bytes);
        Ok(Self::new(Table::of_stream(whole, &NAMES)?))
    }

    /// Rows from a file: Parquet, or a stream of Arrow's IPC format.
    ///
    /// # Errors
    /// Where it cannot be opened or is neither, or a column is missing.
    pub fn of_file(path: &Path) -> Result<Self, HalfError> {
        let mut beginning = Vec::with_capacity(8);
        File::open(path)?.take(8).read_to_end(&mut beginning)?;
        let file = File::open(path)?;
        if Form::of(&beginning) == Some(Form::Parquet) {
            return Ok(Self::new(Table::of_parquet(file, &NAMES)?));
        }
        Self::of_stream(std::io::BufReader::new(file))
    }

    const fn new(table: Table) -> Self {
        Self {
            table,
            batch: None,
            done: 0,
            rows: 0,
            last: (0, 0, 0),
            disordered: 0,
            first_disordered: 0,
        }
    }

    /// Appends the next rows to `out`; whether there were any.
    ///
    /// # Errors
    /// Where the input is damaged or a value is none: nothing more can be read then.
    pub fn read(&mut self, out: &mut HalfBatch) -> Result<bool, HalfError> {
        loop {
            if let Some(batch) = &self.batch {
                let left = batch.num_rows().saturating_sub(self.done);
                if left > 0 {
                    let piece = batch.slice(self.done, left.min(PIECE));
                    self.done += piece.num_rows();
                    self.take(&piece, out)?;
                    return Ok(true);
                }
            }
            self.done = 0;
            self.batch = self.table.next().transpose()?;
            if self.batch.is_none() {
                return Ok(false);
            }
        }
    }

    /// Rows that were read.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Goes on behind the last row of `before`, for the order of rows.
    pub fn follow(&mut self, before: &Self) {
        self.last = before.last;
    }

    /// How many rows came after a later one, and the number of the first, where there are any.
    #[must_use]
    pub fn disordered(&self) -> Option<(u64, u64)> {
        (self.disordered > 0).then_some((self.disordered, self.first_disordered))
    }

    fn take(&mut self, piece: &RecordBatch, out: &mut HalfBatch) -> Result<(), HalfError> {
        let columns = Columns::of(piece)?;
        for at in 0..piece.num_rows() {
            let row = columns.row(at).map_err(|(column, what)| HalfError::Value {
                row: self.rows,
                column,
                what,
            })?;
            let key = (row.order_ns, row.file, row.packet);
            // In the order of time, or in that of files.
            if key < self.last && (key.1, key.2) < (self.last.1, self.last.2) {
                if self.disordered == 0 {
                    self.first_disordered = self.rows;
                }
                self.disordered += 1;
            }
            self.last = key;
            out.push(
                row,
                columns
                    .payload
                    .get(at)
                    .copied()
                    .flatten()
                    .unwrap_or_default(),
            );
            self.rows += 1;
        }
        Ok(())
    }
}

type Numbers = Vec<Option<u64>>;

/// The columns of some rows.
struct Columns<'a> {
    order_ns: Numbers,
    file: Numbers,
    packet: Numbers,
    ts_ns: Numbers,
    src_ip: Vec<Option<&'a str>>,
    src_port: Numbers,
    dst_ip: Vec<Option<&'a str>>,
    dst_port: Numbers,
    vlan: Numbers,
    seq: Numbers,
    ack: Numbers,
    flags: Numbers,
    payload_len: Numbers,
    captured_len: Numbers,
    payload: Vec<Option<&'a [u8]>>,
}

/// Characters of a wrong text that a message shows; no address has more.
const SHOWN: usize = 48;

/// A column and what is wrong with a value of it.
type Wrong = (&'static str, String);

/// The number of a row, which must be there and fit.
fn number<T: TryFrom<u64>>(
    column: &[Option<u64>],
    at: usize,
    name: &'static str,
) -> Result<T, Wrong> {
    let value = column.get(at).copied().flatten();
    let value = value.ok_or_else(|| (name, "is null".to_owned()))?;
    T::try_from(value).map_err(|_| (name, format!("is {value}, which is too large")))
}

fn address(column: &[Option<&str>], at: usize, name: &'static str) -> Result<IpAddr, Wrong> {
    let text = column.get(at).copied().flatten();
    let text = text.ok_or_else(|| (name, "is null".to_owned()))?;
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(SHOWN).collect();
        (name, format!("is `{shown}`, which is not an IP address"))
    })
}

impl<'a> Columns<'a> {
    fn of(piece: &'a RecordBatch) -> Result<Self, SelectError> {
        Ok(Self {
            order_ns: numbers(piece, "order_ns")?,
            file: numbers(piece, "file")?,
            packet: numbers(piece, "packet")?,
            ts_ns: numbers(piece, "ts_ns")?,
            src_ip: texts(piece, "src_ip")?,
            src_port: numbers(piece, "src_port")?,
            dst_ip: texts(piece, "dst_ip")?,
            dst_port: numbers(piece, "dst_port")?,
            vlan: numbers(piece, "vlan")?,
            seq: numbers(piece, "seq")?,
            ack: numbers(piece, "ack")?,
            flags: numbers(piece, "flags")?,
            payload_len: numbers(piece, "payload_len")?,
            captured_len: numbers(piece, "captured_len")?,
            payload: bytes(piece, "payload")?,
        })
    }

    /// A row, with what a measurement asks of it.
    fn row(&self, at: usize) -> Result<HalfRow, Wrong> {
        let payload_len = number(&self.payload_len, at, "payload_len")?;
        let captured_len: u32 = number(&self.captured_len, at, "captured_len")?;
        if captured_len > payload_len {
            return Err((
                "captured_len",
                format!("is {captured_len}, more than payload_len"),
            ));
        }
        // Larger frames come from no source; nobody may have memory filled by a number.
        if captured_len > MAX_PAYLOAD {
            return Err((
                "captured_len",
                format!("is {captured_len}, which no frame has"),
            ));
        }
        let held = self
            .payload
            .get(at)
            .copied()
            .flatten()
            .map_or(0, <[u8]>::len);
        if held > captured_len as usize {
            return Err((
                "payload",
                format!("has {held} bytes, more than captured_len"),
            ));
        }
        let vlan = match self.vlan.get(at).copied().flatten() {
            None => None,
            Some(_) => Some(number(&self.vlan, at, "vlan")?),
        };
        Ok(HalfRow {
            order_ns: number(&self.order_ns, at, "order_ns")?,
            file: number(&self.file, at, "file")?,
            packet: number(&self.packet, at, "packet")?,
            ts_ns: number(&self.ts_ns, at, "ts_ns")?,
            src_ip: address(&self.src_ip, at, "src_ip")?,
            src_port: number(&self.src_port, at, "src_port")?,
            dst_ip: address(&self.dst_ip, at, "dst_ip")?,
            dst_port: number(&self.dst_port, at, "dst_port")?,
            vlan,
            seq: number(&self.seq, at, "seq")?,
            ack: number(&self.ack, at, "ack")?,
            flags: number(&self.flags, at, "flags")?,
            payload_len,
            captured_len,
            ..HalfRow::default()
        })
    }
}

/// Bytes of payload of a frame at most: the snapshot length of tcpdump is 262,144.
const MAX_PAYLOAD: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use std::io::Write;

    use arrow_array::{ArrayRef, Int32Array, StringArray};
    use linkweir_record::{HalfKind, HttpHalf, RecordBatch as _};

    use super::*;
    use crate::{ArrowStream, ParquetFile};

    fn batch(rows: u32) -> HalfBatch {
        let mut batch = HalfBatch::default();
        for n in 0..rows {
            let row = HalfRow {
                order_ns: 1_700_000_000_000_000_000 + u64::from(n),
                ts_ns: 1_700_000_000_000_000_000,
                packet: u64::from(n),
                seq: u32::MAX - n,
                vlan: (n % 2 == 1).then_some(7),
                payload_len: 100,
                captured_len: 50,
                ..HalfRow::default()
            };
            batch.push(row, b"GET / HTTP/1.1\r\n");
        }
        batch
    }

    fn stream(rows: u32) -> Vec<u8> {
        let batch = batch(rows);
        let views: Vec<HttpHalf<'_>> = batch.views().collect();
        let mut stream = ArrowStream::<HalfKind>::new().unwrap();
        stream.extend(&views).unwrap();
        stream.end().unwrap();
        stream.take()
    }

    fn read(bytes: Vec<u8>) -> Result<HalfBatch, HalfError> {
        let (out, halves) = read_any(bytes)?;
        assert_eq!(halves.disordered(), None);
        Ok(out)
    }

    fn read_any(bytes: Vec<u8>) -> Result<(HalfBatch, Halves), HalfError> {
        let mut halves = Halves::of_stream(Cursor::new(bytes))?;
        let mut out = HalfBatch::default();
        while halves.read(&mut out)? {}
        Ok((out, halves))
    }

    #[test]
    fn rows_come_back() {
        let rows = read(stream(5000)).unwrap();
        assert_eq!(rows.len(), 5000);
        let last = rows.get(4999).unwrap();
        assert_eq!((last.row.seq, last.row.vlan), (u32::MAX - 4999, Some(7)));
        assert_eq!(last.payload, b"GET / HTTP/1.1\r\n");
    }

    fn parquet(rows: u32) -> Vec<u8> {
        let batch = batch(rows);
        let views: Vec<HttpHalf<'_>> = batch.views().collect();
        let mut file = ParquetFile::<HalfKind>::new().unwrap();
        file.extend(&views).unwrap();
        file.close_group().unwrap();
        let mut bytes = file.take_groups().unwrap();
        bytes.extend(file.footer().unwrap());
        bytes
    }

    fn read_file(bytes: &[u8]) -> Result<HalfBatch, HalfError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut halves = Halves::of_file(file.path())?;
        let mut out = HalfBatch::default();
        while halves.read(&mut out)? {}
        Ok(out)
    }

    /// Changes `bytes` at three places, others with each call.
    fn damage(bytes: &mut [u8], state: &mut u32) {
        for _ in 0..3 {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = *state as usize % bytes.len();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = (*state >> 24) as u8;
            }
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_panic() {
        let whole = parquet(50);
        assert_eq!(read_file(&whole).unwrap().len(), 50);
        for end in (0..whole.len()).step_by(7) {
            assert!(read_file(whole.get(..end).unwrap()).is_err(), "{end}");
        }
        // The footer, whose length stands before the last four bytes, tells all places.
        let length: [u8; 4] = *whole.get(whole.len() - 8..).unwrap().first_chunk().unwrap();
        let footer = whole.len() - 8 - u32::from_le_bytes(length) as usize;
        let mut state = 1;
        for round in 0..10_000 {
            let mut bytes = whole.clone();
            let from = if round % 2 == 0 { footer } else { 0 };
            damage(bytes.get_mut(from..).unwrap(), &mut state);
            let _either = read_file(&bytes);
        }
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let whole = stream(50);
        for end in 0..whole.len() {
            assert!(read(whole.get(..end).unwrap().to_vec()).is_err(), "{end}");
        }
        let mut state = 1;
        for _ in 0..10_000 {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut state);
            let _either = read_any(bytes);
        }
        let error = read(whole.get(..whole.len() - 100).unwrap().to_vec()).unwrap_err();
        assert!(error.to_string().contains("the stream ends in"), "{error}");
        let error = read(whole.get(..whole.len() - 8).unwrap().to_vec()).unwrap_err();
        assert!(
            error.to_string().contains("before the mark of its end"),
            "{error}"
        );
        let mut twice = whole.clone();
        twice.extend_from_slice(&whole);
        let error = read(twice).unwrap_err().to_string();
        assert!(error.contains("something follows the end"), "{error}");
        assert!(matches!(read(b"{}".to_vec()), Err(HalfError::Form(_))));
        assert!(matches!(
            read(b"PAR1....".to_vec()),
            Err(HalfError::Form(_))
        ));
    }

    #[test]
    fn rows_are_in_order_over_all_inputs() {
        let rest = |halves: &mut Halves| {
            let mut out = HalfBatch::default();
            while halves.read(&mut out).unwrap() {}
        };
        let mut first = Halves::of_stream(Cursor::new(stream(50))).unwrap();
        rest(&mut first);
        let mut again = Halves::of_stream(Cursor::new(stream(50))).unwrap();
        again.follow(&first);
        rest(&mut again);
        assert_eq!(again.disordered(), Some((1, 0)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let columns: Vec<(&str, ArrayRef)> = NAMES
            .iter()
            .map(|name| {
                let array: ArrayRef = match *name {
                    "src_ip" | "dst_ip" => Arc::new(StringArray::from(vec!["10.0.0.1"])),
                    "payload" => Arc::new(arrow_array::BinaryArray::from(vec![&b""[..]])),
                    _ => Arc::new(Int32Array::from(vec![1])),
                };
                (*name, array)
            })
            .collect();
        let row = |name: &str, array: ArrayRef| {
            let columns = columns.iter().map(|(other, whole)| {
                let array = if *other == name { &array } else { whole };
                (*other, Arc::clone(array))
            });
            let batch = RecordBatch::try_from_iter_with_nullable(
                columns.map(|(name, array)| (name, array, true)),
            )
            .unwrap();
            let of = Columns::of(&batch).map_err(|error| error.to_string())?;
            of.row(0)
                .map_err(|(column, what)| format!("{column} {what}"))
        };
        assert!(row("", Arc::new(Int32Array::from(vec![1]))).is_ok());
        for (name, array, says) in [
            (
                "seq",
                Arc::new(Int32Array::from(vec![-1])) as ArrayRef,
                "column `seq`",
            ),
            ("seq", Arc::new(Int32Array::from(vec![None])), "seq is null"),
            (
                "src_port",
                Arc::new(Int32Array::from(vec![70_000])),
                "src_port is 70000",
            ),
            (
                "dst_ip",
                Arc::new(StringArray::from(vec!["x"])),
                "dst_ip is `x`",
            ),
            (
                "payload",
                Arc::new(Int32Array::from(vec![1])),
                "column `payload` is Int32",
            ),
            (
                "captured_len",
                Arc::new(Int32Array::from(vec![2])),
                "captured_len is 2",
            ),
        ] {
            let error = row(name, array).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
