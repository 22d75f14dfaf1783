//! `archive dump`: a table.

use std::io::{self, Write};

use anyhow::anyhow;
use linkweir_sketch::archive::{ReadFault, Reader, Reading};
use linkweir_tstat::archive::ArchiveFile;

use super::args::{DumpArgs, Table};
use super::select::{View, levels, matching, views};
use super::spread;
use super::{conclude, in_order, keeps, open, unreadable, wrong};
use crate::exit::Exit;
use crate::files;
use crate::units::Between;

const HEADING: &str =
    "series,unit,level,time,start_ns,span_ns,steps,count,sum,avg,min,max,std,p50,p95,p99";

/// Why a dump ends early.
enum Fault {
    Read(ReadFault),
    Write(io::Error),
}

impl From<ReadFault> for Fault {
    fn from(fault: ReadFault) -> Self {
        Self::Read(fault)
    }
}

impl From<io::Error> for Fault {
    fn from(fault: io::Error) -> Self {
        Self::Write(fault)
    }
}

pub(super) fn run(args: &DumpArgs) -> anyhow::Result<Exit> {
    in_order(args.from, args.to)?;
    keeps(&args.file, &args.output)?;
    let mut out = files::document_at(&args.output, args.files.existing(false))?;
    let mut reader = open(&args.file)?;
    let all = views(reader.catalogue());
    let chosen = matching(&all, &args.series).map_err(wrong)?;
    let levels = levels(reader.ladder(), &args.level).map_err(wrong)?;
    let between = (
        args.from.map_or(0, |moment| moment.0),
        args.to.map_or(u64::MAX, |moment| moment.0),
    );
    let written = if args.list {
        let listed = list(&mut out, &reader, &chosen);
        listed.map(|()| 0).map_err(Fault::Write)
    } else if args.distribution {
        let against = args.against.map(|Between(from, to)| (from, to));
        let times: Vec<(u64, u64)> = [Some(between), against].into_iter().flatten().collect();
        distributions(&mut out, args.format, &mut reader, &chosen, &times)
    } else {
        let format = args.format;
        table(&mut out, format, &mut reader, &chosen, &levels, between)
    };
    match written {
        Ok(missed) => {
            out.finish()?;
            Ok(conclude(&args.file, missed))
        }
        Err(Fault::Write(error)) => Err(anyhow!(error)),
        Err(Fault::Read(fault)) => Err(unreadable(&args.file, &fault)),
    }
}

fn list(out: &mut dyn Write, reader: &Reader<ArchiveFile>, views: &[View]) -> io::Result<()> {
    let ladder = reader.ladder();
    for (at, level) in ladder.levels().iter().enumerate() {
        writeln!(out, "level {} rows {}", ladder.name(at), level.rows)?;
    }
    for view in views {
        let kind = if view.has_percentiles {
            "distribution"
        } else {
            "count"
        };
        writeln!(out, "series {} unit {} kind {kind}", view.name, view.unit)?;
    }
    Ok(())
}

fn table(
    out: &mut dyn Write,
    format: Table,
    reader: &mut Reader<ArchiveFile>,
    views: &[View],
    levels: &[usize],
    between: (u64, u64),
) -> Result<u64, Fault> {
    if format == Table::Csv {
        writeln!(out, "{HEADING}")?;
    }
    let names: Vec<String> = {
        let ladder = reader.ladder();
        (0..ladder.levels().len())
            .map(|at| ladder.name(at))
            .collect()
    };
    // One reading a place: views of the same place show it one after the other.
    let mut places: Vec<usize> = views.iter().map(|view| view.place).collect();
    places.dedup();
    reader.readings(&places, levels, between, |reading| {
        let level = names.get(reading.level).map_or("", String::as_str);
        for view in views.iter().filter(|view| view.place == reading.series) {
            let shown = view.of(reading);
            match format {
                Table::Csv => csv(out, view, level, &shown)?,
                Table::Jsonl => jsonl(out, view, level, &shown)?,
            }
        }
        Ok(())
    })
}

/// A line per series and bucket, for each time.
fn distributions(
    out: &mut dyn Write,
    format: Table,
    reader: &mut Reader<ArchiveFile>,
    views: &[View],
    times: &[(u64, u64)],
) -> Result<u64, Fault> {
    spread::heading(out, format)?;
    // What is compared is measured in rows of the same length.
    let mut level = 0;
    for (from, _) in times {
        level = level.max(reader.level_since(*from)?);
    }
    let name = reader.ladder().name(level);
    let places: Vec<usize> = views.iter().map(|view| view.place).collect();
    let mut missed = 0;
    for time in times {
        let spread = reader.spread(&places, level, *time)?;
        missed += spread.missed;
        for (view, values) in views.iter().zip(&spread.series) {
            spread::lines(out, format, view, &name, &spread, values)?;
        }
    }
    Ok(missed)
}

/// The numbers of a line that may be missing, by name.
fn numbers(reading: &Reading) -> [(&'static str, Option<f64>); 7] {
    [
        ("avg", reading.avg),
        ("min", reading.min),
        ("max", reading.max),
        ("std", reading.std),
        ("p50", reading.p50),
        ("p95", reading.p95),
        ("p99", reading.p99),
    ]
}

fn time(reading: &Reading) -> humantime::Rfc3339Timestamp {
    let since = std::time::Duration::from_nanos(reading.start_ns);
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since)
}

fn csv(out: &mut dyn Write, view: &View, level: &str, reading: &Reading) -> io::Result<()> {
    write!(
        out,
        "{},{},{level},{},{},{},{},{},{}",
        view.name,
        view.unit,
        time(reading),
        reading.start_ns,
        reading.span_ns,
        reading.steps,
        reading.count,
        reading.sum
    )?;
    for (_, number) in numbers(reading) {
        match number {
            Some(number) => write!(out, ",{}", rounded(number))?,
            None => out.write_all(b",")?,
        }
    }
    out.write_all(b"\n")
}

fn jsonl(out: &mut dyn Write, view: &View, level: &str, reading: &Reading) -> io::Result<()> {
    // Names and units have no letter that JSON would escape: the archive was refused otherwise.
    write!(
        out,
        "{{\"series\":\"{}\",\"unit\":\"{}\",\"level\":\"{level}\",\"time\":\"{}\",\"start_ns\":{},\
         \"span_ns\":{},\"steps\":{},\"count\":{},\"sum\":{}",
        view.name,
        view.unit,
        time(reading),
        reading.start_ns,
        reading.span_ns,
        reading.steps,
        reading.count,
        reading.sum
    )?;
    for (name, number) in numbers(reading) {
        if let Some(number) = number {
            write!(out, ",\"{name}\":{}", rounded(number))?;
        }
    }
    out.write_all(b"}\n")
}

/// Three decimals are more than a bucket knows; whole numbers have none.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
