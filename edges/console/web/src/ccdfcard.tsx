// The share of transactions slower than a time, both axes logarithmic; two windows over each other.

import { batch, effect, signal, untracked } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { fetchCcdf, WINDOWS, type Ccdf, type Kind, type Window } from "./api";
import { plottable, slowerThan } from "./ccdf";
import { axis } from "./chart";
import * as format from "./format";
import { logLimits, logMarks } from "./log";
import { colour, type Colour } from "./palette";
import { poll } from "./poll";
import { ccdfOf, ccdfOverlay, ccdfWindow, chosen, dark, kind, type Overlay } from "./state";

const HEIGHT = 196;
const NAMES: Readonly<Record<Overlay, string>> = { 60: "last minute", 300: "last 5 min", all: "whole run", none: "none" };
const COLOURS: readonly [Colour, Colour] = ["blue", "orange"];

interface Quantity {
  id: string;
  name: string;
  title: string;
  /** Of what it is a share. */
  of: string;
  /** A value, and what to call being above it. */
  show: (value: number) => string;
  above: string;
}

const timed = (id: string, name: string, of: string): Quantity => ({ id, name, title: "Slower than", of, show: format.time, above: "slower than" });
const flow = (id: string, name: string): Quantity => timed(id, name, "flows");
const QUANTITIES: Readonly<Record<Kind, readonly Quantity[]>> = {
  http: [timed("response_time", "response time", "transactions")],
  flows: [
    flow("rtt", "round trip"),
    flow("server_rtt", "server half"),
    flow("client_rtt", "client half"),
    flow("handshake", "handshake"),
    { ...flow("duration", "duration"), title: "Longer than", above: "longer than" },
    { id: "throughput", name: "throughput", title: "Faster than", of: "flows", show: (value) => format.si(value, "bit/s"), above: "faster than" },
  ],
  gateway: [{ id: "file_size", name: "file size", title: "Larger than", of: "files", show: (value) => format.si(value, "B"), above: "larger than" }],
  load: [
    { ...timed("response_time", "response time", "responses"), title: "Slower than, from schedule" },
    { ...timed("service_time", "service time", "responses"), title: "Slower than, from sending" },
    timed("connect", "connect", "handshakes"),
    { ...timed("schedule_lag", "schedule lag", "sessions"), title: "Later than", above: "later than" },
  ],
};

const all = (): readonly Quantity[] => QUANTITIES[kind.value];
const quantity = (): Quantity => {
  const id = chosen(all().map((one) => one.id), ccdfOf.value);
  return all().find((one) => one.id === id) ?? timed("response_time", "response time", "transactions");
};

const main = signal<Ccdf | null>(null);
const over = signal<Ccdf | null>(null);
/** The time under the pointer, nanoseconds. */
const pointed = signal<number | null>(null);

async function ask([of, window, overlay]: readonly [string, Window, Overlay]): Promise<void> {
  const [one, other] = await Promise.all([
    fetchCcdf(of, window),
    overlay === "none" || overlay === window ? null : fetchCcdf(of, overlay),
  ]);
  batch(() => {
    main.value = one;
    over.value = other;
  });
}

function columns(): uPlot.AlignedData {
  const tables = [main.value, over.value].map((ccdf): uPlot.AlignedData => {
    const points = plottable(ccdf?.points ?? []);
    return [points.map(([ns]) => ns), points.map(([, share]) => share)];
  });
  return uPlot.join(tables);
}

function options(width: number): uPlot.Options {
  const log = (fallback: [number, number]): uPlot.Scale => ({
    time: false,
    distr: 3,
    range: (_plot, low, high) => logLimits(low, high, fallback),
  });
  const marks = {
    splits: (_plot: uPlot, _axis: number, low: number, high: number) => logMarks(low, high),
    filter: (_plot: uPlot, splits: number[]) => splits,
  };
  return {
    width,
    height: HEIGHT,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: {
      x: log([1e5, 1e9]),
      y: { ...log([1e-3, 1]), range: (_plot, low) => [Math.min(0.1, logLimits(low, 1, [1e-3, 1])[0]), 1] },
    },
    axes: [
      { ...axis(), ...marks, space: 56, size: 26, values: (_plot, splits) => thin(splits, width).map((ns) => (ns === null ? "" : quantity().show(ns))) },
      { ...axis(), ...marks, space: 22, size: 62, values: (_plot, splits) => splits.map((share) => format.powerOfTen(share)) },
    ],
    series: [
      {},
      ...COLOURS.map((name, index): uPlot.Series => ({
        stroke: colour(name),
        width: 1.75,
        spanGaps: true,
        points: { show: false },
        ...(index === 1 ? { dash: [6, 3] } : {}),
      })),
    ],
    hooks: {
      setCursor: [
        (plot) => {
          const { left } = plot.cursor;
          pointed.value = left === undefined || left < 0 ? null : plot.posToVal(left, "x");
        },
      ],
    },
  };
}

/** Labels only where there is room for them. */
function thin(splits: readonly number[], width: number): (number | null)[] {
  const room = Math.max(2, Math.floor((width - 90) / 56));
  if (splits.length <= room) return [...splits];
  return splits.map((value) => (format.powerOfTen(value) === "" ? null : value));
}

export function CcdfCard() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => poll(() => [quantity().id, ccdfWindow.value, ccdfOverlay.value] as const, ask), []);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    let plot: uPlot | null = null;
    const make = (): void => {
      plot?.destroy();
      plot = new uPlot(options(element.clientWidth), columns(), element);
    };
    const stop = effect(() => {
      void dark.value;
      void ccdfOf.value;
      untracked(make);
    });
    const feed = effect(() => plot?.setData(columns()));
    const watch = new ResizeObserver(make);
    watch.observe(element);
    return () => {
      watch.disconnect();
      feed();
      stop();
      plot?.destroy();
    };
  }, []);
  const shown = quantity();
  const both: [Overlay, Ccdf | null][] = [[ccdfWindow.value, main.value], [ccdfOverlay.value, over.value]];
  return (
    <section class="card" aria-labelledby="ccdf-title" data-chart="ccdf">
      <header class="card-head">
        <h2 id="ccdf-title">{shown.title} <span class="unit">share of {shown.of} (CCDF), log-log</span></h2>
        <span class="choices">
          {all().length < 2 ? null : (
            <select id="ccdf-of" aria-label="Quantity" value={shown.id} onChange={(event) => (ccdfOf.value = event.currentTarget.value === all()[0]?.id ? "" : event.currentTarget.value)}>
              {all().map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
            </select>
          )}
          <label>
            <span class="unseen">Window</span>
            <select id="ccdf-window" value={ccdfWindow.value} onChange={(event) => (ccdfWindow.value = event.currentTarget.value as Window)}>
              {WINDOWS.map((window) => <option key={window} value={window}>{NAMES[window]}</option>)}
            </select>
          </label>
          <label>
            against{" "}
            <select id="ccdf-overlay" aria-label="Second window" value={ccdfOverlay.value} onChange={(event) => (ccdfOverlay.value = event.currentTarget.value as Overlay)}>
              {(["none", ...WINDOWS] as const).map((window) => <option key={window} value={window}>{NAMES[window]}</option>)}
            </select>
          </label>
        </span>
      </header>
      <ul class="legend">
        {both.map(([window, ccdf], index) =>
          ccdf === null ? null : (
            <li key={index}>
              <i class={`key c-${COLOURS[index as 0 | 1]}`} />
              <span>{NAMES[window]}</span>
              <b>{reading(ccdf)}</b>
            </li>
          ))}
        {pointed.value === null ? null : <li class="at">{shown.above} {shown.show(pointed.value)}</li>}
      </ul>
      <div class="plot" ref={box} role="img" aria-label={`Share of ${shown.of} ${shown.above} a value`} />
    </section>
  );
}

/** The share at the pointer, else how many there are. */
function reading(ccdf: Ccdf): string {
  if (pointed.value === null) return format.count(ccdf.count);
  const share = slowerThan(ccdf.points, pointed.value);
  return share === null ? "–" : format.percent(share);
}
