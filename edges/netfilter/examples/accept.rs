//! Accepts every packet of a queue: the limit that anything which looks at packets is measured
//! against. 32 packets are received per system call and answered with one.
//!
//! ```text
//! accept [--queue N] [--no-gso] [--copy-range BYTES] [--max-len N] [--fail-open] [--hold N]
//! ```
//! `--hold N` never answers the first N packets, to see what held ones cost the others. Runs until
//! SIGINT or SIGTERM, then prints one line: packets, bytes, system calls, losses, CPU time.
#![expect(
    clippy::print_stdout,
    reason = "a measuring program talks to a terminal"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linkweir_engine::{Answer, Verdict};
use linkweir_netfilter::stats::kernel_queue;
use linkweir_netfilter::{Queue, QueueOptions};
use linkweir_sys::signals::ask_to_stop;

type AnyError = Box<dyn std::error::Error>;

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

fn main() -> Result<(), AnyError> {
    let asked = Asked::from_words(std::env::args().skip(1))?;
    let stop = Arc::new(AtomicBool::new(false));
    ask_to_stop(&[SIGINT, SIGTERM], &stop, Duration::from_millis(200))?;
    let mut queue = Queue::open(asked.queue, &asked.options)?;
    println!("ready {:?} {:?}", asked.options, queue.receive_buffer());
    let mut answers = Vec::with_capacity(32);
    let (mut receives, mut to_hold) = (0_u64, asked.hold);
    while !stop.load(Ordering::Relaxed) {
        answers.clear();
        queue.receive(Duration::from_millis(100), |packet| {
            if to_hold > 0 {
                to_hold -= 1;
                return;
            }
            answers.push(Answer {
                id: packet.id,
                verdict: Verdict::Accept,
                mark: None,
            });
        })?;
        receives += u64::from(!answers.is_empty());
        queue.answer(&answers)?;
    }
    let counts = queue.counts();
    let kernel = kernel_queue(asked.queue)?.unwrap_or_default();
    let (user, system) = cpu_seconds()?;
    println!(
        "packets {} bytes {} average {} receives {receives} overruns {} malformed {} refused {} \
         queue_dropped {} user_dropped {} user_s {user:.2} system_s {system:.2} us_a_packet {:.2}",
        counts.packets,
        counts.bytes,
        counts.bytes.checked_div(counts.packets).unwrap_or(0),
        counts.overruns,
        counts.malformed,
        counts.refused_answers,
        kernel.queue_dropped,
        kernel.user_dropped,
        per_packet_us(user + system, counts.packets),
    );
    Ok(())
}

struct Asked {
    queue: u16,
    hold: u64,
    options: QueueOptions,
}

impl Asked {
    fn from_words(mut words: impl Iterator<Item = String>) -> Result<Self, AnyError> {
        let mut asked = Self {
            queue: 0,
            hold: 0,
            options: QueueOptions::default(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a number"));
            match word.as_str() {
                "--queue" => asked.queue = value()?.parse()?,
                "--hold" => asked.hold = value()?.parse()?,
                "--copy-range" => asked.options.copy_range = value()?.parse()?,
                "--max-len" => asked.options.max_len = value()?.parse()?,
                "--no-gso" => asked.options.gso = false,
                "--fail-open" => asked.options.fail_open = true,
                _ => return Err(format!("{word}: not known").into()),
            }
        }
        Ok(asked)
    }
}

/// What this process has used, in user and in system mode.
///
/// Source: proc(5), `/proc/pid/stat`: the 14th and 15th field, in ticks of 10 ms.
fn cpu_seconds() -> Result<(f64, f64), AnyError> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, behind_name) = stat.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let mut next = || -> Result<f64, AnyError> {
        let ticks: u32 = fields.next().ok_or("/proc/self/stat is short")?.parse()?;
        Ok(f64::from(ticks) / 100.0)
    };
    Ok((next()?, next()?))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a figure with two decimals of a count that is far below 2^53"
)]
fn per_packet_us(seconds: f64, packets: u64) -> f64 {
    seconds * 1e6 / packets.max(1) as f64
}
