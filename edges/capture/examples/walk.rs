//! Reads captures and prints what came: `walk [-c CHUNK] [-f FILTER] PATH...`.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "an example measures and prints"
)]

use std::time::Instant;

use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{Source, SourceError, SourceEvent};

fn main() -> Result<(), SourceError> {
    let mut options = ReadOptions::default();
    let mut inputs = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" => {
                let chunk = arguments.next().expect("a chunk size");
                options.chunk_bytes = chunk.parse().expect("a number of bytes");
            }
            "-f" => options.filter = arguments.next(),
            path => inputs.push(Input::from(path)),
        }
    }
    let started = Instant::now();
    let mut files = CaptureFiles::open(&inputs, options)?;
    let (mut packets, mut bytes, mut sum) = (0_u64, 0_u64, 0_u64);
    loop {
        match files.next_event()? {
            SourceEvent::Batch(batch) => {
                packets += batch.len() as u64;
                for frame in batch.index() {
                    bytes += u64::from(frame.wire_len);
                    sum = sum.wrapping_add(frame.timestamp.as_nanos());
                }
            }
            SourceEvent::Idle => {}
            SourceEvent::Fault(fault) => println!("fault {fault:?}"),
            SourceEvent::End => break,
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let read = files.progress().consumed_bytes;
    println!(
        "packets {packets} bytes {bytes} sum {sum} unusable {} | {seconds:.4} s {:.2} Mpps {:.0} MB/s",
        files.drops().unusable_records,
        1e-6 * packets as f64 / seconds,
        1e-6 * read as f64 / seconds
    );
    Ok(())
}
