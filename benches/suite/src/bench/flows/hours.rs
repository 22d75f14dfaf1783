//! The paper's Table I on its terms: hours of packet time at the rate of a backbone, in steps of five
//! minutes, packets of 80 bytes, 54 % of the connections in one direction only; without an output, with
//! the archive, and with files of `RRDtool`.
//!
//! The packets come through a pipe as they are made, on another core: six hours of them are more than
//! a disk holds.

use super::super::captures::Capture;
use super::super::harness::{Column, FEEDER_CORE, digits, find, megabytes, pin, print, rounds};
use super::super::programs::{Programs, Run, Series, cpu_s};
use super::growth::ONE_WAY_PER_CENT;
use super::rows::OUTPUTS;
use crate::Outcome;
use crate::shell::grouped;
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::many_flows::ManyFlows;
use std::io::{BufWriter, ErrorKind};
use std::process::{Command, Stdio};

/// Packets a second of the paper's trace of GARR, on average.
pub(super) const RATE: u32 = 36_000;
/// Connections at once.
const CONCURRENT: u32 = 20_000;
/// Seconds of a step.
const STEP_S: f64 = 300.0;
const SNAPLEN: u32 = 80;

/// So many packets a second for so many hours.
fn shape(hours: u32, rate: u32) -> ManyFlows {
    let some = ManyFlows {
        flows: 200,
        concurrent: CONCURRENT,
        one_way_per_cent: ONE_WAY_PER_CENT,
        snaplen: SNAPLEN,
        ..ManyFlows::default()
    };
    // A packet that the capture does not have takes its time too.
    let each = u64::from(6 + 4 * some.exchanges);
    let rate = u64::from(rate.max(1)) * each * u64::from(some.flows);
    let gap_us = ((1_000_000 * some.packets() + rate / 2) / rate).max(1);
    let flows = u64::from(hours) * 3_600_000_000 / gap_us / each;
    ManyFlows {
        flows: u32::try_from(flows).unwrap_or(u32::MAX).max(1),
        gap_us: u32::try_from(gap_us).unwrap_or(u32::MAX),
        ..some
    }
}

/// `made HOURS RATE`: the packets, to standard output.
pub(crate) fn made(args: &[String]) -> Outcome {
    let [hours, rate] = args else {
        bail!("made HOURS RATE")
    };
    let shape = shape(hours.parse()?, rate.parse()?);
    pin(FEEDER_CORE)?;
    let output = std::io::stdout().lock();
    match shape.write(BufWriter::with_capacity(1 << 18, output)) {
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(true),
        written => Ok(written.map(|()| true)?),
    }
}

/// Measures and prints.
pub(super) fn run(programs: &Programs, hours: u32, rate: u32, runs: usize) -> Outcome {
    let shape = shape(hours, rate);
    let piped = Capture {
        path: "-".into(),
        packets: shape.packets(),
        wire_bytes: 0,
        requests: 0,
        responses: 0,
    };
    let one = |how| -> Result<Run> {
        let mut feeder = Command::new(std::env::current_exe()?)
            .arg("made")
            .args([hours, rate].map(|number| number.to_string()))
            .stdout(Stdio::piped())
            .spawn()
            .context("run the feeder")?;
        let pipe = feeder.stdout.take().context("its output")?;
        let run = programs.run(how, &piped, pipe.into(), &[]);
        if !feeder.wait()?.success() {
            bail!("the feeder failed");
        }
        run
    };
    let all = rounds("hours of packet time", &OUTPUTS, runs, |_, row, _| {
        one(&row.how).map(Some)
    })?;
    table(&shape, &all);
    Ok(true)
}

fn table(shape: &ManyFlows, all: &[Series]) {
    let seconds = shape.seconds();
    let steps = (seconds / STEP_S).max(1.0);
    let title = format!(
        "{:.2} hours of packet time, {} packets of {} connections ({ONE_WAY_PER_CENT} % in one direction only), {:.0} steps",
        seconds / 3600.0,
        grouped(shape.packets()),
        grouped(u64::from(shape.flows)),
        steps.ceil()
    );
    // A row, and that without an output, with the number of steps and of seconds.
    type Cells<'a> = (&'a Series, Option<&'a Series>, f64, f64);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 7] = [
        ("output", |(own, ..)| own.row.name.to_owned()),
        ("runs", |(own, ..)| own.count().to_string()),
        ("CPU s", |(own, ..)| digits(cpu_s(own), 2)),
        ("more", |(own, none, ..)| {
            none.map_or_else(String::new, |none| format!("{:+.2} %", (cpu_s(own) / cpu_s(none) - 1.0) * 100.0))
        }),
        ("ms/step more", |(own, none, steps, _)| {
            none.map_or_else(String::new, |none| digits((cpu_s(own) - cpu_s(none)) * 1e3 / steps, 2))
        }),
        ("speed-up", |(own, _, _, seconds)| digits(seconds / cpu_s(own), 1)),
        ("MB", |(own, ..)| megabytes(own.most(Run::peak))),
    ];
    let none = find(all, "none");
    let rows = all.iter().map(|own| {
        let other = none.filter(|none| none.row.word != own.row.word);
        (own, other, steps, seconds)
    });
    print(&title, &columns, rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hours_are_those_asked_for() {
        for (hours, rate) in [(6, RATE), (1, 1_000)] {
            let shape = shape(hours, rate);
            let seconds = f64::from(hours) * 3600.0;
            assert!((shape.seconds() / seconds - 1.0).abs() < 0.01, "{shape:?}");
            let found = shape.packets() as f64 / shape.seconds();
            assert!((found / f64::from(rate) - 1.0).abs() < 0.03, "{found}");
            // Of 54 % half of the packets are there.
            let share = shape.packets() as f64 / (f64::from(shape.flows) * 14.0);
            assert!((share - 0.73).abs() < 0.01, "{share}");
        }
    }
}
