// The connection: a snapshot first, then an event per interval. The browser reconnects by itself and
// names the last event it has; what is missing after that is fetched again.

import { fetchSnapshot, Refused, type Tick } from "./api";
import { watchPast } from "./past";
import { append, link, meta, now, refusal, take, ticks } from "./state";

/** Intervals that come within this time are drawn at once. */
const TOGETHER_MS = 50;

let events: EventSource | null = null;
let retry: ReturnType<typeof setTimeout> | undefined;
let attempts = 0;
/** Only one snapshot on the way at a time. */
let loading = false;

async function load(): Promise<boolean> {
  if (loading) return true;
  loading = true;
  try {
    const snapshot = await fetchSnapshot();
    take(snapshot.meta, snapshot.totals, snapshot.ticks);
    refusal.value = "";
    return true;
  } catch (error) {
    refusal.value = error instanceof Refused ? `The server refuses: ${error.message}.` : "";
    return false;
  } finally {
    loading = false;
  }
}

function later(): void {
  clearTimeout(retry);
  // 1, 2, 4, 8 s, then every 10.
  const wait = Math.min(10_000, 1000 * 2 ** attempts);
  attempts += 1;
  retry = setTimeout(() => void connect(), wait);
}

function ended(): void {
  events?.close();
  events = null;
  clearTimeout(retry);
  if (meta.value !== null) meta.value = { ...meta.value, finished: true };
  link.value = "ended";
}

function listen(): void {
  // From where the snapshot ends; when the browser reconnects, it names its last event itself.
  const source = new EventSource(`/api/stream?after=${ticks.peek().at(-1)?.id ?? 0}`);
  let lost = false;
  // A file gives intervals much faster than they can be drawn: they are drawn together.
  let waiting: Tick[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const fresh = waiting;
    waiting = [];
    if (source === events && !append(fresh)) void load();
  };
  events = source;
  source.addEventListener("open", () => {
    attempts = 0;
    link.value = "open";
    // The server may have been started anew, or have more than it sends again.
    if (lost) void load();
    lost = false;
  });
  source.addEventListener("tick", (event) => {
    waiting.push(JSON.parse((event as MessageEvent<string>).data) as Tick);
    timer ??= setTimeout(flush, TOGETHER_MS);
  });
  source.addEventListener("end", () => {
    flush();
    ended();
    void load();
  });
  source.addEventListener("error", () => {
    lost = true;
    if (source !== events) return;
    link.value = "lost";
    // CLOSED: the answer was no stream; the browser does not try again.
    if (source.readyState === EventSource.CLOSED) later();
  });
}

/** Connects, or connects anew at once. */
export async function connect(): Promise<void> {
  clearTimeout(retry);
  events?.close();
  events = null;
  if (!(await load())) {
    link.value = meta.value === null ? "connecting" : "lost";
    later();
    return;
  }
  if (meta.value?.finished === true) link.value = "ended";
  else listen();
}

/** Starts the connection and the clock. */
export function start(): void {
  void connect();
  watchPast();
  setInterval(() => {
    now.value = Date.now();
  }, 500);
}
