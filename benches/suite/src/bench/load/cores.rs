//! How busy each core was, and a process.

use anyhow::{Context as _, Result};
use std::fs;

/// The core of the server, and that of what loads it.
pub(super) const SERVER: usize = 0;
pub(super) const CLIENT: usize = 1;

/// A look at the clocks of the kernel, in ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Of each core: busy, and idle.
    cores: Vec<(u64, u64)>,
    /// Of the process: user and system.
    process: u64,
}

/// Parts of one core between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Busy {
    /// The server's core, with what interrupts do there.
    pub(super) server: f64,
    /// The other.
    pub(super) client: f64,
    /// The server's process, wherever it ran.
    pub(super) process: f64,
}

impl Look {
    pub(super) fn now(process: u32) -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        let of_process = fs::read_to_string(format!("/proc/{process}/stat"))
            .with_context(|| format!("process {process} has ended"))?;
        Ok(Self {
            cores: stat.lines().filter_map(of_core).collect(),
            process: ticks(&of_process).context("/proc/PID/stat")?,
        })
    }

    /// What was done since an earlier look.
    pub(super) fn since(&self, before: &Self) -> Busy {
        let core = |number: usize| {
            let (busy, idle) = *self.cores.get(number)?;
            let (busy_before, idle_before) = *before.cores.get(number)?;
            let busy = busy.saturating_sub(busy_before);
            Some((busy, busy + idle.saturating_sub(idle_before)))
        };
        let part =
            |number| core(number).map_or(f64::NAN, |(busy, all)| busy as f64 / all.max(1) as f64);
        let all = core(SERVER).map_or(1, |(_, all)| all.max(1));
        Busy {
            server: part(SERVER),
            client: part(CLIENT),
            process: self.process.saturating_sub(before.process) as f64 / all as f64,
        }
    }
}

/// Source: proc(5), `/proc/stat`: `cpuN` user nice system idle iowait irq softirq steal.
fn of_core(line: &str) -> Option<(u64, u64)> {
    let (number, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
    number.parse::<u16>().ok()?;
    let ticks: Vec<u64> = ticks
        .split_whitespace()
        .map_while(|tick| tick.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = *ticks.as_slice() else {
        return None;
    };
    Some((user + nice + system + irq + softirq + steal, idle + iowait))
}

/// Source: proc(5), `/proc/PID/stat`: fields 14 and 15. The name in brackets may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(ticks.next()?.ok()? + ticks.next()?.ok()?)
}

/// Peak resident memory of a process, bytes; `None` when it has ended.
pub(super) fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_told_apart() {
        assert_eq!(of_core("cpu1 1 2 3 40 5 6 7 8 9 10"), Some((27, 45)));
        assert_eq!(of_core("cpu  1 2 3 40 5 6 7 8 9 10"), None);
        let look = |busy, idle, process| Look {
            cores: vec![(busy, idle), (0, idle)],
            process,
        };
        let used = look(150, 150, 80).since(&look(100, 100, 5));
        assert_eq!((used.server, used.client, used.process), (0.5, 0.0, 0.75));
    }

    #[test]
    fn this_process_has_a_time_and_a_size() {
        let look = Look::now(std::process::id()).unwrap();
        assert!(!look.cores.is_empty());
        assert!(peak_memory(std::process::id()).unwrap() > 1 << 20);
        assert_eq!(
            ticks("12 (a) b) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0"),
            Some(42)
        );
    }
}
