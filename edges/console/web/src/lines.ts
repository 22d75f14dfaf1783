// What the charts over time show of an interval.

import type { FlowTick, GatewayTick, HttpTick, LoadTick, ResponseTimes, Tick } from "./api";
import type { Line } from "./chart";

const perSecond = (count: number, tick: Tick): number => (tick.interval_s > 0 ? count / tick.interval_s : 0);

type Counter = "requests" | "unanswered" | "orphans" | "retransmissions";
const rate = (name: Counter) => (tick: HttpTick): number => perSecond(tick[name], tick);

export const requests: readonly Line<HttpTick>[] = [{ label: "requests", colour: "blue", value: rate("requests") }];

const above = (times: ResponseTimes | null, name: keyof ResponseTimes): number | null =>
  // A logarithmic scale has no place for zero.
  times === null ? null : Math.max(1, times[name]);

const quantile = (name: keyof ResponseTimes) => (tick: HttpTick): number | null => above(tick.response_time_ns, name);

export const percentiles: readonly Line<HttpTick>[] = [
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

const status = (first: string) => (tick: HttpTick): number => perSecond(inClass(tick.codes, first), tick);

/** Errors at the bottom, where their height can be read, and in the colours that are seen first. */
export const statuses: readonly Line<HttpTick>[] = [
  { label: "5xx", colour: "red", value: status("5") },
  { label: "4xx", colour: "orange", value: status("4") },
  { label: "3xx", colour: "calmer", value: status("3") },
  { label: "2xx", colour: "calm", value: status("2") },
];

export const packets: readonly Line[] = [{ label: "packets", colour: "green", value: (tick) => perSecond(tick.packets, tick) }];

export const throughput: readonly Line[] = [
  { label: "on the wire", colour: "green", value: (tick) => perSecond(tick.bytes * 8, tick) },
];

export const unanswered: readonly Line<HttpTick>[] = [
  { label: "requests without response", colour: "purple", value: rate("unanswered") },
  { label: "responses without request", colour: "grey", value: rate("orphans"), dash: [5, 3] },
];

export const retransmissions: readonly Line<HttpTick>[] = [
  { label: "heads sent again", colour: "orange", value: rate("retransmissions") },
];

// Flows.

type FlowCounter = "new_flows" | "ended_tcp" | "ended_udp" | "out_of_order" | "zero_windows";
const flowRate = (name: FlowCounter) => (tick: FlowTick): number => perSecond(tick[name], tick);

export const flows: readonly Line<FlowTick>[] = [
  { label: "new", colour: "blue", value: flowRate("new_flows") },
  { label: "TCP ended", colour: "orange", value: flowRate("ended_tcp") },
  { label: "UDP ended", colour: "green", value: flowRate("ended_udp"), dash: [5, 3] },
];

export const active: readonly Line<FlowTick>[] = [
  { label: "in the table", colour: "blue", value: (tick) => tick.table.entries },
];

export const roundTrips: readonly Line<FlowTick>[] = [
  { label: "server p95", colour: "red", value: (tick) => above(tick.server_rtt_ns, "p95") },
  { label: "server p50", colour: "orange", value: (tick) => above(tick.server_rtt_ns, "p50"), dash: [5, 3] },
  { label: "client p95", colour: "blue", value: (tick) => above(tick.client_rtt_ns, "p95") },
  { label: "client p50", colour: "sky", value: (tick) => above(tick.client_rtt_ns, "p50"), dash: [5, 3] },
];

export const handshakes: readonly Line<FlowTick>[] = [
  { label: "p95", colour: "orange", value: (tick) => above(tick.handshake_ns, "p95") },
  { label: "p50", colour: "blue", value: (tick) => above(tick.handshake_ns, "p50") },
];

const share = (part: number, whole: number): number | null => (whole > 0 ? part / whole : null);

export const losses: readonly Line<FlowTick>[] = [
  { label: "sent again", colour: "red", value: (tick) => share(tick.retransmissions, tick.data_segments) },
  { label: "out of order", colour: "sky", value: (tick) => share(tick.out_of_order, tick.data_segments) },
];

const ends = (name: keyof FlowTick["ends"]) => (tick: FlowTick): number => perSecond(tick.ends[name], tick);

/** What failed at the bottom, where its height can be read. */
export const states: readonly Line<FlowTick>[] = [
  { label: "unanswered", colour: "red", value: ends("unanswered") },
  { label: "reset", colour: "orange", value: ends("reset") },
  { label: "other", colour: "grey", value: (tick) => perSecond(tick.ends.idle + tick.ends.open + tick.ends.evicted + tick.ends.reused, tick) },
  { label: "closed", colour: "calm", value: ends("closed") },
];

export const flowRates: readonly Line<FlowTick>[] = [
  { label: "p99", colour: "orange", value: (tick) => above(tick.throughput_bps, "p99") },
  { label: "p50", colour: "blue", value: (tick) => above(tick.throughput_bps, "p50") },
];

// A gateway.

const eventRate = (kind: string) => (tick: GatewayTick): number => perSecond(tick.kinds[kind] ?? 0, tick);

export const stopped: readonly Line<GatewayTick>[] = [
  { label: "for content", colour: "red", value: (tick) => perSecond(tick.blocked, tick) },
  { label: "by rule", colour: "orange", value: (tick) => perSecond(tick.refused, tick) },
];

export const found: readonly Line<GatewayTick>[] = [
  { label: "infected", colour: "red", value: eventRate("infected") },
  { label: "keywords", colour: "orange", value: eventRate("keyword") },
  { label: "file names", colour: "purple", value: eventRate("file_name") },
  { label: "not scanned", colour: "grey", value: eventRate("unscanned"), dash: [5, 3] },
];

export const audited: readonly Line<GatewayTick>[] = [
  { label: "decided", colour: "blue", value: eventRate("decided") },
  { label: "messages", colour: "green", value: eventRate("message") },
  { label: "files", colour: "purple", value: eventRate("file"), dash: [5, 3] },
];

// A load generator.

type LoadCounter = "planned" | "started" | "completed" | "failed" | "requests" | "responses";
const loadRate = (name: LoadCounter) => (tick: LoadTick): number => perSecond(tick[name], tick);

/** The schedule is the thin line: what starts ought to cover it. */
export const sessions: readonly Line<LoadTick>[] = [
  { label: "failed", colour: "red", value: loadRate("failed") },
  { label: "started", colour: "blue", value: loadRate("started") },
  { label: "completed", colour: "green", value: loadRate("completed") },
  { label: "planned", colour: "grey", value: loadRate("planned"), dash: [5, 3] },
];

export const exchanges: readonly Line<LoadTick>[] = [
  { label: "requests", colour: "blue", value: loadRate("requests") },
  { label: "responses", colour: "green", value: loadRate("responses"), dash: [5, 3] },
];

/** Both times beside each other: what is between them is waiting that the server caused or the generator. */
export const loadTimes: readonly Line<LoadTick>[] = [
  { label: "from schedule p99", colour: "red", value: (tick) => above(tick.response_time_ns, "p99") },
  { label: "from sending p99", colour: "orange", value: (tick) => above(tick.service_time_ns, "p99"), dash: [5, 3] },
  { label: "from schedule p50", colour: "blue", value: (tick) => above(tick.response_time_ns, "p50") },
  { label: "from sending p50", colour: "sky", value: (tick) => above(tick.service_time_ns, "p50"), dash: [5, 3] },
];

export const lags: readonly Line<LoadTick>[] = [
  { label: "max", colour: "red", value: (tick) => above(tick.schedule_lag_ns, "max") },
  { label: "p99", colour: "orange", value: (tick) => above(tick.schedule_lag_ns, "p99") },
  { label: "p50", colour: "blue", value: (tick) => above(tick.schedule_lag_ns, "p50") },
];

const loadStatus = (first: string) => (tick: LoadTick): number => perSecond(inClass(tick.codes, first), tick);

export const loadStatuses: readonly Line<LoadTick>[] = [
  { label: "5xx", colour: "red", value: loadStatus("5") },
  { label: "4xx", colour: "orange", value: loadStatus("4") },
  { label: "3xx", colour: "calmer", value: loadStatus("3") },
  { label: "2xx", colour: "calm", value: loadStatus("2") },
];

export const openSessions: readonly Line<LoadTick>[] = [
  { label: "open", colour: "blue", value: (tick) => tick.table.entries },
];
