// A chart over time: one card with title, legend that follows the pointer, and a plot. All of them
// share one pointer and one time axis. Intervals in which something was lost are shaded.

import { effect, untracked, useComputed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Tick } from "./api";
import * as format from "./format";
import { logLimits, logMarks } from "./log";
import { colour, type Colour } from "./palette";
import { cursor, dark, reach, view, zone } from "./state";

export interface Line<T extends Tick = Tick> {
  label: string;
  colour: Colour;
  /** A value of an interval; null leaves a gap. */
  value: (tick: T) => number | null;
  /** Dashes, for lines that lie on each other. */
  dash?: number[];
}

interface Props<T extends Tick> {
  id: string;
  title: string;
  /** What the numbers are, after the title. */
  unit: string;
  lines: readonly Line<T>[];
  /** A value in the legend. */
  show: (value: number) => string;
  /** A value on the axis. */
  mark: (value: number) => string;
  log?: boolean;
  /** The lines are parts of a whole, the first at the bottom. */
  stacked?: boolean;
  /** Room for labels of the axis. */
  wide?: boolean;
}

type Options = Props<Tick>;

const HEIGHT = 196;
const SYNC = "time";
/** Seconds between two marks of the time axis. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
const FONT = '11px "Inter", "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

export const lostIn = (tick: Tick): number =>
  Object.values(tick.dropped).reduce((sum, lost) => sum + lost, 0);

/** Where no run measured: no line is drawn there. In pixels of the canvas. */
function gaps(plot: uPlot, ticks: readonly Tick[], known: uPlot.Series.Gaps): uPlot.Series.Gaps {
  const at = (second: number): number => Math.round(plot.valToPos(second, "x", true));
  const all = [...known];
  for (const [index, tick] of ticks.entries()) {
    const before = ticks[index - 1];
    if (before === undefined) continue;
    const missing = tick.t_ms - before.t_ms - 1000 * tick.interval_s;
    if (missing > 1500 * Math.max(tick.interval_s, before.interval_s)) all.push([at(before.t_ms / 1000), at(tick.t_ms / 1000)]);
  }
  return all.sort(([one], [other]) => one - other);
}

/** Times, then a row of values for each line; sums from the bottom where stacked. */
function columns(ticks: readonly Tick[], lines: readonly Line[], stacked: boolean): uPlot.AlignedData {
  const times = ticks.map((tick) => tick.t_ms / 1000);
  const rows = lines.map((line) => ticks.map(line.value));
  if (stacked) {
    for (let row = 1; row < rows.length; row += 1) {
      const below = rows[row - 1];
      rows[row] = (rows[row] ?? []).map((value, index) => (value ?? 0) + (below?.[index] ?? 0));
    }
    // Drawn from the top of the stack down, each over the one before.
    rows.reverse();
  }
  return [times, ...rows];
}

/** The time axis: the range, but no more emptiness than a minute before the first interval. */
function timeLimits(ticks: readonly Tick[], seconds: number): [number, number] {
  const last = ticks.at(-1);
  const first = ticks[0];
  if (last === undefined || first === undefined) return [0, 1];
  const end = last.t_ms / 1000;
  const least = 60 * Math.min(1, last.interval_s);
  const start = Math.min(first.t_ms / 1000, end - least);
  return [seconds > 0 ? Math.max(start, end - seconds) : start, end];
}

/** Shades the intervals with losses, behind the lines. */
function shadeLosses(plot: uPlot, ticks: readonly Tick[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = colour("loss");
  for (const tick of ticks) {
    if (lostIn(tick) === 0) continue;
    const end = plot.valToPos(tick.t_ms / 1000, "x", true);
    const start = Math.max(bbox.left, plot.valToPos(tick.t_ms / 1000 - tick.interval_s, "x", true));
    ctx.fillRect(start, bbox.top, Math.max(1, end - start), bbox.height);
  }
  ctx.restore();
}

export function axis(): Partial<uPlot.Axis> {
  const grid = colour("grid");
  return {
    stroke: colour("muted"),
    font: FONT,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    border: { show: false },
    gap: 6,
  };
}

function timeMarks(splits: readonly number[], step: number): string[] {
  return splits.map((second) => format.clock(second * 1000, zone.peek(), step < 60));
}

function options(props: Options, width: number): uPlot.Options {
  const { lines, log = false, stacked = false } = props;
  const drawn = stacked ? [...lines].reverse() : lines;
  return {
    width,
    height: HEIGHT,
    padding: [8, 14, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      sync: { key: SYNC, setSeries: false },
      points: { show: !stacked, size: 7 },
    },
    tzDate: (second) =>
      zone.peek() === "utc" ? uPlot.tzDate(new Date(second * 1000), "Etc/UTC") : new Date(second * 1000),
    scales: {
      x: { time: true, range: () => timeLimits(view.peek(), reach.peek()) },
      y: log
        ? { distr: 3, range: (_plot, low, high) => logLimits(low, high, [1e5, 1e8]) }
        : {
            range: (_plot, _low, high) =>
              high === null || !(high > 0) ? [0, 1] : uPlot.rangeNum(0, high, { min: { pad: 0, hard: 0 }, max: { pad: 0.08 } }),
          },
    },
    axes: [
      { ...axis(), space: 62, size: 26, incrs: STEPS, values: (_plot, splits, _axis, _space, step) => timeMarks(splits, step) },
      {
        ...axis(),
        size: 74,
        space: 30,
        values: (_plot, splits) => splits.map((value) => (value === null ? "" : props.mark(value))),
        ...(log
          ? {
              splits: (_plot: uPlot, _axis: number, low: number, high: number) => logMarks(low, high),
              filter: (_plot: uPlot, splits: number[]) => splits,
            }
          : {}),
      },
    ],
    series: [
      {},
      ...drawn.map((line): uPlot.Series => {
        const stroke = colour(line.colour);
        return stacked
          ? { stroke, fill: stroke, width: 0, points: { show: false } }
          : {
              stroke,
              width: 1.75,
              gaps: (plot, _series, _from, _to, known) => gaps(plot, view.peek(), known),
              ...(line.dash === undefined ? {} : { dash: line.dash }),
              ...(lines.length === 1 ? { fill: `${stroke}22` } : {}),
              // Alone between two gaps a value would be no line.
              points: { show: (_plot, _series, from, to) => to - from < 1, size: 4 },
            };
      }),
    ],
    hooks: {
      drawClear: [(plot) => shadeLosses(plot, view.peek())],
      setCursor: [
        (plot) => {
          cursor.value = plot.cursor.idx ?? null;
        },
      ],
    },
  };
}

/** Moves the shared pointer with the arrow keys. */
function step(plot: uPlot, event: KeyboardEvent): void {
  const last = view.peek().length - 1;
  const at = cursor.peek() ?? last;
  const to: Record<string, number | null> = {
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    Home: 0,
    End: last,
    Escape: null,
  };
  const index = to[event.key];
  if (index === undefined || last < 0) return;
  event.preventDefault();
  if (index === null) {
    plot.setCursor({ left: -10, top: -10 });
    return;
  }
  const tick = view.peek()[Math.min(last, Math.max(0, index))];
  if (tick !== undefined) plot.setCursor({ left: plot.valToPos(tick.t_ms / 1000, "x"), top: 10 });
}

/** A chart; its intervals are of the kind that its lines read. */
export function TimeChart<T extends Tick>({ lines, ...rest }: Props<T>) {
  // All data are of the kind in the snapshot, and a page is made for one kind.
  const props: Options = { ...rest, lines: lines as readonly unknown[] as readonly Line[] };
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    // Colours and time zone are fixed when a plot is made: another one for each.
    const stop = effect(() => {
      void dark.value;
      void zone.value;
      untracked(() => {
        plot.current?.destroy();
        const data = columns(view.value, props.lines, props.stacked === true);
        plot.current = new uPlot(options(props, element.clientWidth), data, element);
      });
    });
    const feed = effect(() => {
      void reach.value;
      plot.current?.setData(columns(view.value, props.lines, props.stacked === true));
    });
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      feed();
      stop();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  return (
    <section class="card" aria-labelledby={`${props.id}-title`} data-chart={props.id}>
      <header class="card-head">
        <h2 id={`${props.id}-title`}>
          {props.title} <span class="unit">{props.unit}</span>
        </h2>
        <At />
      </header>
      <Legend lines={props.lines} show={props.show} />
      <div
        class="plot"
        ref={box}
        tabIndex={0}
        role="img"
        aria-label={`${props.title} over time. Arrow keys move the pointer.`}
        onKeyDown={(event) => plot.current !== null && step(plot.current, event)}
        onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
      />
    </section>
  );
}

/** The interval under the pointer, else the last one. */
function usePointed() {
  return useComputed(() => {
    const ticks = view.value;
    const tick = cursor.value === null ? undefined : ticks[cursor.value];
    return tick ?? ticks.at(-1) ?? null;
  });
}

/** The time under the pointer. */
function At() {
  const tick = usePointed().value;
  if (tick === null || cursor.value === null) return null;
  return (
    <span class="at">
      {format.clock(tick.t_ms, zone.value)}
      {lostIn(tick) > 0 ? <b class="at-loss"> {format.count(lostIn(tick))} lost</b> : null}
    </span>
  );
}

function Legend({ lines, show }: { lines: readonly Line[]; show: (value: number) => string }) {
  const tick = usePointed().value;
  return (
    <ul class="legend">
      {lines.map((line) => {
        const value = tick === null ? null : line.value(tick);
        return (
          <li key={line.label}>
            <i class={`key c-${line.colour}`} />
            <span>{line.label}</span>
            <b>{value === null ? "–" : show(value)}</b>
          </li>
        );
      })}
    </ul>
  );
}
