// Everything the page knows, as signals; what a reader chose is kept in the address.

import { batch, computed, effect, signal } from "@preact/signals";
import { WINDOWS, type Kind, type Meta, type Tick, type Totals, type Window } from "./api";
import type { Zone } from "./format";

/** Intervals kept, whatever the range: an hour at one second. */
const KEEP = 3600;

export const RANGES = [60, 300, 900, 3600, 21600, 86400, 0] as const;
/** What the server keeps for longer than a run is asked for from here on. */
const LONG = 900;
/** Seconds that the charts go back; 0 is everything that is kept. */
export type Range = (typeof RANGES)[number];

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export type Overlay = Window | "none";

// What the server sent.
export const meta = signal<Meta | null>(null);
export const totals = signal<Totals | null>(null);
export const ticks = signal<readonly Tick[]>([]);
/** connecting: nothing has come yet; lost: it was there. */
export const link = signal<"connecting" | "open" | "lost" | "ended">("connecting");
/** The error of the server when it gave no snapshot. */
export const refusal = signal("");
/** When the last interval came, by the clock of this page. */
export const arrivedAt = signal(0);
/** The clock of this page, a few times a second. */
export const now = signal(Date.now());

/** What the records are. */
export const kind = computed<Kind>(() => meta.value?.kind ?? "http");

// What the reader chose.
export const range = signal<Range>(300);
export const zone = signal<Zone>("local");
export const theme = signal<Theme>("auto");
/** What tables are by, sorted by, and what distributions are of; empty: the first that there is. */
export const group = signal("");
export const topWindow = signal<Window>("300");
export const sort = signal("");
export const descending = signal(true);
export const search = signal("");
export const ccdfOf = signal("");
export const ccdfWindow = signal<Window>("60");
export const ccdfOverlay = signal<Overlay>("all");

/** The ranges that there are: hours where the server keeps a day. */
export const ranges = computed<readonly Range[]>(() =>
  RANGES.filter((seconds) => seconds <= LONG || meta.value?.history === true));
/** The last seconds that the server keeps, as they were asked for; null: not yet. */
export const past = signal<{ span: Range; step_s: number; ticks: readonly Tick[] } | null>(null);
/** Whether the charts show what the server keeps. */
export const isPast = computed(() => meta.value?.history === true && range.value >= LONG);

/** What was on the screen when it was paused. */
const frozen = signal<readonly Tick[] | null>(null);
export const paused = computed(() => frozen.value !== null);
export const shown = computed(() => frozen.value ?? ticks.value);
export const latest = computed(() => shown.value.at(-1) ?? null);
export const missed = computed(() => {
  const last = frozen.value?.at(-1)?.id ?? 0;
  return frozen.value === null ? 0 : Math.max(0, (ticks.value.at(-1)?.id ?? 0) - last);
});

export function togglePause(): void {
  frozen.value = frozen.value === null ? ticks.value : null;
}

/** Seconds that are shown: the range, but no fewer than ten intervals; 0 is everything. */
export const reach = computed(() =>
  range.value === 0 ? 0 : Math.max(range.value, 10 * (latest.value?.interval_s ?? 0)));

/** The intervals of the chosen range, which ends with the last one. */
export const view = computed<readonly Tick[]>(() => {
  const kept = past.value;
  if (isPast.value && kept !== null && kept.span === range.value) return kept.ticks;
  const all = shown.value;
  const last = all.at(-1);
  if (last === undefined || reach.value === 0) return all;
  const from = last.t_ms - reach.value * 1000;
  const first = all.findIndex((tick) => tick.t_ms > from);
  return first > 0 ? all.slice(first) : all;
});

/** Where the pointer is on the charts over time: an index into `view`. */
export const cursor = signal<number | null>(null);

export const stale = computed(() => {
  const run = meta.value;
  if (run === null || !run.live || run.finished || arrivedAt.value === 0) return false;
  // A second for the network and for a browser that is busy.
  return now.value - arrivedAt.value > 3 * run.interval_s * 1000 + 1000;
});

/** Takes the intervals of a snapshot; those of another run replace what is there. */
export function take(run: Meta, sums: Totals, fresh: readonly Tick[]): void {
  batch(() => {
    const same = meta.value !== null && (meta.value.started_ms === run.started_ms || meta.value.started_ms === 0)
      && meta.value.source === run.source;
    const first = fresh[0]?.id ?? 0;
    const before = same ? ticks.value.filter((tick) => tick.id < first) : [];
    if (!same) frozen.value = null;
    meta.value = run;
    totals.value = sums;
    if (fresh.length > 0 || !same) {
      ticks.value = [...before, ...fresh].slice(-KEEP);
      arrivedAt.value = Date.now();
    }
  });
}

/** Takes intervals in their order. False: some before or between them are missing. */
export function append(fresh: readonly Tick[]): boolean {
  const from = ticks.value.at(-1)?.id;
  const added = from === undefined ? fresh : fresh.filter((tick) => tick.id > from);
  const first = added[0];
  const last = added.at(-1);
  if (first === undefined || last === undefined) return true;
  batch(() => {
    ticks.value = [...ticks.value, ...added].slice(-KEEP);
    arrivedAt.value = Date.now();
    now.value = Date.now();
    const run = meta.value;
    if (run !== null && run.started_ms === 0) {
      meta.value = { ...run, started_ms: first.t_ms - first.interval_s * 1000 };
    }
  });
  return last.id - first.id === added.length - 1 && (from === undefined || first.id === from + 1);
}

// The address: only what differs from the defaults.

type Choice = { get: () => string; set: (word: string) => void; normal: string };

function oneOf<T extends string>(words: readonly T[], target: { value: T }): Choice {
  return {
    get: () => target.value,
    set: (word) => {
      const found = words.find((known) => known === word);
      if (found !== undefined) target.value = found;
    },
    normal: target.value,
  };
}

/** A word that whoever uses it checks against what there is. */
function plain(target: { value: string }): Choice {
  return {
    get: () => target.value,
    set: (word) => {
      target.value = /^[a-z0-9_]{0,32}$/.test(word) ? word : "";
    },
    normal: "",
  };
}

/** The word that is chosen, the first where it is none of those that there are. */
export function chosen(words: readonly string[], word: string): string {
  return words.includes(word) ? word : (words[0] ?? "");
}

const choices: Readonly<Record<string, Choice>> = {
  range: {
    get: () => String(range.value),
    set: (word) => {
      const found = RANGES.find((known) => String(known) === word);
      if (found !== undefined) range.value = found;
    },
    normal: String(range.value),
  },
  zone: oneOf<Zone>(["utc", "local"], zone),
  theme: oneOf<Theme>(THEMES, theme),
  by: plain(group),
  window: oneOf<Window>(WINDOWS, topWindow),
  sort: plain(sort),
  order: {
    get: () => (descending.value ? "desc" : "asc"),
    set: (word) => {
      descending.value = word !== "asc";
    },
    normal: "desc",
  },
  q: {
    get: () => search.value,
    set: (word) => {
      search.value = word.slice(0, 200);
    },
    normal: "",
  },
  of: plain(ccdfOf),
  ccdf: oneOf<Window>(WINDOWS, ccdfWindow),
  overlay: oneOf<Overlay>([...WINDOWS, "none"], ccdfOverlay),
};

function readAddress(): void {
  const words = new URLSearchParams(location.hash.slice(1));
  batch(() => {
    for (const [name, choice] of Object.entries(choices)) choice.set(words.get(name) ?? choice.normal);
  });
}

/** Keeps the address and the theme in step with the choices. */
export function keepChoices(): void {
  // The token is in a cookie by now; an address is copied and looked over shoulders.
  const query = new URLSearchParams(location.search);
  if (query.has("token")) {
    query.delete("token");
    const rest = query.size > 0 ? `?${query.toString()}` : "";
    history.replaceState(null, "", location.pathname + rest + location.hash);
  }
  readAddress();
  addEventListener("hashchange", readAddress);
  effect(() => {
    const words = new URLSearchParams();
    for (const [name, choice] of Object.entries(choices)) {
      const word = choice.get();
      if (word !== choice.normal) words.set(name, word);
    }
    const hash = words.size > 0 ? `#${words.toString()}` : "";
    if (hash !== location.hash) history.replaceState(null, "", location.pathname + location.search + hash);
  });
  effect(() => {
    document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
  });
}

const darkByDefault = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(darkByDefault.matches);
darkByDefault.addEventListener("change", (event) => {
  systemDark.value = event.matches;
});
export const dark = computed(() => (theme.value === "auto" ? systemDark.value : theme.value === "dark"));
