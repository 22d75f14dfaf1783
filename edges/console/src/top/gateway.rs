//! What the view shows of a gateway.

use linkweir_record::GatewayKind;

use super::number::{clock, count, counted, duration, si};
use super::shown::{Bar, Curve, Heading, Pair, Panel, Shown, Tone, bits_per_second};
use linkweir_live::api::{GatewayFigures, GatewayLine, GatewaySort, GatewayTopRow, Tick};
use linkweir_live::gateway::{GatewayStatus, QueueStatus, ScannerStatus};
use linkweir_live::text::{clean, figure, to_f64};

/// Applications, largest first.
fn applications(status: &GatewayStatus) -> Vec<Vec<String>> {
    let mut all: Vec<_> = status.applications.iter().collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse((one.bytes, one.connections)));
    let row = |(name, one): &(&String, &linkweir_live::gateway::ApplicationStatus)| {
        let mut row = vec![clean(name.as_bytes()), count(one.connections)];
        row.push(count(one.packets));
        row.push(si(to_f64(one.bytes)));
        row.extend(one.by_verdict().map(|(_, connections)| count(connections)));
        row
    };
    all.iter().map(row).collect()
}

fn queue(queue: &QueueStatus) -> Pair {
    let lost = queue.dropped.saturating_add(queue.user_dropped);
    let value = format!(
        "{}: {} waiting, {} dropped",
        queue.number,
        count(queue.waiting),
        count(lost)
    );
    ("queue", value)
}

fn scanner(scanner: &ScannerStatus) -> Vec<Pair> {
    let failed = scanner.failed.values();
    let failed = failed.fold(0_u64, |sum, n| sum.saturating_add(*n));
    let state = if scanner.is_reachable { "up" } else { "DOWN" };
    let mut line = vec![
        ("scanner", state.to_owned()),
        ("scans", count(scanner.scans)),
        ("infected", count(scanner.infected)),
        ("failed", count(failed)),
        ("waiting", count(scanner.waiting)),
    ];
    for (name, key) in [("p50", "p50"), ("p99", "p99")] {
        if let Some(micros) = scanner.latency_us.get(key) {
            line.push((name, super::number::time(micros.saturating_mul(1000))));
        }
    }
    line
}

impl Shown for GatewayKind {
    fn rates(tick: &Tick<GatewayFigures>) -> Vec<Pair> {
        let rate = |count| si(tick.per_second(count));
        vec![
            ("decided/s", rate(tick.kind("decided"))),
            ("stopped/s", rate(tick.stopped())),
            ("events/s", rate(tick.events)),
            ("pkt/s", rate(tick.packets)),
            ("bit/s", si(bits_per_second(tick))),
        ]
    }

    fn times(tick: &Tick<GatewayFigures>) -> Result<Vec<Pair>, &'static str> {
        let sizes = tick.file_size.as_ref();
        let sizes = sizes.ok_or("no file in this interval")?;
        let bytes = |size| si(to_f64(size));
        Ok(vec![
            ("files", count(sizes.count)),
            ("bytes p50", bytes(sizes.p50)),
            ("p95", bytes(sizes.p95)),
            ("max", bytes(sizes.max)),
        ])
    }

    fn curves() -> [Curve<Self>; 2] {
        [
            Curve {
                name: "bit/s",
                value: |tick| Some(tick.bytes.saturating_mul(8)),
                show: |value, tick| si(tick.per_second(value)),
            },
            Curve {
                name: "stopped/s",
                value: |tick| Some(tick.stopped()),
                show: |value, tick| si(tick.per_second(value)),
            },
        ]
    }

    fn bars(tick: &Tick<GatewayFigures>) -> (Vec<Bar>, u64) {
        let decided = tick.kind("decided");
        let bars = [
            ("passed", decided.saturating_sub(tick.stopped()), Tone::Good),
            ("refused", tick.refused, Tone::Doubtful),
            ("blocked", tick.blocked, Tone::Bad),
            ("infected", tick.kind("infected"), Tone::Bad),
        ];
        let bars = bars.map(|(name, count, tone)| Bar {
            name: name.to_owned(),
            count,
            tone,
        });
        (bars.into(), decided.max(tick.stopped()))
    }

    fn lists(tick: &Tick<GatewayFigures>) -> [Vec<(String, u64)>; 2] {
        let kinds = tick.kinds.iter();
        let applications = tick.applications.iter();
        [
            kinds
                .map(|(kind, n)| (kind.replace('_', " "), *n))
                .collect(),
            applications.map(|(name, n)| (name.clone(), *n)).collect(),
        ]
    }

    fn headings() -> &'static [Heading<GatewaySort>] {
        &[
            ("EVENTS", 7, Some(GatewaySort::Events)),
            ("CONNS", 7, None),
            ("STOPPED", 7, Some(GatewaySort::Stopped)),
            ("FOUND", 6, Some(GatewaySort::Found)),
            ("MSGS", 6, None),
            ("FILES", 6, Some(GatewaySort::Files)),
            ("BYTES", 6, Some(GatewaySort::Bytes)),
        ]
    }

    fn key(row: &GatewayTopRow) -> &str {
        &row.key
    }

    fn cells(row: &GatewayTopRow) -> Vec<String> {
        vec![
            count(row.events),
            count(row.connections),
            count(row.refused.saturating_add(row.blocked)),
            count(row.found),
            count(row.messages),
            count(row.files),
            si(to_f64(row.bytes)),
        ]
    }

    fn in_line(tick: &Tick<GatewayFigures>) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let mut put = |name: &str, value: String| out.push((name.to_owned(), value));
        put("decided/s", si(tick.per_second(tick.kind("decided"))));
        put("stopped/s", si(tick.per_second(tick.stopped())));
        for kind in ["keyword", "infected", "unscanned", "message", "file"] {
            let events = tick.kind(kind);
            if events > 0 || kind == "infected" {
                put(kind, count(events));
            }
        }
        put("pkt/s", si(tick.per_second(tick.packets)));
        put("bit/s", si(bits_per_second(tick)));
        out
    }

    fn panel(status: &GatewayStatus) -> Panel {
        let held = &status.held;
        let millis = std::time::Duration::try_from_secs_f64(status.uptime_s).unwrap_or_default();
        let mut lines = vec![vec![
            (
                "up",
                duration(u64::try_from(millis.as_millis()).unwrap_or(u64::MAX)),
            ),
            ("fail", status.fail.clone()),
            ("reloads", count(status.reloads)),
            (
                "held",
                format!(
                    "{}, {}, at most {}",
                    counted(held.packets, "packet"),
                    figure(to_f64(held.bytes), "B"),
                    count(held.peak_packets)
                ),
            ),
        ]];
        lines.push(status.queues.iter().map(queue).collect());
        match &status.scanner {
            Some(one) => lines.push(scanner(one)),
            None => lines.push(vec![("scanner", "none".to_owned())]),
        }
        if let Some(vault) = &status.vault
            && let Some(line) = lines.last_mut()
        {
            let files = vault.kept.saturating_add(vault.parts);
            line.push(("kept", counted(files, "file")));
        }
        lines.retain(|line| !line.is_empty());
        Panel {
            lines,
            headings: &[
                ("APPLICATION", 0),
                ("CONNS", 7),
                ("PACKETS", 7),
                ("BYTES", 6),
                ("ALLOWED", 7),
                ("DROPPED", 7),
                ("REJECT", 6),
                ("INSPECT", 7),
                ("BLOCKED", 7),
            ],
            rows: applications(status),
        }
    }

    fn event_line(event: &GatewayLine) -> (String, Tone) {
        let tone = match (event.event, event.action) {
            ("infected" | "blocked" | "unseen", _) => Tone::Bad,
            ("keyword" | "file_name" | "unscanned" | "limit" | "malformed", _)
            | (_, "drop" | "reject") => Tone::Doubtful,
            _ => Tone::Fine,
        };
        let mut line = format!("{} {:<9}", clock(event.t_ms), event.event);
        if !event.client.is_empty() {
            let ends = [
                " ",
                &event.application,
                " ",
                &event.client,
                " > ",
                &event.server,
            ];
            line.extend(ends);
        }
        let what = if event.message.is_empty() {
            &event.file_name
        } else {
            &event.message
        };
        for part in [event.action, event.verdict, what, &event.detail] {
            if !part.is_empty() && part != event.event {
                line.push_str("  ");
                line.push_str(part);
            }
        }
        (line, tone)
    }
}
