//! Counts what passes an interface, or writes it as a capture file: what the capture costs by
//! itself, and a way to compare it with others'.
//!
//! `live INTERFACE SECONDS [FILTER [SOCKETS [FILE-PREFIX]]]`
#![allow(clippy::print_stdout, reason = "a tool for developers")]
#![allow(clippy::disallowed_methods, reason = "a tool for developers")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linkweir_capture::{Fanout, LiveCapture, LiveOptions, LiveSource};
use linkweir_engine::{Source, SourceEvent};

type Anything = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Anything> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |n: usize| words.get(n).map(String::as_str).unwrap_or_default();
    let seconds: f64 = word(1).parse().unwrap_or(5.0);
    let sockets: usize = word(3).parse().unwrap_or(1);
    let options = LiveOptions {
        interface: word(0).to_owned(),
        filter: Some(word(2).to_owned()).filter(|text| !text.is_empty()),
        sockets,
        fanout: if sockets > 1 {
            Fanout::Transaction
        } else {
            Fanout::None
        },
        ..LiveOptions::default()
    };
    let sources = LiveCapture::open(&options)?;
    println!("listening");
    std::io::stdout().flush()?;
    let stop = options.stop;
    std::thread::scope(|scope| {
        let workers: Vec<_> = sources
            .into_iter()
            .enumerate()
            .map(|(number, source)| {
                let file = words.get(4).map(|prefix| format!("{prefix}{number}.pcap"));
                scope.spawn(move || read(source, file))
            })
            .collect();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            match worker.join() {
                Ok(Ok(text)) => println!("{text}"),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err("a reader failed".into()),
            }
        }
        Ok(())
    })
}

fn read(mut source: LiveSource, file: Option<String>) -> Result<String, Anything> {
    for notice in source.take_notices() {
        println!("notice: {notice}");
    }
    let mut file = file
        .map(|path| File::create(path).map(BufWriter::new))
        .transpose()?;
    let mut has_header = false;
    let (mut frames, mut bytes, mut batches) = (0_u64, 0_u64, 0_u64);
    let mut span: Option<(Instant, Instant)> = None;
    loop {
        match source.next_event()? {
            SourceEvent::End => break,
            SourceEvent::Idle => {}
            SourceEvent::Fault(fault) => println!("{}: {}", fault.input, fault.message),
            SourceEvent::Batch(batch) => {
                batches += 1;
                frames += batch.len() as u64;
                bytes += batch
                    .index()
                    .iter()
                    .map(|one| u64::from(one.wire_len))
                    .sum::<u64>();
                let now = Instant::now();
                span = Some((span.map_or(now, |(first, _)| first), now));
                if let Some(file) = &mut file {
                    for frame in batch.frames() {
                        if !has_header {
                            has_header = true;
                            for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144] {
                                file.write_all(&u32::to_ne_bytes(word))?;
                            }
                            file.write_all(&u32::from(frame.link.0).to_ne_bytes())?;
                        }
                        let nanos = frame.timestamp.as_nanos();
                        let words = [
                            u32::try_from(nanos / 1_000_000_000)?,
                            u32::try_from(nanos % 1_000_000_000)?,
                            u32::try_from(frame.bytes.len())?,
                            frame.wire_len,
                        ];
                        for word in words {
                            file.write_all(&word.to_ne_bytes())?;
                        }
                        file.write_all(frame.bytes)?;
                    }
                }
            }
        }
    }
    if let Some(mut file) = file {
        file.flush()?;
    }
    let seconds = span.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    Ok(format!(
        "frames {frames} bytes {bytes} batches {batches} seconds {seconds:.3} cpu_ms {} drops {:?}",
        cpu_ms(),
        source.drops()
    ))
}

/// Processor time of this thread so far, in milliseconds of user and system time.
fn cpu_ms() -> String {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: u64 = stat
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    format!("{:.1}", nanos as f64 / 1e6)
}
