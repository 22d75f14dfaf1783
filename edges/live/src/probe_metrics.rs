//! Probes in `/metrics` of statistics that are merged from several.

use crate::api::{Probe, Probes};
use crate::metrics::Exposition;
use crate::text::to_f64;

/// Name, type and help of a family, and its value of a probe.
type Family = (&'static str, &'static str, &'static str, fn(&Probe) -> f64);

const FAMILIES: [Family; 9] = [
    (
        "linkweir_probe_up",
        "gauge",
        "Whether the probe sends sketches: neither ended nor stale.",
        |probe| f64::from(u8::from(!probe.has_ended && !probe.is_stale)),
    ),
    (
        "linkweir_probe_last_seen_timestamp_seconds",
        "gauge",
        "When the last sketch of the probe came.",
        |probe| to_f64(probe.last_seen_ms) / 1000.0,
    ),
    (
        "linkweir_probe_runs_total",
        "counter",
        "Runs under the name of the probe.",
        |probe| to_f64(probe.runs),
    ),
    (
        "linkweir_probe_packets_total",
        "counter",
        "Packets that the probe analysed.",
        |probe| to_f64(probe.packets),
    ),
    (
        "linkweir_probe_bytes_total",
        "counter",
        "Bytes of the packets of the probe on the wire.",
        |probe| to_f64(probe.bytes),
    ),
    (
        "linkweir_probe_dropped_total",
        "counter",
        "What the probe lost, whatever the cause.",
        |probe| to_f64(probe.dropped.total()),
    ),
    (
        "linkweir_probe_missing_intervals_total",
        "counter",
        "Intervals of the probe that never came.",
        |probe| to_f64(probe.missing_intervals),
    ),
    (
        "linkweir_probe_late_intervals_total",
        "counter",
        "Intervals of the probe that came too late for the merged ones, and are in the sums only.",
        |probe| to_f64(probe.late_intervals),
    ),
    (
        "linkweir_probe_duplicates_total",
        "counter",
        "Sketches of the probe that came more than once, and were counted once.",
        |probe| to_f64(probe.duplicates),
    ),
];

pub(super) fn expose(out: &mut Exposition, probes: &Probes) {
    out.single(
        "linkweir_sketches_total",
        "counter",
        "Sketches that were merged.",
        probes.sketches,
    );
    out.by_label(
        (
            "linkweir_sketches_refused_total",
            "counter",
            "Messages that were no sketches of this kind, by cause.",
        ),
        "cause",
        probes.refused.iter().map(|(cause, count)| (*cause, *count)),
    );
    for (name, kind, help, value) in FAMILIES {
        let all = probes.probes.iter();
        out.by_label(
            (name, kind, help),
            "probe",
            all.map(|probe| (probe.name.as_str(), value(probe))),
        );
    }
}
