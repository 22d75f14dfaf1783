// The HTTP API of the console: what the server sends, under the names it uses.
// The same types are in edges/live/src/api; units are in the names, times are nanoseconds.

import { signal } from "@preact/signals";

/** A distribution in a few figures; times in nanoseconds, rates in bits per second. */
export interface ResponseTimes {
  count: number;
  min: number;
  mean: number;
  p50: number;
  p90: number;
  p95: number;
  p99: number;
  p999: number;
  max: number;
}

export type Dropped = Readonly<Record<string, number>>;

export interface TableState {
  entries: number;
  capacity: number;
}

export type AlertState = "ok" | "pending" | "firing" | "resolved" | "no_data";

export interface AlertStatus {
  rule: string;
  state: AlertState;
  value: number | null;
  threshold: number;
  unit?: string;
  since_ms: number;
}

/** What every interval has, whatever the records are. */
export interface Tick {
  id: number;
  t_ms: number;
  interval_s: number;
  packets: number;
  bytes: number;
  dropped: Dropped;
  dropped_total: Dropped;
  table: TableState;
  alerts: readonly AlertStatus[];
}

export interface HttpTick extends Tick {
  requests: number;
  responses: number;
  complete: number;
  unanswered: number;
  orphans: number;
  retransmissions: number;
  codes: Readonly<Record<string, number>>;
  methods: Readonly<Record<string, number>>;
  versions: Readonly<Record<string, number>>;
  grpc_statuses: Readonly<Record<string, number>>;
  response_time_ns: ResponseTimes | null;
}

export interface FlowTick extends Tick {
  new_flows: number;
  ended: number;
  ended_tcp: number;
  ended_udp: number;
  midstream: number;
  ends: Readonly<Record<"closed" | "reset" | "idle" | "unanswered" | "evicted" | "reused" | "open", number>>;
  flow_packets: number;
  flow_bytes: number;
  data_segments: number;
  retransmissions: number;
  payload_bytes: number;
  retransmitted_bytes: number;
  out_of_order: number;
  zero_windows: number;
  anomalies: Readonly<Record<string, number>>;
  applications: Readonly<Record<string, { flows: number; bytes: number }>>;
  rtt_ns: ResponseTimes | null;
  server_rtt_ns: ResponseTimes | null;
  client_rtt_ns: ResponseTimes | null;
  handshake_ns: ResponseTimes | null;
  throughput_bps: ResponseTimes | null;
  duration_ns: ResponseTimes | null;
}

export interface GatewayTick extends Tick {
  events: number;
  kinds: Readonly<Record<string, number>>;
  applications: Readonly<Record<string, number>>;
  rules: Readonly<Record<string, number>>;
  refused: number;
  blocked: number;
  transferred_bytes: number;
  /** Bytes. */
  file_size: ResponseTimes | null;
}

export interface LoadTick extends Tick {
  planned: number;
  started: number;
  completed: number;
  failed: number;
  causes: Readonly<Record<string, number>>;
  requests: number;
  responses: number;
  unanswered: number;
  codes: Readonly<Record<string, number>>;
  pages: number;
  connections: number;
  request_bytes: number;
  response_bytes: number;
  response_time_ns: ResponseTimes | null;
  service_time_ns: ResponseTimes | null;
  connect_ns: ResponseTimes | null;
  schedule_lag_ns: ResponseTimes | null;
}

export type Kind = "http" | "flows" | "gateway" | "load";

export interface Meta {
  kind: Kind;
  version: string;
  source: string;
  live: boolean;
  interval_s: number;
  started_ms: number;
  finished: boolean;
  /** The statistics of several probes, listed by /api/probes. */
  merged?: boolean;
  /** `/archive` shows what was measured before. */
  archive?: boolean;
  /** `/api/history` has the last day. */
  history?: boolean;
  /** There are tables of countries and AS numbers. */
  places?: boolean;
}

/** One of the probes that the statistics are merged from. */
export interface Probe {
  name: string;
  last_seen_ms: number;
  t_ms: number;
  runs: number;
  packets: number;
  bytes: number;
  packets_per_s: number;
  dropped: Dropped;
  missing_intervals: number;
  late_intervals: number;
  duplicates: number;
  has_ended: boolean;
  is_stale: boolean;
}

export interface Probes {
  probes: readonly Probe[];
  sketches: number;
  /** Sketches of probes that nobody asked for. */
  left_out?: number;
  /** Messages that were no sketches, by cause. */
  refused: Readonly<Record<string, number>>;
  /** What is wrong with the connection to the broker. */
  fault: string | null;
}

export interface Totals {
  packets: number;
  bytes: number;
  dropped: Dropped;
}

export interface Snapshot {
  meta: Meta;
  ticks: Tick[];
  totals: Totals;
}

/** The last seconds of the day that is kept in a file. */
export interface Past {
  step_s: number;
  ticks: Tick[];
  /** Rows that were half written. */
  torn: number;
  /** Rows that were too large for the file. */
  too_large: number;
}

export const WINDOWS = ["60", "300", "all"] as const;
export type Window = (typeof WINDOWS)[number];

/** A key and its numbers, which depend on the kind of records. */
export interface TopRow extends Readonly<Record<string, string | number | null>> {
  key: string;
}

export interface TopTable {
  by: string;
  window: Window;
  rows: TopRow[];
  floor: number;
}

export interface Ccdf {
  count: number;
  points: [number, number][];
}

// The state of a gateway: edges/live/src/gateway/status.rs.

type Counts = Readonly<Record<string, number>>;

export interface ScannerStatus {
  address: string;
  is_reachable: boolean;
  version: string;
  scans: number;
  infected: number;
  failed: Counts;
  bytes: number;
  waiting: number;
  latency_us: Counts;
  last_error: string | null;
}

export interface VaultStatus {
  kept: number;
  parts: number;
  quarantined: number;
  bytes: number;
  open: number;
  lost_files: Counts;
  dropped_bytes: Counts;
  last_error: string | null;
}

export interface GatewayStatus {
  program: string;
  pid: number;
  uptime_s: number;
  config: string;
  reloads: number;
  fail: string;
  applications: Readonly<Record<string, Readonly<Record<"connections" | "packets" | "bytes" | "allowed" | "dropped" | "rejected" | "inspected" | "blocked", number>>>>;
  rules: Readonly<Record<string, { packets: number; bytes: number }>>;
  packets: number;
  bytes: number;
  connections: number;
  evicted: number;
  held: { packets: number; bytes: number; peak_packets: number };
  counts: Counts;
  events: Counts;
  unseen: number;
  events_lost: number;
  not_written: Counts;
  queues: readonly { number: number; waiting: number; dropped: number; user_dropped: number; total: number }[];
  scanner: ScannerStatus | null;
  vault: VaultStatus | null;
}

export interface GatewayEvent {
  id: number;
  t_ms: number;
  event: string;
  application: string;
  rule: string;
  client: string;
  server: string;
  protocol: string;
  action: string;
  verdict: string;
  file_name: string;
  message: string;
  detail: string;
  from: string;
  to: string;
  size: number | null;
}

export interface GatewayNow {
  status: GatewayStatus | null;
  status_ms: number;
  events: readonly GatewayEvent[];
}

// The state of a load: edges/live/src/load.rs.

export type LoadState = "waiting" | "running" | "stopping" | "ended" | "gone";

export interface Generator {
  name: string;
  state: LoadState;
  started: number;
  completed: number;
  failed: number;
  open: number;
  responses: number;
  sessions_per_s: number;
  responses_per_s: number;
  response_p99_ns: number | null;
  lag_p99_ns: number | null;
  fault: string | null;
}

export interface LoadStatus {
  role: string;
  target: string;
  arrivals: string;
  state: LoadState;
  begun_ms: number | null;
  duration_s: number | null;
  open: number;
  peak_open: number;
  /** Whether the server takes orders from this page. */
  may_control: boolean;
  generators: readonly Generator[];
}

/** Whether it is by a cookie that the page is shown, which can be dropped. */
export const loggedIn = signal(false);

/** Drops the cookie: the page is a form after it. */
export async function logOut(): Promise<void> {
  await fetch("/logout", { method: "POST", credentials: "same-origin", redirect: "manual" });
  location.reload();
}

/** The server answered, but not with what was asked for. */
export class Refused extends Error {}

async function json<T>(path: string): Promise<T> {
  const response = await fetch(path, { cache: "no-store", credentials: "same-origin" });
  if (response.status === 401) {
    // Logged out, or another token by now: at the same address there is a form.
    location.reload();
    throw new Refused("a token is needed");
  }
  if (response.headers.get("x-linkweir-login") === "cookie") loggedIn.value = true;
  if (!response.ok) throw new Refused(`status ${response.status}`);
  return (await response.json()) as T;
}

export const fetchSnapshot = (): Promise<Snapshot> => json("/api/snapshot");

export const fetchPast = (span: number): Promise<Past> => json(`/api/history?span=${span}`);

/** The last records behind a row or a rule. */
export interface Records {
  /** The expression of `--where` that they meet. */
  where: string;
  of: number;
  matching: number;
  records: readonly Readonly<Record<string, string | number>>[];
}

export type Behind = { by: string; key: string } | { rule: string };
export type Order = "newest" | "slowest";

export const fetchRecords = (behind: Behind, order: Order): Promise<Records> =>
  json(`/api/records?${new URLSearchParams({ ...behind, order }).toString()}`);

export const fetchTop = (by: string, sort: string, window: Window, n: number): Promise<TopTable> =>
  json(`/api/top?by=${by}&sort=${sort}&window=${window}&n=${n}`);

export const fetchCcdf = (of: string, window: Window): Promise<Ccdf> => json(`/api/ccdf?of=${of}&window=${window}`);

export const fetchProbes = (): Promise<Probes> => json("/api/probes");

export const fetchNow = (): Promise<GatewayNow> => json("/api/status");

export const fetchLoad = (): Promise<{ status: LoadStatus | null }> => json("/api/status");

/** Orders something; the field is what a page of another site cannot send. */
export async function order(what: "start" | "stop"): Promise<void> {
  const response = await fetch(`/api/${what}`, {
    method: "POST", cache: "no-store", credentials: "same-origin", headers: { "X-Linkweir-Order": what },
  });
  if (!response.ok) throw new Refused(`status ${response.status}`);
}
