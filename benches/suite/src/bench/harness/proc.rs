//! What processes, their threads and the cores have used, from `/proc`.

use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// CPU time of the cores and of some processes, in ticks: only parts of each other matter, and a tick is
/// the same in both files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    cores: Vec<Core>,
    /// Of the processes that are measured: user and system.
    pub(crate) processes: u64,
}

/// Ticks of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Core {
    busy: u64,
    idle: u64,
    /// Of `busy`, in the kernel: system, interrupts.
    kernel: u64,
    /// Of `busy`, by whatever ran there: not interrupts, and not other guests of the host.
    programs: u64,
}

impl Core {
    const fn all(self) -> u64 {
        self.busy + self.idle
    }
}

impl Clock {
    /// Looks at the machine and at some processes.
    ///
    /// # Errors
    /// A process has ended.
    pub(crate) fn now(processes: &[u32]) -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        let mut clock = Self::of_machine(&stat);
        for id in processes {
            let stat = fs::read_to_string(format!("/proc/{id}/stat"));
            let stat = stat.with_context(|| format!("process {id} has ended"))?;
            clock.processes += ticks(&stat).context("/proc/PID/stat")?;
        }
        Ok(clock)
    }

    /// Source: proc(5), `/proc/stat`: `cpuN` user nice system idle iowait irq softirq steal.
    fn of_machine(stat: &str) -> Self {
        let of_core = |line: &str| {
            let (number, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
            number.parse::<u16>().ok()?;
            let ticks: Vec<u64> = ticks
                .split_whitespace()
                .map_while(|tick| tick.parse().ok())
                .collect();
            let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = *ticks.as_slice()
            else {
                return None;
            };
            Some(Core {
                busy: user + nice + system + irq + softirq + steal,
                idle: idle + iowait,
                kernel: system + irq + softirq,
                programs: user + nice + system,
            })
        };
        Self {
            cores: stat.lines().filter_map(of_core).collect(),
            processes: 0,
        }
    }

    /// What was used since an earlier look.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let cores = self
            .cores
            .iter()
            .zip(&before.cores)
            .map(|(core, before)| Core {
                busy: core.busy.saturating_sub(before.busy),
                idle: core.idle.saturating_sub(before.idle),
                kernel: core.kernel.saturating_sub(before.kernel),
                programs: core.programs.saturating_sub(before.programs),
            });
        Self {
            cores: cores.collect(),
            processes: self.processes.saturating_sub(before.processes),
        }
    }

    /// The part of all cores that `ticks` of each of them are.
    fn part(&self, ticks: fn(&Core) -> u64) -> f64 {
        let all: u64 = self.cores.iter().map(|core| core.all()).sum();
        self.cores.iter().map(ticks).sum::<u64>() as f64 / all.max(1) as f64
    }

    /// The part of all cores that everything took.
    pub(crate) fn machine(&self) -> f64 {
        1.0 - self.part(|core| core.idle)
    }

    /// The part of all cores that the kernel took.
    pub(crate) fn kernel(&self) -> f64 {
        self.part(|core| core.kernel)
    }

    /// What the processes took, of one core: 1.5 is one and a half cores.
    pub(crate) fn processes(&self) -> f64 {
        let all: u64 = self.cores.iter().map(|core| core.all()).sum();
        self.processes as f64 / all.max(1) as f64 * self.cores.len() as f64
    }

    /// The part of a core that was busy; not a number if there is no such core.
    pub(crate) fn core(&self, number: usize) -> f64 {
        self.of_core(number, |core| core.busy)
    }

    /// The part of a core that programs took. The time of a thread includes that of the interrupts which stop it.
    pub(crate) fn programs(&self, number: usize) -> f64 {
        self.of_core(number, |core| core.programs)
    }

    fn of_core(&self, number: usize, ticks: fn(&Core) -> u64) -> f64 {
        let core = self.cores.get(number);
        core.map_or(f64::NAN, |core| {
            ticks(core) as f64 / core.all().max(1) as f64
        })
    }

    /// What the processes took, wherever they ran, in parts of the time of one core.
    pub(crate) fn processes_of(&self, number: usize) -> f64 {
        let all = self.cores.get(number).map_or(1, |core| core.all().max(1));
        self.processes as f64 / all as f64
    }
}

/// User and system time.
///
/// Source: proc(5), `/proc/PID/stat`: fields 14 and 15. The name in brackets may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(ticks.next()?.ok()? + ticks.next()?.ok()?)
}

/// Resident memory of a process in bytes: now, and the most so far.
///
/// # Errors
/// It has ended.
pub(crate) fn memory(id: u32) -> Result<(u64, u64)> {
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

/// What a thread has had, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Time {
    /// On a core.
    pub(crate) ran: f64,
    /// Kept waiting for one, because others had it.
    pub(crate) waited: f64,
}

/// The time of each thread of a program and of the programs it has started, by thread id.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Threads(BTreeMap<u32, Time>);

impl Threads {
    /// What the kernel has counted until now.
    pub(crate) fn of(process: u32) -> Self {
        let mut threads = Self::default();
        threads.add(process);
        threads
    }

    fn add(&mut self, process: u32) {
        let tasks = format!("/proc/{process}/task");
        let Ok(entries) = fs::read_dir(&tasks) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if let Some(time) = time(&path) {
                self.0.insert(id, time);
            }
            let children = fs::read_to_string(path.join("children")).unwrap_or_default();
            for child in children.split_whitespace().flat_map(str::parse) {
                self.add(child);
            }
        }
    }

    /// What they had since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let had = |(id, time): (&u32, &Time)| {
            let before = earlier.0.get(id).copied().unwrap_or_default();
            let time = Time {
                ran: time.ran - before.ran,
                waited: time.waited - before.waited,
            };
            (*id, time)
        };
        Self(self.0.iter().map(had).collect())
    }

    /// Takes over a later look: threads that have ended meanwhile keep what they had.
    pub(crate) fn update(&mut self, later: &Self) {
        self.0.extend(&later.0);
    }

    /// What each ran, in the order in which they were started.
    pub(crate) fn each(&self) -> Vec<f64> {
        self.0.values().map(|time| time.ran).collect()
    }

    /// The thread that ran longest: the one that analyses.
    pub(crate) fn busiest(&self) -> Time {
        let threads = self.0.values().copied();
        threads
            .max_by(|one, other| one.ran.total_cmp(&other.ran))
            .unwrap_or_default()
    }

    /// What all of them ran.
    pub(crate) fn all(&self) -> f64 {
        self.0.values().map(|time| time.ran).sum()
    }
}

/// The time of one thread: to the nanosecond where the scheduler says it, else in ticks.
fn time(thread: &Path) -> Option<Time> {
    let exact = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let mut nanos = exact.split_whitespace().flat_map(str::parse::<u64>);
    if let (Some(ran), Some(waited)) = (nanos.next(), nanos.next()) {
        return Some(Time {
            ran: ran as f64 * 1e-9,
            waited: waited as f64 * 1e-9,
        });
    }
    let stat = fs::read_to_string(thread.join("stat")).ok()?;
    // A tick is a hundredth of a second on every kernel that Linux distributions build.
    Some(Time {
        ran: ticks(&stat)? as f64 * 0.01,
        waited: f64::NAN,
    })
}

/// Waits until a program has nothing more to do, at most so long.
pub(crate) fn rest(process: u32, timeout: Duration) {
    const LOOK: Duration = Duration::from_millis(200);
    /// What a program that only waits may cost, in parts of the time.
    const IDLE: f64 = 0.02;
    let looks = timeout.as_millis() / LOOK.as_millis();
    let mut before = Threads::of(process);
    for _ in 0..looks {
        std::thread::sleep(LOOK);
        let now = Threads::of(process);
        if now.since(&before).all() < IDLE * LOOK.as_secs_f64() {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_machine() {
        let stat = |user, idle| {
            format!(
                "cpu  9 0\ncpu0 {user} 0 50 {idle} 0 5 5 0 0 0\ncpu1 0 0 0 0 0 0 0 0 9 9\nintr 7\n"
            )
        };
        let before = Clock::of_machine(&stat(100, 1000));
        let mut after = Clock::of_machine(&stat(150, 1150));
        assert_eq!((before.cores.len(), before.cores[0].kernel), (2, 60));
        assert_eq!((before.cores[0].busy, before.cores[0].programs), (160, 150));
        after.processes = 100;
        let used = after.since(&before);
        assert_eq!((used.machine(), used.kernel()), (0.25, 0.0));
        // Half of 200 ticks of two cores: one core.
        assert_eq!(used.processes(), 1.0);
        assert_eq!(
            (used.core(0), used.core(1), used.processes_of(0)),
            (0.25, 0.0, 0.5)
        );
        assert_eq!(used.programs(0), 0.25);
        assert!(used.core(2).is_nan());
    }

    #[test]
    fn fields_behind_a_name_with_brackets() {
        let stat = "12 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(ticks(stat), Some(42));
        assert!(!Clock::now(&[std::process::id()]).unwrap().cores.is_empty());
        assert!(memory(std::process::id()).unwrap().1 > 1 << 20);
    }

    #[test]
    fn our_own_threads_cost_something() {
        let before = Threads::of(std::process::id());
        let mut sum = 0_u64;
        for i in 0..30_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        let cost = Threads::of(std::process::id()).since(&before);
        assert!(
            cost.busiest().ran > 0.0 && cost.busiest().ran <= cost.all(),
            "{sum}"
        );
        assert_eq!(Threads::of(u32::MAX), Threads::default());
    }
}
