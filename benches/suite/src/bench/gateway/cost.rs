//! What processes and the machine have used, from `/proc`.

use anyhow::{Context as _, Result};
use std::fs;

/// CPU time of a process or of the machine, in ticks: only parts of each other matter, and a tick is
/// the same in both files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// All ticks of all cores.
    pub(super) all: u64,
    /// Of these, doing nothing.
    pub(super) idle: u64,
    /// Of these, in the kernel: system, interrupts.
    pub(super) kernel: u64,
    /// Of the processes that are measured.
    pub(super) processes: u64,
    /// Cores.
    pub(super) cores: u64,
}

/// Parts of what there was between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Used {
    /// Of one core, by the processes: 1.5 is one and a half cores.
    pub(super) processes: f64,
    /// Of all cores, by everything.
    pub(super) machine: f64,
    /// Of all cores, in the kernel.
    pub(super) kernel: f64,
}

impl Clock {
    /// Looks at the machine and at some processes.
    pub(super) fn now(processes: &[u32]) -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        let mut clock = Self::of_machine(&stat).context("/proc/stat")?;
        for id in processes {
            let stat = fs::read_to_string(format!("/proc/{id}/stat"));
            let stat = stat.with_context(|| format!("process {id} has ended"))?;
            clock.processes += of_process(&stat).context("/proc/PID/stat")?;
        }
        Ok(clock)
    }

    /// Source: proc(5), `/proc/stat`: user nice system idle iowait irq softirq steal.
    fn of_machine(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|tick| tick.parse().ok())
            .collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = *ticks.as_slice() else {
            return None;
        };
        let is_core = |line: &&str| {
            let number = line
                .strip_prefix("cpu")
                .and_then(|rest| rest.chars().next());
            number.is_some_and(|first| first.is_ascii_digit())
        };
        Some(Self {
            all: user + nice + system + idle + iowait + irq + softirq + steal,
            idle: idle + iowait,
            kernel: system + irq + softirq,
            processes: 0,
            cores: u64::try_from(stat.lines().filter(is_core).count()).ok()?,
        })
    }

    /// What was used since an earlier look.
    pub(super) fn since(&self, before: &Self) -> Used {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let part = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before)) as f64 / all;
        Used {
            processes: part(|clock| clock.processes) * self.cores as f64,
            machine: 1.0 - part(|clock| clock.idle),
            kernel: part(|clock| clock.kernel),
        }
    }
}

/// Source: proc(5), `/proc/PID/stat`: fields 14 and 15. The name in brackets may hold anything.
fn of_process(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(ticks.next()?.ok()? + ticks.next()?.ok()?)
}

/// Resident memory of a process in bytes: now, and at most so far.
pub(super) fn memory(id: u32) -> Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))
        .with_context(|| format!("process {id} has ended"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let now = field("VmRSS:").context("no VmRSS")?;
    let peak = field("VmHWM:").context("no VmHWM")?;
    Ok((now * 1024, peak * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_machine() {
        let stat =
            |user, idle| format!("cpu  {user} 0 50 {idle} 0 5 5 0 0 0\ncpu0 1\ncpu1 1\nintr 7\n");
        let before = Clock::of_machine(&stat(100, 1000)).unwrap();
        let mut after = Clock::of_machine(&stat(150, 1150)).unwrap();
        assert_eq!(before.cores, 2);
        assert_eq!(before.kernel, 60);
        after.processes = 100;
        let used = after.since(&before);
        assert_eq!((used.machine, used.kernel), (0.25, 0.0));
        // Half of 200 ticks of two cores: one core.
        assert_eq!(used.processes, 1.0);
    }

    #[test]
    fn fields_behind_a_name_with_brackets() {
        let stat = "12 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(of_process(stat), Some(42));
        assert!(Clock::now(&[std::process::id()]).unwrap().all > 0);
        assert!(memory(std::process::id()).unwrap().1 > 1 << 20);
    }
}
