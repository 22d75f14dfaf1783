//! The keyword automaton alone, on one core: what "keywords over all bytes" cannot exceed there.
//!
//! `keywords WORDS DATA SECONDS`: the words of a file, one per line, looked for in the bytes of
//! another again and again, in pieces as long as a large packet, the state carried from piece to
//! piece. One line of JSON: megabytes per second of CPU time of the thread.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a measuring program prints its figure")]

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use linkweir_gateway::policy::Keywords;
use nix::time::{ClockId, clock_gettime};

/// Bytes at a time: about what a packet has on a link with segmentation offload.
const PIECE: usize = 32 << 10;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [list, data, seconds] = words.as_slice() else {
        bail!("usage: keywords WORDS DATA SECONDS");
    };
    let list = fs::read_to_string(list).with_context(|| format!("read {list}"))?;
    let keywords = Keywords::new(list.lines().map(str::to_owned).collect())?;
    let data = fs::read(data).with_context(|| format!("read {data}"))?;
    let length = Duration::from_secs_f64(seconds.parse()?);
    let (mut state, mut bytes) = (keywords.start(), 0_u64);
    let begin = cpu_time()?;
    let used = loop {
        for piece in data.chunks(PIECE) {
            if let Some(word) = keywords.find(&mut state, piece) {
                bail!("`{word}` occurs in the data: the rest of the piece would not be looked at");
            }
        }
        bytes += data.len() as u64;
        let used = cpu_time()?.saturating_sub(begin);
        if used >= length {
            break used;
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "for reading")]
    let rate = bytes as f64 / 1e6 / used.as_secs_f64();
    println!("{{\"mb_per_s\":{rate:.1}}}");
    Ok(())
}

/// CPU time of this thread.
fn cpu_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}
