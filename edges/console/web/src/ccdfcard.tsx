// The share of transactions slower than a time, both axes logarithmic; two windows over each other.

import { batch, effect, signal, untracked } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { fetchCcdf, WINDOWS, type Ccdf, type Window } from "./api";
import { plottable, slowerThan } from "./ccdf";
import { axis } from "./chart";
import * as format from "./format";
import { logLimits, logMarks } from "./log";
import { colour, type Colour } from "./palette";
import { poll } from "./poll";
import { ccdfOverlay, ccdfWindow, dark, type Overlay } from "./state";

const HEIGHT = 196;
const NAMES: Readonly<Record<Overlay, string>> = { 60: "last minute", 300: "last 5 min", all: "whole run", none: "none" };
const COLOURS: readonly [Colour, Colour] = ["blue", "orange"];

const main = signal<Ccdf | null>(null);
const over = signal<Ccdf | null>(null);
/** The time under the pointer, nanoseconds. */
const pointed = signal<number | null>(null);

async function ask([window, overlay]: readonly [Window, Overlay]): Promise<void> {
  const [one, other] = await Promise.all([
    fetchCcdf(window),
    overlay === "none" || overlay === window ? null : fetchCcdf(overlay),
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
      { ...axis(), ...marks, space: 56, size: 26, values: (_plot, splits) => thin(splits, width).map((ns) => (ns === null ? "" : format.time(ns))) },
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
  useEffect(() => poll(() => [ccdfWindow.value, ccdfOverlay.value] as const, ask), []);
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
  const both: [Overlay, Ccdf | null][] = [[ccdfWindow.value, main.value], [ccdfOverlay.value, over.value]];
  return (
    <section class="card" aria-labelledby="ccdf-title" data-chart="ccdf">
      <header class="card-head">
        <h2 id="ccdf-title">Slower than <span class="unit">share of transactions (CCDF), log-log</span></h2>
        <span class="choices">
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
        {pointed.value === null ? null : <li class="at">slower than {format.time(pointed.value)}</li>}
      </ul>
      <div class="plot" ref={box} role="img" aria-label="Share of transactions slower than a time" />
    </section>
  );
}

/** The share at the pointer, else how many there are. */
function reading(ccdf: Ccdf): string {
  if (pointed.value === null) return format.count(ccdf.count);
  const share = slowerThan(ccdf.points, pointed.value);
  return share === null ? "–" : format.percent(share);
}
