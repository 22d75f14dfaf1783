//! The probes that the statistics are merged from, as the panel beside the intervals.

use super::number::{clock, count, si};
use super::shown::Panel;
use linkweir_live::api::{Probe, Probes};

/// Headings and widths; the first column takes what is left.
const HEADINGS: [(&str, u16); 7] = [
    ("probe", 0),
    ("state", 6),
    ("last seen", 9),
    ("pkt/s", 7),
    ("dropped", 8),
    ("missing", 7),
    ("late", 7),
];

/// The panel: those that are in trouble first, then by name.
pub(super) fn panel(probes: &Probes) -> Panel {
    let mut all: Vec<&Probe> = probes.probes.iter().collect();
    all.sort_by_key(|probe| (!probe.is_stale, probe.missing_intervals == 0));
    let stale = all.iter().filter(|probe| probe.is_stale).count();
    let refused = probes.refused.values();
    let refused = refused.fold(0_u64, |sum, count| sum.saturating_add(*count));
    let mut line = vec![
        ("probes", count(all.len() as u64)),
        ("stale", count(stale as u64)),
        ("sketches", count(probes.sketches)),
        ("refused", count(refused)),
    ];
    if let Some(fault) = &probes.fault {
        line.push(("broker", linkweir_live::text::clean(fault.as_bytes())));
    }
    Panel {
        lines: vec![line],
        headings: &HEADINGS,
        rows: all.into_iter().map(row).collect(),
    }
}

fn row(probe: &Probe) -> Vec<String> {
    let state = match (probe.has_ended, probe.is_stale) {
        (true, _) => "ended",
        (_, true) => "STALE",
        _ => "up",
    };
    vec![
        probe.name.clone(),
        state.to_owned(),
        clock(probe.last_seen_ms),
        si(probe.packets_per_s),
        count(probe.dropped.total()),
        count(probe.missing_intervals),
        count(probe.late_intervals),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_stands_first() {
        let probe = |name: &str, is_stale| Probe {
            name: name.into(),
            is_stale,
            packets_per_s: 1500.0,
            ..Probe::default()
        };
        let panel = panel(&Probes {
            probes: vec![probe("a", false), probe("b", true)],
            sketches: 7,
            left_out: 0,
            refused: [("malformed", 2), ("version", 1)].into(),
            fault: Some("no broker\n".into()),
        });
        let first = panel.rows.first().unwrap();
        assert_eq!(first.get(..2).unwrap(), ["b", "STALE"]);
        assert_eq!(panel.rows.get(1).unwrap().get(1).unwrap(), "up");
        assert!(panel.rows.iter().all(|row| row.len() == HEADINGS.len()));
        let line = panel.lines.first().unwrap();
        assert!(line.contains(&("stale", "1".into())) && line.contains(&("refused", "3".into())));
        assert!(line.iter().all(|(_, text)| !text.contains('\n')));
    }
}
