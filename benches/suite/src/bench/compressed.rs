//! Compressed captures: `linkweir` beside the decompressor alone, by the clock and with all cores: what decodes has a thread
//! of its own.

use super::harness::{Row, Runs, Target, digits, print, remove, rounds, row, text};
use crate::shell;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Of the speed of the decompressor alone.
const OF_DECODER: f64 = 0.95;

/// A command of `linkweir` over a capture compressed by a program.
#[derive(Debug)]
struct Over {
    program: &'static str,
    ending: &'static str,
    command: &'static str,
}

const fn over(program: &'static str, ending: &'static str, command: &'static str) -> Over {
    Over {
        program,
        ending,
        command,
    }
}

#[rustfmt::skip]
static ROWS: [Row<Over>; 4] = [
    row("http-zstd", "linkweir http, .pcap.zst", over("zstd", "zst", "http")),
    row("flows-zstd", "linkweir flows, .pcap.zst", over("zstd", "zst", "flows")),
    row("http-gzip", "linkweir http, .pcap.gz", over("gzip", "gz", "http")),
    row("flows-gzip", "linkweir flows, .pcap.gz", over("gzip", "gz", "flows")),
];

/// Seconds on the clock.
#[derive(Debug)]
struct Seconds {
    ours: f64,
    decoder: f64,
}

/// Compresses `capture` in `dir`, reads it, prints what that took, and gives the targets.
///
/// # Errors
/// A program failed.
pub(super) fn compare(
    linkweir: &Path,
    capture: &Path,
    dir: &Path,
    runs: usize,
) -> Result<Vec<Target>> {
    let packed = |how: &Over| dir.join(format!("packed.pcap.{}", how.ending));
    let there = || {
        ROWS.iter()
            .filter(|row| shell::find(row.how.program).is_some())
    };
    for row in there() {
        pack(row.how.program, capture, &packed(&row.how))?;
    }
    let output = text(&dir.join("output"))?;
    let all = rounds("compressed", there(), runs, |_, row, _| {
        let packed = text(&packed(&row.how))?;
        let decoder = elapsed(Path::new(row.how.program), &["-t", "-q", &packed])?;
        let args = [
            row.how.command,
            "-q",
            "--overwrite",
            "-r",
            &packed,
            "--format",
            "text",
            "-w",
            &output,
        ];
        let ours = elapsed(linkweir, &args)?;
        Ok(Some(Seconds { ours, decoder }))
    })?;
    for row in there() {
        remove(&packed(&row.how))?;
    }
    type Cells<'a> = (&'a str, &'a Runs<Seconds>);
    #[rustfmt::skip]
    let columns: [super::harness::Column<Cells<'_>>; 4] = [
        ("command", |(name, _)| (*name).to_owned()),
        ("s", |(_, own)| digits(own.median(|run| run.ours), 3)),
        ("decompressor alone, s", |(_, own)| digits(own.median(|run| run.decoder), 3)),
        ("of its speed", |(_, own)| digits(own.median(Seconds::of_decoder), 2)),
    ];
    let cells = all.iter().map(|series| (series.row.name, &series.runs));
    print("compressed captures, by the clock", &columns, cells);
    Ok(ROWS
        .iter()
        .map(|row| {
            let what = format!(
                "{}: at least {OF_DECODER} of the speed of {} -t",
                row.name, row.how.program
            );
            let own = all.iter().find(|series| series.row.word == row.word);
            own.map_or_else(
                || Target::not_measured(what.clone()),
                |own| {
                    let part = own.median(Seconds::of_decoder);
                    Target::new(what.clone(), digits(part, 2), part >= OF_DECODER)
                },
            )
        })
        .collect())
}

impl Seconds {
    fn of_decoder(&self) -> f64 {
        self.decoder / self.ours
    }
}

fn pack(program: &str, capture: &Path, packed: &PathBuf) -> Result<()> {
    let mut pack = Command::new(program);
    pack.arg("-c").arg("-q").arg(capture);
    pack.stdout(std::fs::File::create(packed)?);
    if !pack.status()?.success() {
        bail!("{program} failed");
    }
    Ok(())
}

fn elapsed(program: &Path, args: &[&str]) -> Result<f64> {
    let begin = Instant::now();
    let mut run = Command::new(program);
    if !run.args(args).stdout(Stdio::null()).status()?.success() {
        bail!("{} {} failed", program.display(), args.join(" "));
    }
    Ok(begin.elapsed().as_secs_f64())
}
