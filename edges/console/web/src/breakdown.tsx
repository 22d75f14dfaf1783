// Status codes and methods of the range, as lists with bars.

import { useComputed } from "@preact/signals";
import type { FlowTick, GatewayTick, HttpTick, LoadTick, Tick } from "./api";
import * as format from "./format";
import type { Colour } from "./palette";
import { view } from "./state";

/** Sums of a counter with names over all intervals, largest first. */
function sums<T extends Tick>(ticks: readonly T[], of: (tick: T) => Readonly<Record<string, number>>): [string, number][] {
  const all = new Map<string, number>();
  for (const tick of ticks) {
    for (const [name, count] of Object.entries(of(tick))) all.set(name, (all.get(name) ?? 0) + count);
  }
  return [...all].sort(([one, a], [other, b]) => b - a || one.localeCompare(other));
}

const CLASSES: Readonly<Record<string, Colour>> = { 2: "calm", 3: "calmer", 4: "orange", 5: "red" };
const classColour = (code: string): Colour =>
  /^\d{3}$/.test(code) ? (CLASSES[code.charAt(0)] ?? "grey") : "grey";

/** Rows shown; the others are one row. */
const ROWS = 8;

interface BarsProps {
  id: string;
  title: string;
  rows: readonly (readonly [string, number])[];
  paint: (name: string) => Colour;
  unit?: string;
  show?: (count: number) => string;
  /** A name as people read it. */
  name?: (name: string) => string;
  /** Room for long names. */
  wide?: boolean;
}

function Bars({ id, title, rows, paint, unit = "in the range", show = format.count, name: named = (name) => name, wide = false }: BarsProps) {
  const total = rows.reduce((sum, [, count]) => sum + count, 0);
  const most = rows[0]?.[1] ?? 1;
  const rest = rows.slice(ROWS).reduce((sum, [, count]) => sum + count, 0);
  const list = rest > 0 ? [...rows.slice(0, ROWS), [`${rows.length - ROWS} more`, rest] as const] : rows;
  return (
    <section class={`card bars ${wide ? "bars-wide" : ""}`} data-bars={id}>
      <header class="card-head">
        <h2>{title} <span class="unit">{unit}</span></h2>
        <span class="at">{show(total)}</span>
      </header>
      <table>
        <thead class="unseen"><tr><th>{title}</th><th>Share</th><th>Count</th><th>Percent</th></tr></thead>
        <tbody>
          {list.map(([name, count]) => (
            <tr key={name} data-name={name} data-count={count}>
              <th scope="row">{named(name)}</th>
              <td class="bar-cell">
                <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                  <rect class={`f-${paint(name)}`} width={Math.max(0.6, (Math.min(count, most) / most) * 100)} height="10" />
                </svg>
              </td>
              <td class="num">{show(count)}</td>
              <td class="num share">{format.percent(count / Math.max(1, total))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 ? <p class="none">None in this range.</p> : null}
    </section>
  );
}

/** The intervals of the range; a page is made for one kind of them. */
const seen = <T extends Tick>(): readonly T[] => view.value as readonly unknown[] as readonly T[];

export function Breakdown() {
  const codes = useComputed(() => sums(seen<HttpTick>(), (tick) => tick.codes)).value;
  const methods = useComputed(() => sums(seen<HttpTick>(), (tick) => tick.methods)).value;
  const versions = useComputed(() => sums(seen<HttpTick>(), (tick) => tick.versions)).value;
  const calls = useComputed(() => sums(seen<HttpTick>(), (tick) => tick.grpc_statuses)).value;
  return (
    <>
      <Bars id="codes" title="Status codes" rows={codes} paint={classColour} />
      <Bars id="methods" title="Methods" rows={methods} paint={() => "calmer"} />
      <Bars id="versions" title="Versions" rows={versions} paint={() => "calmer"} />
      {calls.length > 0 ? <Bars id="grpc" title="gRPC statuses" rows={calls} paint={(status) => (status === "0" ? "calmer" : "orange")} /> : null}
    </>
  );
}

const ENDS: Readonly<Record<string, Colour>> = { closed: "calm", idle: "calmer", reused: "calmer", open: "grey", reset: "orange", unanswered: "red", evicted: "red" };
const spaced = (name: string): string => name.replaceAll("_", " ");

export function FlowBreakdown() {
  const applications = useComputed(() => sums(seen<FlowTick>(), (tick) =>
    Object.fromEntries(Object.entries(tick.applications).map(([name, one]) => [name, one.bytes])))).value;
  const ends = useComputed(() => sums(seen<FlowTick>(), (tick) => tick.ends).filter(([, count]) => count > 0)).value;
  const anomalies = useComputed(() => sums(seen<FlowTick>(), (tick) => tick.anomalies)).value;
  return (
    <>
      <Bars id="applications" title="Applications" unit="bytes in the range" show={(bytes) => format.si(bytes, "B")} rows={applications} paint={() => "calmer"} />
      <Bars id="ends" title="How flows ended" rows={ends} paint={(name) => ENDS[name] ?? "grey"} />
      <Bars id="anomalies" title="Anomalies" unit="segments in the range" rows={anomalies} paint={() => "orange"} name={spaced} wide />
    </>
  );
}

const KINDS: Readonly<Record<string, Colour>> = { decided: "calm", message: "calmer", file: "calmer", keyword: "orange", file_name: "orange", unscanned: "orange", blocked: "red", infected: "red" };

export function GatewayBreakdown() {
  const kinds = useComputed(() => sums(seen<GatewayTick>(), (tick) => tick.kinds)).value;
  const applications = useComputed(() => sums(seen<GatewayTick>(), (tick) => tick.applications)).value;
  const rules = useComputed(() => sums(seen<GatewayTick>(), (tick) => tick.rules)).value;
  return (
    <>
      <Bars id="kinds" title="Events" rows={kinds} paint={(name) => KINDS[name] ?? "grey"} name={spaced} />
      <Bars id="applications" title="Applications" unit="events in the range" rows={applications} paint={() => "calmer"} />
      <Bars id="rules" title="Rules" unit="events in the range" rows={rules} paint={() => "calmer"} wide />
    </>
  );
}

export function LoadBreakdown() {
  const codes = useComputed(() => sums(seen<LoadTick>(), (tick) => tick.codes)).value;
  const causes = useComputed(() => sums(seen<LoadTick>(), (tick) => tick.causes)).value;
  return (
    <>
      <Bars id="codes" title="Status codes" rows={codes} paint={classColour} />
      <Bars id="causes" title="Failed sessions" rows={causes} paint={() => "red"} name={spaced} />
    </>
  );
}
