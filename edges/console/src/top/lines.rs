//! One line per interval, where there is no terminal to draw on.

use std::fmt::Write as _;

use super::number::{clock, count, percent};
use super::shown::Shown;
use linkweir_live::api::{AlertState, Tick};

/// `12:30:01Z dropped 0 table 3.78% req/s 7.57k p50 7.96ms ...`: losses first, names before values.
pub(super) fn line<K: Shown>(tick: &Tick<K::Figures>) -> String {
    let mut out = clock(tick.t_ms);
    // Writing to a String cannot fail.
    let mut put = |name: &str, value: &str| write!(out, " {name} {value}").ok();
    put("dropped", &count(tick.dropped_total.total()));
    if tick.dropped.total() > 0 {
        put("now", &format!("+{}", count(tick.dropped.total())));
    }
    // Of a table whose capacity is not known there is no share.
    let (entries, capacity) = (tick.table.entries, tick.table.capacity);
    let table = if capacity == 0 {
        count(entries)
    } else {
        percent(entries, capacity)
    };
    put("table", &table);
    for (name, value) in K::in_line(tick) {
        put(&name, &value);
    }
    for alert in &tick.alerts {
        if alert.state == AlertState::Firing {
            put("ALERT", &alert.rule);
        }
    }
    out
}
