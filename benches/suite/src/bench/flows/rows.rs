//! The rows of the table: programs, how each is run, and how many flows it finds.

use super::super::harness::{Row, count, row};
use super::super::programs::{Over, PLAIN, Ran};
use crate::shell;
use anyhow::{Result, bail};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

/// `linkweir flows` with these words.
const fn ours(args: &'static [&'static str]) -> Over {
    Over {
        program: "linkweir",
        args,
        found: of_linkweir,
        ..PLAIN
    }
}

/// All measurements, no output.
pub(super) const TRACK: Over = ours(&TRACK_WORDS);

#[rustfmt::skip]
const TRACK_WORDS: [&str; 8] = [
    "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}", "--no-output",
];
#[rustfmt::skip]
const ARCHIVE_WORDS: [&str; 10] = [
    "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}", "--no-output",
    "--archive", "{out}",
];
#[rustfmt::skip]
const LOGS_WORDS: [&str; 11] = [
    "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}",
    "--format", "tstat", "-w", "{out}",
];

#[rustfmt::skip]
pub(super) static ROWS: [Row<Over>; 9] = [
    row("walk", "pcapwalk (the limit)", Over { program: "pcapwalk", args: &["{in}"], ..PLAIN }),
    // Reads and writes what it read to nowhere.
    row(
        "tcpdump",
        "tcpdump -w /dev/null (the floor)",
        Over {
            program: "tcpdump",
            args: &["-r", "{in}", "-w", "/dev/null"],
            ..PLAIN
        },
    ),
    row("track", "linkweir flows --no-output", TRACK),
    row("archive", "linkweir flows --no-output --archive", ours(&ARCHIVE_WORDS)),
    // Tstat's tree of logs and histograms.
    row("logs", "linkweir flows --format tstat", ours(&LOGS_WORDS)),
    row(
        "argus",
        "argus",
        Over {
            program: "argus",
            args: &["-X", "-r", "{in}", "-w", "{out}"],
            found: records_of_argus,
            least: &[("few big flows", 2.0), ("many flows", 2.0)],
            ..PLAIN
        },
    ),
    row(
        "tcptrace",
        "tcptrace -l -r",
        Over {
            program: "tcptrace",
            args: &["-n", "-l", "-r", "{in}"],
            is_slow: true,
            found: connections_of_tcptrace,
            least: &[("few big flows", 5.0), ("many flows", 5.0)],
            ..PLAIN
        },
    ),
    row(
        "softflowd",
        "softflowd",
        Over {
            program: "softflowd",
            // Its default of 8192 flows would cut them.
            args: &["-r", "{in}", "-m", "4000000", "-d"],
            is_slow: true,
            found: flows_of_softflowd,
            ..PLAIN
        },
    ),
    row(
        "nfpcapd",
        "nfpcapd",
        Over {
            program: "nfpcapd",
            args: &["-r", "{in}", "-w", "{out}"],
            is_slow: true,
            into_directory: true,
            found: flows_of_nfdump,
            ..PLAIN
        },
    ),
];

fn connections_of_tcptrace(ran: &Ran<'_>) -> Result<Option<u64>> {
    number_in(&ran.stdout(), |line| {
        let (count, _) = line.split_once(" TCP connection")?;
        count.parse().ok()
    })
}

/// It reports its flows on both outputs, by how it was built.
fn flows_of_softflowd(ran: &Ran<'_>) -> Result<Option<u64>> {
    let expired = |line: &str| -> Option<u64> {
        let rest = line.strip_prefix("Flows expired: ")?;
        rest.split(' ').next()?.parse().ok()
    };
    let said = number_in(&ran.stdout(), expired)?;
    Ok(said.or(number_in(&ran.dir.join("stderr"), expired)?))
}

/// Flows by the summary, which must have seen every packet.
fn of_linkweir(ran: &Ran<'_>) -> Result<Option<u64>> {
    let summary = serde_json::from_slice(&std::fs::read(ran.summary())?)?;
    let seen = count(&summary, "packets")?;
    if seen != ran.packets {
        bail!("linkweir saw {seen} of {} packets", ran.packets);
    }
    let of = |name| count(&summary, &format!("flows/{name}"));
    Ok(Some(
        of("tcp_complete")? + of("tcp_incomplete")? + of("udp")?,
    ))
}

/// Records of argus: at least one a flow, more of those that last.
fn records_of_argus(ran: &Ran<'_>) -> Result<Option<u64>> {
    let Some(ra) = shell::find("ra") else {
        return Ok(None);
    };
    let mut command = Command::new(ra);
    command
        .args(["-n", "-r"])
        .arg(ran.output())
        .args(["-", "tcp", "or", "udp"]);
    let lines = shell::output(&mut command)?;
    let lines = lines.iter().filter(|byte| **byte == b'\n').count();
    Ok(Some(lines as u64))
}

/// Flows of one direction, as nfdump counts them.
fn flows_of_nfdump(ran: &Ran<'_>) -> Result<Option<u64>> {
    let Some(nfdump) = shell::find("nfdump") else {
        return Ok(None);
    };
    let mut command = Command::new(nfdump);
    command.arg("-R").arg(ran.output()).arg("-I");
    let text = String::from_utf8_lossy(&shell::output(&mut command)?).into_owned();
    let count = text.lines().find_map(|line| line.strip_prefix("Flows: "));
    Ok(count.and_then(|count| count.trim().parse().ok()))
}

/// What the first line of a file gives that gives a number.
fn number_in(file: &Path, number: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>> {
    let file = BufReader::new(std::fs::File::open(file)?);
    for line in file.lines() {
        if let Some(number) = number(&line?) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}
