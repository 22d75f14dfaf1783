//! The rows of the table: programs, how each is run, and how many flows it finds.

use super::super::harness::{Row, count, row};
use super::super::programs::{Over, Ran, over};
use crate::shell;
use anyhow::{Result, bail};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

/// `linkweir flows` with these words.
const fn ours(args: &'static [&'static str]) -> Over {
    over("linkweir", args).found(of_linkweir)
}

/// All measurements, no output.
#[rustfmt::skip]
pub(super) const TRACK: Over = ours(&[
    "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}", "--no-output",
]);

/// The same into the round-robin archive.
#[rustfmt::skip]
const ARCHIVE: Over = ours(&[
    "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}", "--no-output",
    "--archive", "{out}",
]);

/// The same into files of `RRDtool`, as Tstat's.
#[rustfmt::skip]
const RRD: Over = ours(&[
    "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}", "--no-output",
    "--rrd", "{out}",
]);

/// What Table I of the paper compares.
pub(super) static OUTPUTS: [Row<Over>; 3] = [
    row("none", "none", TRACK),
    row("archive", "--archive", ARCHIVE),
    row("rrd", "--rrd", RRD),
];

#[rustfmt::skip]
pub(super) static ROWS: [Row<Over>; 11] = [
    row("walk", "pcapwalk (the limit)", over("pcapwalk", &["{in}"])),
    // Reads and writes what it read to nowhere.
    row("tcpdump", "tcpdump -w /dev/null (the floor)",
        over("tcpdump", &["-r", "{in}", "-w", "/dev/null"])),
    row("track", "linkweir flows --no-output", TRACK),
    row("jsonl", "linkweir flows --format jsonl", ours(&[
        "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}",
        "--format", "jsonl", "-w", "{out}",
    ])),
    row("archive", "linkweir flows --no-output --archive", ARCHIVE),
    row("rrd", "linkweir flows --no-output --rrd", RRD),
    // Tstat's tree of logs and histograms.
    row("logs", "linkweir flows --format tstat", ours(&[
        "flows", "-q", "--overwrite", "-r", "{in}", "--summary", "{summary}",
        "--format", "tstat", "-w", "{out}",
    ])),
    row("argus", "argus", over("argus", &["-X", "-r", "{in}", "-w", "{out}"])
        .found(records_of_argus)
        .least(&[("few big flows", 2.0), ("many flows", 2.0)])),
    row("tcptrace", "tcptrace -l -r", over("tcptrace", &["-n", "-l", "-r", "{in}"])
        .slow()
        .found(connections_of_tcptrace)
        .least(&[("few big flows", 5.0), ("many flows", 5.0)])),
    // Its default of 8192 flows would cut them.
    row("softflowd", "softflowd", over("softflowd", &["-r", "{in}", "-m", "4000000", "-d"])
        .slow()
        .found(flows_of_softflowd)),
    row("nfpcapd", "nfpcapd", over("nfpcapd", &["-r", "{in}", "-w", "{out}"])
        .slow()
        .into_directory()
        .found(flows_of_nfdump)),
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
