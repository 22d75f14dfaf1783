// The bar at the top: what is read, and what a reader can choose.

import type { ComponentChildren } from "preact";
import { loggedIn, logOut, type Kind } from "./api";
import * as format from "./format";
import { THEMES, kind, link, meta, latest, paused, range, ranges, stale, theme, togglePause, zone, type Range } from "./state";

const RANGE_NAMES: Readonly<Record<Range, string>> = {
  60: "1 min", 300: "5 min", 900: "15 min", 3600: "1 h", 21600: "6 h", 86400: "24 h", 0: "All",
};
const THEME_NAMES = { auto: "Auto", light: "Light", dark: "Dark" } as const;

type Mood = "live" | "paused" | "stale" | "lost" | "ended" | "waiting";
const MOODS: Readonly<Record<Mood, string>> = {
  live: "Live", paused: "Paused", stale: "Stale", lost: "No connection", ended: "Finished", waiting: "Connecting",
};

function mood(): Mood {
  if (link.value === "connecting") return "waiting";
  if (link.value === "ended") return paused.value ? "paused" : "ended";
  if (link.value === "lost") return "lost";
  if (stale.value) return "stale";
  return paused.value ? "paused" : "live";
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto";
}

/** One-key commands; not while something is typed. */
export function keys(event: KeyboardEvent): void {
  const target = event.target as HTMLElement | null;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
  const chosen = ranges.value[Number(event.key) - 1];
  if (chosen !== undefined) range.value = chosen;
  else if (event.key === "p") togglePause();
  else if (event.key === "u") zone.value = zone.value === "utc" ? "local" : "utc";
  else if (event.key === "d") nextTheme();
  else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search")?.focus();
  }
}

export function Header() {
  const state = mood();
  const tick = latest.value;
  const named = meta.value?.source ?? "";
  const source = named === "-" ? "standard input" : named;
  return (
    <header class="bar">
      <div class="brand">
        <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
          <path d="M1 4h5v4h4v4h5" />
        </svg>
        <h1>linkweir</h1>
      </div>
      <div class="source">
        <span class={`mood mood-${state}`} data-mood={state}>{MOODS[state]}</span>
        <span class="source-name" title={source}>{source}</span>
        {tick === null ? null : (
          <time class="clock" title={`End of the last interval, ${zone.value === "utc" ? "UTC" : "local time"}`}>
            {format.date(tick.t_ms, zone.value)} {format.clock(tick.t_ms, zone.value)}
          </time>
        )}
      </div>
      <div class="controls">
        <Segments label="Time range">
          {ranges.value.map((seconds) => (
            <button type="button" key={seconds} aria-pressed={range.value === seconds} data-range={seconds} onClick={() => (range.value = seconds)}>
              {RANGE_NAMES[seconds]}
            </button>
          ))}
        </Segments>
        <Segments label="Time zone">
          <button type="button" aria-pressed={zone.value === "utc"} onClick={() => (zone.value = "utc")}>UTC</button>
          <button type="button" aria-pressed={zone.value === "local"} onClick={() => (zone.value = "local")}>Local</button>
        </Segments>
        <button type="button" class="button" id="theme" aria-label={`Theme: ${THEME_NAMES[theme.value]}`} onClick={nextTheme}>
          {THEME_NAMES[theme.value]}
        </button>
        {meta.value?.archive === true ? <a class="button" id="archive" href="/archive">Archive</a> : null}
        <Downloads />
        {loggedIn.value ? <button type="button" class="button" id="logout" onClick={() => void logOut()}>Log out</button> : null}
        <button type="button" class="button pause" id="pause" aria-pressed={paused.value} onClick={togglePause}>
          {paused.value ? "Resume" : "Pause"}
        </button>
      </div>
    </header>
  );
}

function Segments({ label, children }: { label: string; children: ComponentChildren }) {
  return <div class="segments" role="group" aria-label={label}>{children}</div>;
}

const DOWNLOADS: Readonly<Record<Kind, readonly (readonly [string, string])[]>> = {
  http: [["series", "Intervals"], ["hosts", "Hosts"], ["urls", "URLs"], ["servers", "Servers"], ["clients", "Clients"]],
  flows: [["series", "Intervals"], ["names", "Names"], ["servers", "Servers"], ["clients", "Clients"], ["applications", "Applications"]],
  gateway: [["series", "Intervals"], ["applications", "Applications"], ["clients", "Clients"], ["files", "Files"], ["findings", "Findings"]],
  load: [["series", "Intervals"], ["groups", "Groups"], ["generators", "Generators"]],
};

function Downloads() {
  const close = (event: FocusEvent): void => {
    const menu = event.currentTarget as HTMLDetailsElement;
    if (!menu.contains(event.relatedTarget as Node | null)) menu.open = false;
  };
  return (
    <details
      class="menu"
      onFocusOut={close}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.open = false;
      }}
    >
      <summary class="button" id="download">Download</summary>
      <ul class="menu-list">
        {DOWNLOADS[kind.value].map(([what, name]) => (
          <li key={what}>
            <span>{name}</span>
            <a href={`/api/download.csv?what=${what}`} download={`linkweir-${what}.csv`} data-download={`${what}.csv`}>CSV</a>
            <a href={`/api/download.json?what=${what}`} download={`linkweir-${what}.json`} data-download={`${what}.json`}>JSON</a>
          </li>
        ))}
      </ul>
    </details>
  );
}
