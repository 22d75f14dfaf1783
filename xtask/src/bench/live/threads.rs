//! What the threads of a running program have cost.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// CPU seconds of each thread of a program and of the programs it has started, by thread id.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Threads(BTreeMap<u32, f64>);

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
            if let Some(seconds) = seconds(&path) {
                self.0.insert(id, seconds);
            }
            let children = std::fs::read_to_string(path.join("children")).unwrap_or_default();
            for child in children.split_whitespace().flat_map(str::parse) {
                self.add(child);
            }
        }
    }

    /// What they cost since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let cost = |(id, seconds): (&u32, &f64)| {
            (*id, seconds - earlier.0.get(id).copied().unwrap_or(0.0))
        };
        Self(self.0.iter().map(cost).collect())
    }

    /// The thread with the most: the one that analyses.
    pub(super) fn busiest(&self) -> f64 {
        self.0.values().copied().fold(0.0, f64::max)
    }

    pub(super) fn all(&self) -> f64 {
        self.0.values().sum()
    }
}

/// CPU seconds of one thread: to the nanosecond where the scheduler says it, else in ticks.
fn seconds(thread: &Path) -> Option<f64> {
    let exact = std::fs::read_to_string(thread.join("schedstat")).ok();
    let exact = exact
        .as_deref()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    if let Some(nanos) = exact {
        return Some(nanos as f64 * 1e-9);
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
    Some(ticks as f64 * 0.01)
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
            cost.busiest() > 0.0 && cost.busiest() <= cost.all(),
            "{sum}"
        );
        assert_eq!(Threads::of(u32::MAX), Threads::default());
    }
}
