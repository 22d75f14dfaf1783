//! One line per interval, where there is no terminal to draw on.

use std::fmt::Write as _;

use super::number::{clock, count, percent, si, time};
use crate::api::{AlertState, Tick};
use crate::text::to_f64;

/// Responses of a class: the first digit of their codes.
pub(super) fn in_class(tick: &Tick, class: u16) -> u64 {
    tick.codes
        .iter()
        .filter(|(code, _)| **code / 100 == class)
        .fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

/// `12:30:01Z dropped 0 table 3.78% req/s 7.57k p50 7.96ms ...`: losses first, names before values.
pub(super) fn line(tick: &Tick) -> String {
    let mut out = clock(tick.t_ms);
    // Writing to a String cannot fail.
    let mut put = |name: &str, value: &str| write!(out, " {name} {value}").ok();
    put("dropped", &count(tick.dropped_total.total()));
    if tick.dropped.total() > 0 {
        put("now", &format!("+{}", count(tick.dropped.total())));
    }
    put("table", &percent(tick.table.entries, tick.table.capacity));
    put("req/s", &si(tick.per_second(tick.requests)));
    if let Some(times) = &tick.response_time_ns {
        put("p50", &time(times.p50));
        put("p95", &time(times.p95));
        put("p99", &time(times.p99));
    }
    for class in 2..=5 {
        let responses = in_class(tick, class);
        if responses > 0 || class == 5 {
            put(&format!("{class}xx"), &count(responses));
        }
    }
    put("unanswered", &count(tick.unanswered));
    put("pkt/s", &si(tick.per_second(tick.packets)));
    put("bit/s", &si(bits_per_second(tick)));
    for alert in &tick.alerts {
        if alert.state == AlertState::Firing {
            put("ALERT", &alert.rule);
        }
    }
    out
}

/// What went over the wire, bits per second.
pub(super) fn bits_per_second(tick: &Tick) -> f64 {
    if tick.interval_s > 0.0 {
        to_f64(tick.bytes) * 8.0 / tick.interval_s
    } else {
        0.0
    }
}
