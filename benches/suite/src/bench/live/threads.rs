//! What the threads of a running program have cost.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What a thread has had, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Time {
    /// On a core.
    pub(super) ran: f64,
    /// Kept waiting for one, because others had it.
    pub(super) waited: f64,
}

/// The time of each thread of a program and of the programs it has started, by thread id.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Threads(BTreeMap<u32, Time>);

impl Threads {
    /// What the kernel has counted until now.
    pub(super) fn of(process: u32) -> Self {
        let mut threads = Self::default();
        threads.add(process);
        threads
    }

    fn add(&mut self, process: u32) {
        let folder = format!("/proc/{process}/task");
        let Ok(entries) = std::fs::read_dir(&folder) else {
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
            let children = std::fs::read_to_string(path.join("children")).unwrap_or_default();
            for child in children.split_whitespace().flat_map(str::parse) {
                self.add(child);
            }
        }
    }

    /// What they had since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
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

    /// The thread that ran longest: the one that analyses.
    pub(super) fn busiest(&self) -> Time {
        let threads = self.0.values().copied();
        threads
            .max_by(|one, other| one.ran.total_cmp(&other.ran))
            .unwrap_or_default()
    }

    /// What all of them ran.
    pub(super) fn all(&self) -> f64 {
        self.0.values().map(|time| time.ran).sum()
    }
}

/// The time of one thread: to the nanosecond where the scheduler says it, else in ticks.
fn time(thread: &Path) -> Option<Time> {
    let exact = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let mut nanos = exact.split_whitespace().flat_map(str::parse::<u64>);
    if let (Some(ran), Some(waited)) = (nanos.next(), nanos.next()) {
        return Some(Time {
            ran: ran as f64 * 1e-9,
            waited: waited as f64 * 1e-9,
        });
    }
    let stat = std::fs::read_to_string(thread.join("stat")).ok()?;
    // The name, in parentheses, may have blanks; user and system time are the 12th and 13th field
    // behind it, in hundredths of a second on every kernel that Linux distributions build.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .flat_map(str::parse::<u64>)
        .sum();
    Some(Time {
        ran: ticks as f64 * 0.01,
        waited: f64::NAN,
    })
}

/// Waits until a program has nothing more to do, at most so long.
pub(super) fn rest(process: u32, patience: Duration) {
    const LOOK: Duration = Duration::from_millis(200);
    /// What a program that only waits may cost, in parts of the time.
    const IDLE: f64 = 0.02;
    let looks = patience.as_millis() / LOOK.as_millis();
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
