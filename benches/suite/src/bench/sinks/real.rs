//! Bytes of a record of real captures.
//!
//! The directory beside the checkout, or the one that `LINKWEIR_CAPTURES` names, as for the tests. Most
//! captures there have few records, so all of them are one trace; those with enough are rows of their own.

use super::super::harness::{Column, Target, digits, print};
use super::whole;
use crate::shell::grouped;
use anyhow::{Context as _, Result};
use linkweir_testkit::real_captures;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of an HTTP record of a real capture in Parquet, at most.
const PARQUET_BYTES: f64 = 60.0;
/// Records of a capture that is a row: with fewer, what a file needs besides its records is most of it.
const ENOUGH: u64 = 300;

/// What the records of a trace take.
#[derive(Debug)]
pub(super) struct Size {
    name: String,
    records: u64,
    /// Bytes as JSON lines, Parquet and Arrow.
    bytes: [u64; 3],
}

impl Size {
    /// Bytes of a record in a format.
    fn per_record(&self, format: usize) -> String {
        let bytes = self.bytes.get(format).copied().unwrap_or_default();
        digits(bytes as f64 / self.records as f64, 1)
    }

    fn parquet_per_record(&self) -> f64 {
        let [_, parquet, _] = self.bytes;
        parquet as f64 / self.records as f64
    }
}

const FORMATS: [&str; 3] = ["jsonl", "parquet", "arrow"];

const COLUMNS: [Column<Size>; 5] = [
    ("capture", |size| size.name.clone()),
    ("records", |size| grouped(size.records)),
    ("jsonl", |size| size.per_record(0)),
    ("parquet", |size| size.per_record(1)),
    ("arrow", |size| size.per_record(2)),
];

/// The sizes, all captures as one trace first; none where there are no captures.
///
/// # Errors
/// The records could not be written.
pub(super) fn sizes(linkweir: &Path, dir: &Path) -> Result<Vec<Size>> {
    let captures = real_captures::all();
    if captures.is_empty() {
        println!(
            "\n** REAL CAPTURES SKIPPED: none here; LINKWEIR_CAPTURES names a directory of them."
        );
        return Ok(Vec::new());
    }
    let mut useful = Vec::new();
    let mut sizes = Vec::new();
    for capture in captures {
        let records = records(linkweir, &capture)?;
        if records >= ENOUGH {
            let name = capture.file_name().unwrap_or_default().to_string_lossy();
            let bytes = bytes(linkweir, std::slice::from_ref(&capture), dir)?;
            sizes.push(Size {
                name: name.into_owned(),
                records,
                bytes,
            });
        }
        if records > 0 {
            useful.push((capture, records));
        }
    }
    let records = useful.iter().map(|(_, records)| records).sum();
    let paths: Vec<PathBuf> = useful.into_iter().map(|(capture, _)| capture).collect();
    let name = format!("{} captures as one trace", paths.len());
    let bytes = bytes(linkweir, &paths, dir)?;
    sizes.insert(
        0,
        Size {
            name,
            records,
            bytes,
        },
    );
    print("bytes of a record of real captures", &COLUMNS, &sizes);
    Ok(sizes)
}

/// Records of one capture; none where it is not a capture or ends in the middle of nothing.
fn records(linkweir: &Path, capture: &Path) -> Result<u64> {
    let ran = Command::new(linkweir)
        .args(["http", "-q", "--format", "jsonl", "-w", "-", "-r"])
        .arg(capture)
        .output()
        .context("run linkweir")?;
    Ok(ran.stdout.iter().filter(|byte| **byte == b'\n').count() as u64)
}

fn bytes(linkweir: &Path, captures: &[PathBuf], dir: &Path) -> Result<[u64; 3]> {
    let mut bytes = [0; 3];
    for (bytes, format) in bytes.iter_mut().zip(FORMATS) {
        let path = dir.join(format!("real.{format}"));
        whole::write(linkweir, captures, &path)?;
        *bytes = std::fs::metadata(&path)?.len();
        std::fs::remove_file(&path)?;
    }
    Ok(bytes)
}

/// Parquet's size, of the first trace: all captures.
pub(super) fn size_target(sizes: &[Size]) -> Option<Target> {
    let first = sizes.first()?;
    let bytes = first.parquet_per_record();
    Some(Target::new(
        format!("parquet: at most {PARQUET_BYTES} bytes per http record of real captures"),
        format!("{bytes:.1} bytes ({})", first.name),
        bytes <= PARQUET_BYTES,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_of_all_captures() {
        let size = |parquet| Size {
            name: "all".to_owned(),
            records: 100,
            bytes: [50_000, parquet, 30_000],
        };
        assert!(size_target(&[size(6000), size(9000)]).unwrap().is_reached);
        assert!(!size_target(&[size(6001)]).unwrap().is_reached);
        assert!(size_target(&[]).is_none());
    }
}
