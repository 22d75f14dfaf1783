//! Very many connections at once, all inspected.

use super::between::Rounds;
use super::between::{Gateway, start};
use super::downloads::wrk;
use super::policy::Policy;
use super::rows::named;
use super::site::Site;
use crate::bench::harness::proc::memory;
use crate::bench::harness::{Target, count, progress};
use crate::shell::grouped;
use anyhow::Result;
use linkweir_testkit::gateway::SERVER;

/// How many.
const COUNT: u64 = 10_000;
/// Resident memory that they may take, MB.
const MOST_MB: f64 = 256.0;

/// Opens them through keywords and file names, uses each twice, and looks at the gateway meanwhile.
pub(super) fn run(rounds: &Rounds<'_>, site: &Site) -> Result<Vec<Target>> {
    progress("very many connections");
    let mut policy = Policy::of(named("keywords")?, rounds.plan.queues, None)?;
    policy.rules.push_str("file-names = [\"*.exe\"]\n");
    let gateway = Gateway::start(rounds, site, &policy)?;
    let (begin, _) = memory(gateway.id())?;
    let mut hold = site.client(rounds.programs.own("hold"));
    hold.args([&format!("{SERVER}:80"), "/small.bin", &COUNT.to_string()]);
    let said = || std::fs::read_to_string(site.path("hold.log")).unwrap_or_default();
    let holding = start(site, hold, "hold", |_| said().contains("held"))?;
    let (_, peak) = memory(gateway.id())?;
    let status = gateway.status()?;
    let dropped: u64 = site
        .net()
        .queues()
        .iter()
        .map(|queue| queue.dropped + queue.user_dropped)
        .sum();
    // They are no load: a download beside them goes on.
    let beside = wrk(site, rounds.plan)?;
    drop(holding);
    gateway.finish()?;
    progress("");
    let open = count(&status, "connections")?;
    println!(
        "\n{} connections inspected at once: {:.1} MB resident, {:.1} before, {:.0} bytes each; a download beside them: {:.2} Gbit/s",
        grouped(open),
        peak as f64 * 1e-6,
        begin as f64 * 1e-6,
        peak.saturating_sub(begin) as f64 / COUNT as f64,
        beside,
    );
    Ok(targets(open, peak, dropped))
}

fn targets(open: u64, peak: u64, dropped: u64) -> Vec<Target> {
    let megabytes = peak as f64 * 1e-6;
    vec![
        Target::new(
            format!(
                "{} connections inspected at once in under {MOST_MB} MB",
                grouped(COUNT)
            ),
            format!("{} in {megabytes:.1} MB", grouped(open)),
            open >= COUNT && megabytes < MOST_MB,
        ),
        Target::new(
            "no packet of them dropped by a queue of the kernel",
            grouped(dropped),
            dropped == 0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::harness::reached;

    #[test]
    fn fewer_connections_or_more_memory_is_a_miss() {
        let passed = |open, peak, dropped| reached(&targets(open, peak, dropped));
        assert_eq!(passed(10_000, 255_000_000, 0), [true, true]);
        assert_eq!(passed(9_999, 1, 1), [false, false]);
        assert_eq!(passed(10_001, 256_000_000, 0), [false, true]);
    }
}
