//! What is looked at while a run goes on: live statistics, alerts, lines, the page, the terminal.

use std::time::Duration;

use anyhow::anyhow;
use linkweir_console::alert::Rule;
use linkweir_console::api::Tick;
use linkweir_console::{Live, LiveOptions};
use linkweir_engine::{RunReport, Sink};
use linkweir_record::HttpKind;
use linkweir_sink::human::{moment, percent, scaled, span};
use linkweir_wire::Timestamp;

use crate::args::ViewArgs;
use crate::exit::{Wrong, say, warn};
use crate::progress::wall_clock;

/// The live view of a run, if one was asked for.
#[derive(Debug, Default)]
pub(crate) struct View(Option<Shown>);

#[derive(Debug)]
struct Shown {
    live: Live,
    is_live: bool,
    has_lines: bool,
    told_tick: u64,
    told_event: u64,
}

impl View {
    /// Starts what `args` ask for; `source` is what is read, in words.
    pub(crate) fn start(args: &ViewArgs, source: &str, is_live: bool) -> anyhow::Result<Self> {
        let is_seen = args.console.is_some() || args.top;
        if !is_seen && args.interval.is_none() && args.alert.is_empty() {
            return Ok(Self::default());
        }
        let alerts = args
            .alert
            .iter()
            .map(|text| text.parse::<Rule>())
            .collect::<Result<_, _>>()
            .map_err(|error| anyhow!(Wrong(format!("--alert: {error}"))))?;
        let live = Live::new(LiveOptions {
            interval: args.interval.unwrap_or(Duration::from_secs(1)),
            source: source.to_owned(),
            is_live,
            alerts,
            ..LiveOptions::default()
        });
        Ok(Self(Some(Shown {
            live,
            is_live,
            has_lines: args.interval.is_some() && !is_seen,
            told_tick: 0,
            told_event: 0,
        })))
    }

    /// Where the records of the run go to be counted.
    pub(crate) fn sink(&self) -> Option<Box<dyn Sink<HttpKind>>> {
        self.0
            .as_ref()
            .map(|shown| -> Box<dyn Sink<HttpKind>> { shown.live.sink() })
    }

    /// Called between batches.
    pub(crate) fn tick(&mut self, report: &RunReport) {
        if let Some(shown) = &mut self.0 {
            let now = if shown.is_live {
                Timestamp::from_nanos(wall_clock())
            } else {
                report.last.unwrap_or_default()
            };
            shown.live.tick(report, now);
            shown.tell();
        }
    }

    /// The run has ended.
    pub(crate) fn finish(&mut self, report: &RunReport) {
        if let Some(shown) = &mut self.0 {
            shown.live.finish(report);
            shown.tell();
        }
    }
}

impl Shown {
    /// Prints the intervals and alerts that are new.
    fn tell(&mut self) {
        for (number, event) in self.live.events_after(self.told_event) {
            self.told_event = number;
            warn(&event.to_string());
        }
        if !self.has_lines {
            return;
        }
        for tick in self.live.ticks_after(self.told_tick) {
            self.told_tick = tick.id;
            say(&line(&tick));
        }
    }
}

/// One interval on one line; what was lost stands in front of it.
fn line(tick: &Tick) -> String {
    let mut parts = vec![moment(tick.t_ms.saturating_mul(1_000_000))];
    let lost = tick.dropped.total();
    if lost > 0 {
        parts.push(format!("LOST {lost}"));
    }
    parts.push(scaled(tick.per_second(tick.requests), "req/s"));
    if let Some(times) = &tick.response_time_ns {
        parts.push(format!(
            "p50 {}  p95 {}  p99 {}",
            span(times.p50),
            span(times.p95),
            span(times.p99)
        ));
    }
    let class = |first: u16| -> u64 {
        let codes = tick.codes.range(first..first + 100);
        codes.map(|(_, count)| count).sum()
    };
    for (name, count) in [("4xx", class(400)), ("5xx", class(500))] {
        parts.push(format!("{name} {}", percent(count, tick.responses)));
    }
    parts.push(format!(
        "unanswered {}",
        percent(tick.unanswered, tick.requests)
    ));
    parts.push(scaled(tick.per_second(tick.packets), "packets/s"));
    parts.push(scaled(tick.per_second(tick.bytes) * 8.0, "b/s"));
    parts.join("  ")
}
