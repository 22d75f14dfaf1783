//! Probes in `/metrics` of statistics that are merged from several.

use std::fmt::Display;

use crate::api::{Probe, Probes};
use crate::metrics::{Samples, families};
use crate::text::to_f64;

fn by_probe<V: Display>(probes: &Probes, out: &mut Samples<'_>, value: fn(&Probe) -> V) {
    let all = probes.probes.iter();
    out.by(all.map(|probe| (&probe.name, value(probe))));
}

families! {
    pub(crate) FAMILIES: Probes;
    counter "linkweir_sketches_total" [] "Sketches that were merged."
        => |probes, out| out.one(probes.sketches);
    counter "linkweir_sketches_refused_total" ["cause"] "Messages that were not sketches of this kind, by cause."
        => |probes, out| out.by(&probes.refused);
    gauge "linkweir_probe_up" ["probe"] "Whether the probe sends sketches: neither ended nor stale."
        => |probes, out| by_probe(probes, out, |probe| { f64::from(u8::from(!probe.has_ended && !probe.is_stale)) });
    gauge "linkweir_probe_last_seen_timestamp_seconds" ["probe"] "When the last sketch of the probe came."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.last_seen_ms) / 1000.0);
    counter "linkweir_probe_runs_total" ["probe"] "Runs under the name of the probe."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.runs));
    counter "linkweir_probe_packets_total" ["probe"] "Packets that the probe analysed."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.packets));
    counter "linkweir_probe_bytes_total" ["probe"] "Bytes of the packets of the probe on the wire."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.bytes));
    counter "linkweir_probe_dropped_total" ["probe"] "What the probe lost, whatever the cause."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.dropped.total()));
    counter "linkweir_probe_missing_intervals_total" ["probe"] "Intervals of the probe that never came."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.missing_intervals));
    counter "linkweir_probe_late_intervals_total" ["probe"] "Intervals of the probe that came too late for the merged ones, and are in the sums only."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.late_intervals));
    counter "linkweir_probe_duplicates_total" ["probe"] "Sketches of the probe that came more than once, and were counted once."
        => |probes, out| by_probe(probes, out, |probe| to_f64(probe.duplicates));
}
