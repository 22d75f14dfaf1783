// The probes that the statistics are merged from. Names come from the network: only ever text.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchProbes, type Probe, type Probes } from "./api";
import * as format from "./format";
import { Card, DataTable, type Column } from "./gateway";
import { zone } from "./state";

/** Asked for by the clock: when every probe is silent there is no interval to ask with. */
const EVERY_MS = 2000;

const probes = signal<Probes | null>(null);

const state = (row: Probe): string => (row.has_ended ? "ended" : row.is_stale ? "stale" : "up");
const lost = (row: Probe): number => Object.values(row.dropped).reduce((all, one) => all + one, 0);

const counted = (name: string, hint: string, count: (row: Probe) => number): Column<Probe> => ({
  name, hint,
  show: (row) => (count(row) === 0 ? "–" : format.count(count(row))),
  level: (row) => (count(row) === 0 ? "quiet" : "warn"),
});

const COLUMNS: readonly Column<Probe>[] = [
  { name: "Probe", text: true, show: (row) => row.name },
  { name: "State", show: state, level: (row) => (row.is_stale ? "bad" : row.has_ended ? "quiet" : undefined) },
  { name: "Last seen", hint: "When its last sketch came", show: (row) => format.clock(row.last_seen_ms, zone.value) },
  { name: "Packets/s", hint: "In its latest interval", show: (row) => format.si(row.packets_per_s) },
  { name: "Packets", show: (row) => format.count(row.packets) },
  counted("Dropped", "What the probe lost", lost),
  counted("Missing", "Intervals that never came", (row) => row.missing_intervals),
  counted("Late", "Intervals that came too late, and are in the sums only", (row) => row.late_intervals),
];

/** Those in trouble first. */
const trouble = (row: Probe): number => (row.is_stale ? 2 : 0) + (row.missing_intervals > 0 ? 1 : 0);

export function ProbesCard() {
  useEffect(() => {
    const ask = (): void => {
      // The banner says that the connection is lost.
      fetchProbes().then((all) => (probes.value = all), () => undefined);
    };
    ask();
    const timer = setInterval(ask, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const all = probes.value;
  const rows = [...(all?.probes ?? [])].sort((one, other) => trouble(other) - trouble(one) || one.name.localeCompare(other.name));
  const refused = Object.entries(all?.refused ?? {}).map(([cause, count]) => `${format.count(count)} ${cause.replaceAll("_", " ")}`);
  const notes = [
    ...(refused.length > 0 ? [`refused: ${refused.join(", ")}`] : []),
    ...((all?.left_out ?? 0) > 0 ? ["other probes are left out (--probe)"] : []),
  ];
  return (
    <Card id="probes" title="Probes" unit={`${rows.length}`} size="card-wide" at={notes.join("; ")}>
      {all?.fault == null ? null : <p class="none">The broker cannot be read: {all.fault}</p>}
      <DataTable columns={COLUMNS} rows={rows} name={(row) => row.name} none="No sketch has come yet." />
    </Card>
  );
}
