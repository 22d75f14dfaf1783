// Status codes and methods of the range, as lists with bars.

import { useComputed } from "@preact/signals";
import type { Tick } from "./api";
import * as format from "./format";
import type { Colour } from "./palette";
import { view } from "./state";

/** Sums of a counter with names over all intervals, largest first. */
function sums(ticks: readonly Tick[], of: (tick: Tick) => Readonly<Record<string, number>>): [string, number][] {
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
}

function Bars({ id, title, rows, paint }: BarsProps) {
  const total = rows.reduce((sum, [, count]) => sum + count, 0);
  const most = rows[0]?.[1] ?? 1;
  const rest = rows.slice(ROWS).reduce((sum, [, count]) => sum + count, 0);
  const list = rest > 0 ? [...rows.slice(0, ROWS), [`${rows.length - ROWS} more`, rest] as const] : rows;
  return (
    <section class="card bars" data-bars={id}>
      <header class="card-head">
        <h2>{title} <span class="unit">in the range</span></h2>
        <span class="at">{format.count(total)}</span>
      </header>
      <table>
        <thead class="unseen"><tr><th>{title}</th><th>Share</th><th>Count</th><th>Percent</th></tr></thead>
        <tbody>
          {list.map(([name, count]) => (
            <tr key={name} data-name={name} data-count={count}>
              <th scope="row">{name}</th>
              <td class="bar-cell">
                <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                  <rect class={`f-${paint(name)}`} width={Math.max(0.6, (Math.min(count, most) / most) * 100)} height="10" />
                </svg>
              </td>
              <td class="num">{format.count(count)}</td>
              <td class="num share">{format.percent(count / Math.max(1, total))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 ? <p class="none">None in this range.</p> : null}
    </section>
  );
}

export function Breakdown() {
  const codes = useComputed(() => sums(view.value, (tick) => tick.codes)).value;
  const methods = useComputed(() => sums(view.value, (tick) => tick.methods)).value;
  return (
    <>
      <Bars id="codes" title="Status codes" rows={codes} paint={classColour} />
      <Bars id="methods" title="Methods" rows={methods} paint={() => "calmer"} />
    </>
  );
}
