//! Writes an archive of synthetic traffic: two months with nights, days and weekends, an outage of
//! some hours, and a week in which one direction was slow. For pictures and for trying the tools:
//!
//! ```text
//! cargo run -p linkweir-sink --example archive_of_months -- months.lwa
//! linkweir archive plot months.lwa -o months.svg
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an example"
)]

use std::path::PathBuf;
use std::time::Duration;

use linkweir_sketch::Step;
use linkweir_sketch::cells::{Direction, Measure, SeriesId, Transport};
use linkweir_tstat::archive::ArchiveSink;

const STEP_S: u64 = 300;
const DAYS: u64 = 65;
/// 2026-11-14 09:40 UTC.
const END_S: u64 = 1_794_649_200;

/// A generator of numbers that are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    /// From 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal: of mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Load of the hour and day, 0 to 1.
fn load(second: u64) -> f64 {
    let hour = second as f64 / 3600.0 % 24.0;
    let day = second / 86_400 % 7;
    let wave = (1.0 - ((hour - 3.5) * std::f64::consts::TAU / 24.0).cos()) / 2.0;
    // The epoch began on a Thursday: 2 and 3 are the weekend.
    wave * if matches!(day, 2 | 3) { 0.45 } else { 1.0 }
}

fn main() {
    let path = std::env::args_os().nth(1).map(PathBuf::from);
    let path = path.unwrap_or_else(|| "months.lwa".into());
    let mut sink = ArchiveSink::open(&path, Duration::from_secs(STEP_S)).unwrap();
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let (first, last) = (END_S / STEP_S - DAYS * 288, END_S / STEP_S);
    for number in first..last {
        let second = number * STEP_S;
        let days_left = (last - number) as f64 / 288.0;
        // An outage of six hours, five days ago; one of twenty minutes half an hour ago.
        if (4.9..5.15).contains(&days_left) || (0.02..0.033).contains(&days_left) {
            continue;
        }
        let mut step = Step {
            number,
            span_ns: STEP_S * 1_000_000_000,
            shards: 1,
            ..Step::default()
        };
        let load = load(second);
        for (direction, flows, slow) in [(Direction::In, 300.0, 1.0), (Direction::Out, 200.0, 0.6)]
        {
            let flows = (flows * (0.12 + load) * (1.0 + 0.1 * numbers.normal())).max(5.0) as u64;
            let is_slow = direction == Direction::Out && (12.0..19.0).contains(&days_left);
            let slow = if is_slow { slow * 0.4 } else { slow };
            let series = |measure| SeriesId::distribution(measure, direction).unwrap();
            let mut bytes = 0;
            for _ in 0..flows {
                // Flows are faster at night, and a few are much faster than most.
                let fast = 1.4e6 * slow * (1.0 - 0.55 * load);
                let throughput = fast * (0.95 * numbers.normal()).exp();
                let length = 20_000.0 * (1.8 * numbers.normal()).exp();
                let rtt = 18e6 * (1.0 + load) * (0.6 * numbers.normal()).exp();
                step.cells
                    .add(series(Measure::TcpThroughput), throughput as u64);
                step.cells.add(series(Measure::TcpBytes), length as u64);
                step.cells.add(series(Measure::TcpRttAvg), rtt as u64);
                bytes += length as u64 * 100;
            }
            step.cells
                .add(SeriesId::bytes(Transport::Tcp, direction), bytes);
            step.cells
                .add(SeriesId::packets(Transport::Tcp, direction), bytes / 900);
        }
        sink.put(&step).unwrap();
    }
    println!("{}: {} steps", path.display(), last - first);
}
