//! A million client addresses and very many connections at once, and the memory for that.

use super::generator::{self, Job};
use super::rows::Clients;
use super::site::Site;
use crate::bench::harness::{Target, progress};
use crate::shell::grouped;
use anyhow::Result;
use linkweir_testkit::load::most_files;
use std::path::Path;

/// Connections that are open at once.
const COUNT: u64 = 200_000;
/// Seconds in which they are opened.
const SECONDS: u32 = 20;
/// Seconds for which each is held: all are open before the first goes.
const HELD: u32 = SECONDS + 5;
/// Resident memory that this may take, MB.
const MOST_MB: f64 = 512.0;

/// Opens them, asks twice on each with a long rest between, and looks at the memory meanwhile.
pub(super) fn run(site: &Site, binary: &Path) -> Result<Vec<Target>> {
    progress("very many connections");
    let rate = COUNT.div_ceil(u64::from(SECONDS));
    let job = Job {
        binary,
        path: "/small",
        clients: Clients::MILLION,
        arrivals: format!("constant:{rate}"),
        // The last of them is in the last second.
        seconds: SECONDS,
        seed: 1,
        script: Some(format!("/small think={HELD}\n/small\n")),
        words: [
            "--max-sessions",
            "250000",
            "--drain",
            "60s",
            "--lag-limit",
            "1s",
        ]
        .map(str::to_owned)
        .into(),
    };
    let more = site.more_servers(COUNT)?;
    let outcome = generator::run(site, &job)?;
    let servers = more.len() + 1;
    drop(more);
    progress("");
    let open = outcome.count("peak_open")?;
    let completed = outcome.count("completed")?;
    let failed = outcome.failed()?;
    println!(
        "\n{} connections of {} client addresses at once, each used twice, to {servers} nginx of one core (a process may open {} files): \
         {:.1} MB resident, {:.0} bytes each; {} sessions completed, {} failed",
        grouped(open),
        grouped(1 << 20),
        grouped(most_files()),
        outcome.ended.memory as f64 * 1e-6,
        outcome.ended.memory as f64 / open.max(1) as f64,
        grouped(completed),
        grouped(failed),
    );
    let causes = outcome.causes();
    Ok(targets(open, outcome.ended.memory, failed, &causes))
}

fn targets(open: u64, memory: u64, failed: u64, causes: &str) -> Vec<Target> {
    let megabytes = memory as f64 * 1e-6;
    vec![
        Target::new(
            format!(
                "a million client addresses and {} open connections in under {MOST_MB} MB",
                grouped(COUNT)
            ),
            format!("{} in {megabytes:.1} MB", grouped(open)),
            open >= COUNT && megabytes < MOST_MB,
        ),
        Target::new(
            "none of these sessions failed",
            format!("{} {causes}", grouped(failed)),
            failed == 0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::harness::reached;

    #[test]
    fn fewer_connections_more_memory_or_a_failure_is_a_miss() {
        let passed = |open, memory, failed| reached(&targets(open, memory, failed, ""));
        assert_eq!(passed(200_000, 511_000_000, 0), [true, true]);
        assert_eq!(passed(199_999, 1, 1), [false, false]);
        assert_eq!(passed(200_000, 512_000_000, 0), [false, true]);
    }
}
