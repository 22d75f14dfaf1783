// The HTTP API of the console: what the server sends, under the names it uses.
// The same types are in edges/console/src/api.rs; units are in the names, times are nanoseconds.

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

export type AlertState = "ok" | "pending" | "firing" | "resolved";

export interface AlertStatus {
  rule: string;
  state: AlertState;
  value: number | null;
  threshold: number;
  unit?: string;
  since_ms: number;
}

export interface Tick {
  id: number;
  t_ms: number;
  interval_s: number;
  packets: number;
  bytes: number;
  requests: number;
  responses: number;
  complete: number;
  unanswered: number;
  orphans: number;
  retransmissions: number;
  codes: Readonly<Record<string, number>>;
  methods: Readonly<Record<string, number>>;
  response_time_ns: ResponseTimes | null;
  dropped: Dropped;
  dropped_total: Dropped;
  table: TableState;
  alerts: readonly AlertStatus[];
}

export interface Meta {
  version: string;
  source: string;
  live: boolean;
  interval_s: number;
  started_ms: number;
  finished: boolean;
}

export interface Totals {
  packets: number;
  bytes: number;
  requests: number;
  unanswered: number;
  retransmissions: number;
  dropped: Dropped;
}

export interface Snapshot {
  meta: Meta;
  ticks: Tick[];
  totals: Totals;
}

export const GROUPS = ["host", "url", "server", "client"] as const;
export type By = (typeof GROUPS)[number];

export const WINDOWS = ["60", "300", "all"] as const;
export type Window = (typeof WINDOWS)[number];

/** What the server can sort by; the page sorts the rows it has by everything else. */
export const SERVER_SORTS = ["requests", "errors", "p95", "bytes", "unanswered"] as const;
export type ServerSort = (typeof SERVER_SORTS)[number];

export interface TopRow {
  key: string;
  requests: number;
  errors_4xx: number;
  errors_5xx: number;
  unanswered: number;
  bytes: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  max: number | null;
}

export interface TopTable {
  by: By;
  window: Window;
  rows: TopRow[];
  floor: number;
}

export interface Ccdf {
  count: number;
  points: [number, number][];
}

/** The server answered, but not with what was asked for. */
export class Refused extends Error {}

async function json<T>(path: string): Promise<T> {
  const response = await fetch(path, { cache: "no-store", credentials: "same-origin" });
  if (response.status === 401) throw new Refused("the address needs ?token=… at its end");
  if (!response.ok) throw new Refused(`status ${response.status}`);
  return (await response.json()) as T;
}

export const fetchSnapshot = (): Promise<Snapshot> => json("/api/snapshot");

export const fetchTop = (by: By, sort: ServerSort, window: Window, n: number): Promise<TopTable> =>
  json(`/api/top?by=${by}&sort=${sort}&window=${window}&n=${n}`);

export const fetchCcdf = (window: Window): Promise<Ccdf> => json(`/api/ccdf?window=${window}`);
