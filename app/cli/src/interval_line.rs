//! An interval of the live view as a line of text.

use linkweir_live::api::{FlowFigures, GatewayFigures, LoadFigures, Tick};
use linkweir_live::load::LoadRun;
use linkweir_record::flow::Anomaly;
use linkweir_record::human::{moment, percent, scaled, span};
use linkweir_record::{FlowKind, GatewayKind, HttpKind};

use crate::view::Viewed;

/// One interval on one line; what was lost stands in front of it.
pub(crate) fn line<K: Viewed>(tick: &Tick<K::Figures>) -> String {
    let mut parts = vec![moment(tick.t_ms.saturating_mul(1_000_000))];
    let lost = tick.dropped.total();
    if lost > 0 {
        parts.push(format!("LOST {lost}"));
    }
    parts.extend(K::parts(tick));
    parts.push(scaled(tick.per_second(tick.packets), "packets/s"));
    parts.push(scaled(tick.per_second(tick.bytes) * 8.0, "bit/s"));
    parts.join("  ")
}

impl Viewed for HttpKind {
    fn parts(tick: &Tick) -> Vec<String> {
        let mut parts = vec![scaled(tick.per_second(tick.requests), "req/s")];
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
        parts
    }
}

impl Viewed for FlowKind {
    fn parts(tick: &Tick<FlowFigures>) -> Vec<String> {
        let mut parts = vec![
            format!("active {}", tick.table.entries),
            scaled(tick.per_second(tick.new_flows), "new/s"),
            scaled(tick.per_second(tick.ended), "ended/s"),
            format!(
                "retransmitted {}",
                percent(tick.retransmissions, tick.data_segments)
            ),
        ];
        let doubled = tick.anomalies.get(Anomaly::NetworkDuplicate.as_str());
        if let Some(doubled) = doubled.filter(|count| **count > 0) {
            let share = percent(*doubled, tick.data_segments);
            parts.push(format!("duplicated by the network {share}"));
        }
        if let Some(rtt) = &tick.rtt_ns {
            parts.push(format!("rtt p50 {}  p95 {}", span(rtt.p50), span(rtt.p95)));
        }
        for (name, count) in [
            ("reset", tick.ends.reset),
            ("unanswered", tick.ends.unanswered),
        ] {
            parts.push(format!("{name} {}", percent(count, tick.ended_tcp)));
        }
        parts
    }
}

impl Viewed for GatewayKind {
    fn parts(tick: &Tick<GatewayFigures>) -> Vec<String> {
        let mut parts = vec![
            format!("connections {}", tick.table.entries),
            scaled(tick.per_second(tick.kind("decided")), "decided/s"),
            format!("refused {}", tick.refused),
            format!("blocked {}", tick.blocked),
            format!("infected {}", tick.kind("infected")),
        ];
        for (name, kind) in [
            ("keywords", "keyword"),
            ("file names", "file_name"),
            ("unscanned", "unscanned"),
            ("messages", "message"),
            ("files", "file"),
        ] {
            let events = tick.kind(kind);
            if events > 0 {
                parts.push(format!("{name} {events}"));
            }
        }
        parts
    }
}

impl Viewed for LoadRun {
    fn parts(tick: &Tick<LoadFigures>) -> Vec<String> {
        let mut parts = vec![
            scaled(tick.per_second(tick.started), "sessions/s"),
            format!("open {}", tick.table.entries),
            format!("failed {}", tick.failed),
            scaled(tick.per_second(tick.responses), "resp/s"),
        ];
        if let Some(times) = &tick.response_time_ns {
            let [p50, p99, max] = [times.p50, times.p99, times.max].map(span);
            parts.push(format!("p50 {p50}  p99 {p99}  max {max}"));
        }
        if let Some(lag) = &tick.schedule_lag_ns {
            parts.push(format!("lag p99 {}", span(lag.p99)));
        }
        parts
    }
}
