//! `gateway status`, and the same tables at the end of a run.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context;
use linkweir_live::gateway::{GatewayStatus, ScannerStatus};
use linkweir_netfilter::rules;
use linkweir_record::human::{counted, scaled, span, thousands};

use super::args::StatusArgs;
use super::config::control_path;
use super::control;
use crate::exit::{Exit, warn};
use crate::table::lines;

/// Runs the command.
pub(super) fn run(args: &StatusArgs) -> anyhow::Result<Exit> {
    let status = control::status(&control_path(&args.file.config))?;
    if matches!(rules::standing(), Ok(None)) {
        warn("NO RULES ARE UP here: nothing is inspected until `linkweir gateway up`");
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &status)?;
        writeln!(out).context("standard output")?;
    } else {
        write!(out, "{}", to_screen(&status)).context("standard output")?;
    }
    Ok(Exit::Done)
}

/// Nanoseconds of seconds; 0 of what is not a span.
fn nanos(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds).map_or(0, linkweir_wire::nanos)
}

/// The status on one screen.
pub(super) fn to_screen(status: &GatewayStatus) -> String {
    let mut text = String::new();
    let mut say = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    say(&format!(
        "gateway {} up {}; without it traffic {}; policy {}{}",
        status.pid,
        span(nanos(status.uptime_s)),
        if status.fail == "open" {
            "passes"
        } else {
            "stops"
        },
        status.config,
        match status.reloads {
            0 => String::new(),
            1 => ", reloaded once".to_owned(),
            times => format!(", reloaded {times} times"),
        },
    ));
    say(&format!("  lost         {}", lost(status)));
    say(&format!(
        "  inspected    {}, {}; {} now, {} evicted",
        counted(status.packets, "packet"),
        scaled(status.bytes as f64, "B"),
        counted(status.connections, "connection"),
        thousands(status.evicted),
    ));
    say(&format!(
        "  held         {}, {} now; {} at most",
        counted(status.held.packets, "packet"),
        counted(status.held.bytes, "byte"),
        counted(status.held.peak_packets, "packet")
    ));
    let counts: Vec<String> = status
        .counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{} {}", thousands(*count), name.replace('_', " ")))
        .collect();
    if !counts.is_empty() {
        say(&format!("  packets      {}", counts.join(", ")));
    }
    let events: Vec<String> = status
        .events
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{} {}", thousands(*count), name.replace('_', " ")))
        .collect();
    if !events.is_empty() {
        say(&format!("  events       {}", events.join(", ")));
    }
    if let Some(scanner) = &status.scanner {
        say(&scanner_line(scanner));
    }
    if let Some(vault) = &status.vault {
        say(&format!(
            "  files        {} kept, {}, {} in quarantine, {} not kept, {} not recorded whole",
            thousands(vault.kept),
            counted(vault.parts, "part"),
            thousands(vault.quarantined),
            counted(vault.dropped_bytes.values().sum(), "byte"),
            counted(vault.lost_files.values().sum(), "file"),
        ));
    }
    for table in [
        queues(status),
        applications(status),
        rule_counts(status),
        steps(status),
    ] {
        if table.len() > 1 {
            table.iter().for_each(|line| say(line));
        }
    }
    text
}

/// What was lost, by cause.
fn lost(status: &GatewayStatus) -> String {
    let unseen = status.unseen;
    let dropped = status.lost_packets() - unseen;
    let written = status.not_written.iter();
    let written: Vec<_> = written.filter(|(_, count)| **count > 0).collect();
    let without_room = status.events_lost - written.iter().map(|(_, count)| **count).sum::<u64>();
    let mut causes = Vec::new();
    for (count, thing, how) in [
        (dropped, "packet", " dropped by the kernel"),
        (unseen, "packet", " unseen (a queue was full)"),
        (without_room, "event", " without room"),
    ] {
        if count > 0 {
            causes.push(format!("{}{how}", counted(count, thing)));
        }
    }
    for (output, count) in written {
        causes.push(format!(
            "{} not written to {output}",
            counted(*count, "event")
        ));
    }
    if causes.is_empty() {
        "none".to_owned()
    } else {
        causes.join(", ")
    }
}

fn scanner_line(scanner: &ScannerStatus) -> String {
    let latency: Vec<String> = scanner
        .latency_us
        .iter()
        .map(|(name, us)| format!("{name} {}", span(us.saturating_mul(1000))))
        .collect();
    format!(
        "  scanner      {} {}: {}, {} infected, {} failed, {} waiting{}",
        scanner.address,
        if scanner.is_reachable {
            "answers"
        } else {
            "DOES NOT ANSWER"
        },
        counted(scanner.scans, "scan"),
        thousands(scanner.infected),
        thousands(scanner.failed.values().sum()),
        thousands(scanner.waiting),
        if latency.is_empty() {
            String::new()
        } else {
            format!("; packets waited {}", latency.join(", "))
        },
    )
}

fn queues(status: &GatewayStatus) -> Vec<String> {
    let rows: Vec<Vec<String>> = status
        .queues
        .iter()
        .map(|queue| {
            let numbers = [
                queue.waiting,
                queue.total,
                queue.dropped,
                queue.user_dropped,
            ];
            let first = std::iter::once(queue.number.to_string());
            first.chain(numbers.map(thousands)).collect()
        })
        .collect();
    let head = [
        "queue",
        "waiting",
        "packets",
        "dropped full",
        "dropped buffer",
    ];
    lines(&head, &rows)
}

fn applications(status: &GatewayStatus) -> Vec<String> {
    let rows: Vec<Vec<String>> = status
        .applications
        .iter()
        .map(|(name, one)| {
            let numbers = [
                one.connections,
                one.packets,
                one.bytes,
                one.allowed,
                one.inspected,
                one.dropped,
                one.rejected,
                one.blocked,
            ];
            let first = std::iter::once(name.clone());
            first.chain(numbers.map(thousands)).collect()
        })
        .collect();
    let head = [
        "application",
        "connections",
        "packets",
        "bytes",
        "allowed",
        "inspected",
        "dropped",
        "rejected",
        "blocked",
    ];
    lines(&head, &rows)
}

fn rule_counts(status: &GatewayStatus) -> Vec<String> {
    let rows: Vec<Vec<String>> = status
        .rules
        .iter()
        .map(|(name, count)| {
            vec![
                name.clone(),
                thousands(count.packets),
                thousands(count.bytes),
                thousands(count.over_rate_packets),
                thousands(count.over_rate_bytes),
            ]
        })
        .collect();
    let head = [
        "rule (kernel)",
        "packets",
        "bytes",
        "dropped over rate",
        "bytes of these",
    ];
    lines(&head, &rows)
}

fn steps(status: &GatewayStatus) -> Vec<String> {
    let total = status.steps.iter().find(|step| step.step == "total");
    let rows: Vec<Vec<String>> = status
        .steps
        .iter()
        .map(|step| {
            let share = total.filter(|_| step.step != "scan").map(|total| {
                let share = step.sum_ns as f64 / total.sum_ns.max(1) as f64;
                format!("{:.1} %", share * 100.0)
            });
            vec![
                step.step.clone(),
                thousands(step.samples),
                span(step.mean_ns),
                span(step.p50_ns),
                span(step.p99_ns),
                share.unwrap_or_default(),
            ]
        })
        .collect();
    let head = ["step", "timed", "mean", "median", "99 %", "of the total"];
    lines(&head, &rows)
}
