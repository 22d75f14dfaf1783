// What the charts over time show of an interval.

import type { ResponseTimes, Tick } from "./api";
import type { Line } from "./chart";

const perSecond = (count: number, tick: Tick): number => (tick.interval_s > 0 ? count / tick.interval_s : 0);

type Counter = "requests" | "packets" | "unanswered" | "orphans" | "retransmissions";
const rate = (name: Counter) => (tick: Tick): number => perSecond(tick[name], tick);

export const requests: readonly Line[] = [{ label: "requests", colour: "blue", value: rate("requests") }];

const quantile = (name: keyof ResponseTimes) => (tick: Tick): number | null => {
  const value = tick.response_time_ns?.[name] ?? null;
  // A logarithmic scale has no place for zero.
  return value === null ? null : Math.max(1, value);
};

export const percentiles: readonly Line[] = [
  { label: "p99.9", colour: "red", value: quantile("p999") },
  { label: "p99", colour: "orange", value: quantile("p99") },
  { label: "p90", colour: "blue", value: quantile("p90") },
  { label: "p50", colour: "sky", value: quantile("p50") },
];

/** Final responses of a class: the first digit of the code. */
export function inClass(codes: Readonly<Record<string, number>>, first: string): number {
  let sum = 0;
  for (const [code, count] of Object.entries(codes)) if (code.startsWith(first)) sum += count;
  return sum;
}

const status = (first: string) => (tick: Tick): number => perSecond(inClass(tick.codes, first), tick);

/** Errors at the bottom, where their height can be read, and in the colours that are seen first. */
export const statuses: readonly Line[] = [
  { label: "5xx", colour: "red", value: status("5") },
  { label: "4xx", colour: "orange", value: status("4") },
  { label: "3xx", colour: "calmer", value: status("3") },
  { label: "2xx", colour: "calm", value: status("2") },
];

export const packets: readonly Line[] = [{ label: "packets", colour: "green", value: rate("packets") }];

export const throughput: readonly Line[] = [
  { label: "on the wire", colour: "green", value: (tick) => perSecond(tick.bytes * 8, tick) },
];

export const unanswered: readonly Line[] = [
  { label: "requests without response", colour: "purple", value: rate("unanswered") },
  { label: "responses without request", colour: "grey", value: rate("orphans"), dash: [5, 3] },
];

export const retransmissions: readonly Line[] = [
  { label: "heads sent again", colour: "orange", value: rate("retransmissions") },
];
