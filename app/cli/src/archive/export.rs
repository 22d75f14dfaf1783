//! `archive export-rrd`: round-robin files, by rrdtool or rrdcached.
//!
//! A file of rrdtool takes values in the order of time, so each moment is told once: by the finest
//! rows that hold everything measured then, by coarser ones before.

use linkweir_sink::archive::ArchiveFile;
use linkweir_sink::human::counted;
use linkweir_sink::rrd::{Past, RrdFile, RrdStore};
use linkweir_sketch::archive::{ReadAt, ReadFault, Reader, Reading, RowPlace};

use super::args::ExportArgs;
use super::select::{View, matching, views};
use super::{conclude, open, unreadable, wrong};
use crate::exit::{Exit, Wrong, warn};

const SECOND_NS: u64 = 1_000_000_000;

type Statistic = (&'static str, fn(&Reading) -> Option<f64>);

/// What is written of a distribution; of counters and gauges the first three.
const STATISTICS: [Statistic; 8] = [
    ("avg", |reading| reading.avg),
    ("min", |reading| reading.min),
    ("max", |reading| reading.max),
    ("stdev", |reading| reading.std),
    ("hit", |reading| Some(reading.count as f64)),
    ("prc50", |reading| reading.p50),
    ("prc95", |reading| reading.p95),
    ("prc99", |reading| reading.p99),
];

/// A row that may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    level: usize,
    place: RowPlace,
    start_ns: u64,
    end_ns: u64,
    /// Steps that it holds.
    steps: u32,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    let mut reader = open(&args.file)?;
    let all = views(reader.catalogue());
    let chosen = matching(&all, &args.series).map_err(wrong)?;
    if !reader.ladder().step_ns().is_multiple_of(SECOND_NS) {
        return Err(wrong(format!(
            "{}: rrdtool counts in seconds, and the steps of this archive are {}",
            args.file.display(),
            reader.ladder().name(0)
        )));
    }
    // Before the work of reading: what cannot be written is known at once.
    let mut store = RrdStore::open(&args.destination).map_err(|error| match error {
        linkweir_engine::SinkError::Refused { .. } => anyhow::anyhow!(Wrong(error.to_string())),
        other => other.into(),
    })?;
    let fault = |fault: ReadFault| unreadable(&args.file, &fault);
    let (levels, mut missed) = rows(&mut reader).map_err(fault)?;
    let rows = finest(levels);
    let mut values = Values::new(&chosen, rows.len());
    missed += values.read(&mut reader, &chosen, &rows).map_err(fault)?;
    values.write(&mut store, &reader, &chosen, &rows);
    store.finish();
    let losses = store.losses();
    let exit = conclude(&args.file, missed);
    if losses.count == 0 && losses.first.is_none() {
        return Ok(exit);
    }
    let reason = losses.first.unwrap_or_default();
    warn(&format!(
        "{} not written: {reason}",
        counted(losses.count, "value")
    ));
    Ok(Exit::DataLost)
}

/// The rows of each level, and how many were damaged.
fn rows<S: ReadAt>(reader: &mut Reader<S>) -> Result<(Vec<Vec<Row>>, u64), ReadFault> {
    let mut buffer = reader.buffer();
    let mut levels = Vec::new();
    let mut missed = 0;
    for level in 0..reader.ladder().levels().len() {
        let span_ns = reader.ladder().span_ns(level);
        let mut rows = Vec::new();
        for place in reader.rows(level)? {
            if !reader.row(level, place, &mut buffer)? {
                missed += 1;
                continue;
            }
            let start_ns = place.number.saturating_mul(span_ns);
            rows.push(Row {
                level,
                place,
                start_ns,
                end_ns: start_ns.saturating_add(span_ns),
                steps: buffer.steps(),
            });
        }
        levels.push(rows);
    }
    Ok((levels, missed))
}

/// The finest rows that tell everything, in the order of time: a coarser row stands where finer ones
/// hold fewer steps than it does.
fn finest(levels: Vec<Vec<Row>>) -> Vec<Row> {
    let mut levels = levels.into_iter();
    let mut chosen = levels.next().unwrap_or_default();
    for coarser in levels {
        let mut merged = Vec::with_capacity(chosen.len());
        let mut finer = chosen.into_iter().peekable();
        for row in coarser {
            while let Some(before) = finer.next_if(|one| one.start_ns < row.start_ns) {
                merged.push(before);
            }
            let from = merged.len();
            let mut steps = 0_u64;
            while let Some(inside) = finer.next_if(|one| one.start_ns < row.end_ns) {
                steps += u64::from(inside.steps);
                merged.push(inside);
            }
            if steps < u64::from(row.steps) {
                merged.truncate(from);
                merged.push(row);
            }
        }
        merged.extend(finer);
        chosen = merged;
    }
    chosen
}

/// What the files will hold: of each view and statistic the values of the rows.
struct Values {
    columns: Vec<Vec<Option<f64>>>,
}

fn statistics(view: &View) -> impl Iterator<Item = Statistic> {
    let count = if view.has_percentiles { 8 } else { 3 };
    STATISTICS.into_iter().take(count)
}

impl Values {
    fn new(views: &[View], rows: usize) -> Self {
        let count = views.iter().map(|view| statistics(view).count()).sum();
        Self {
            columns: vec![Vec::with_capacity(rows); count],
        }
    }

    /// Reads all rows; returns how many had gone meanwhile.
    fn read<S: ReadAt>(
        &mut self,
        reader: &mut Reader<S>,
        views: &[View],
        rows: &[Row],
    ) -> Result<u64, ReadFault> {
        let mut buffer = reader.buffer();
        let mut missed = 0;
        for row in rows {
            let is_there = reader.row(row.level, row.place, &mut buffer)?;
            missed += u64::from(!is_there);
            let mut columns = self.columns.iter_mut();
            for view in views {
                let reading = is_there
                    .then(|| reader.reading(row.level, &buffer, view.place))
                    .flatten()
                    .map(|reading| view.of(&reading));
                for ((_, value), column) in statistics(view).zip(&mut columns) {
                    column.push(reading.as_ref().and_then(value));
                }
            }
        }
        Ok(missed)
    }

    fn write(
        &self,
        store: &mut RrdStore,
        reader: &Reader<ArchiveFile>,
        views: &[View],
        rows: &[Row],
    ) {
        let Some(first) = rows.first() else {
            return;
        };
        let ladder = reader.ladder();
        let archives: Vec<(u32, u32)> = ladder
            .levels()
            .iter()
            .map(|level| (level.steps, level.rows))
            .collect();
        let coarsest = ladder.span_ns(archives.len().saturating_sub(1));
        let mut columns = self.columns.iter();
        for view in views {
            for ((statistic, _), column) in statistics(view).zip(&mut columns) {
                let name = format!("{}.{statistic}.rrd", view.name);
                store.create(&RrdFile {
                    name: &name,
                    source: "value",
                    start_s: first.start_ns / SECOND_NS,
                    step_s: ladder.step_ns() / SECOND_NS,
                    // One value stands for a whole row; gaps are told.
                    heartbeat_s: (coarsest / SECOND_NS).saturating_mul(2),
                    archives: &archives,
                });
                store.update(&name, &told(rows, column), Past::LeftOut);
            }
            store.commit();
        }
    }
}

/// The values with the ends of their rows, seconds; where rows are missing, that nothing is known.
fn told(rows: &[Row], column: &[Option<f64>]) -> Vec<(u64, Option<f64>)> {
    let mut told = Vec::with_capacity(rows.len());
    let mut end_ns = rows.first().map_or(0, |row| row.start_ns);
    for (row, value) in rows.iter().zip(column) {
        if end_ns < row.start_ns {
            told.push((row.start_ns / SECOND_NS, None));
        }
        told.push((row.end_ns / SECOND_NS, *value));
        end_ns = row.end_ns;
    }
    told
}
