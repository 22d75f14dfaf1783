// Tables and distributions are asked for as intervals come, at most one request of a kind at a time.

import { effect, untracked } from "@preact/signals";
import { latest, link, paused, ticks } from "./state";

/** Not more often than this, however short the interval is. */
const SHORTEST_MS = 1000;

/**
 * Calls `ask` now, with every choice that `depends` reads, and with every interval; not while the
 * view is paused unless a choice changed, and not without a connection. Returns how to stop.
 */
export function poll<T>(depends: () => T, ask: (choice: T) => Promise<void>): () => void {
  let asked = 0;
  let busy = false;
  let again = false;
  let previous: T | undefined;
  let stopped = false;

  const go = (choice: T): void => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    asked = Date.now();
    ask(choice)
      .catch(() => undefined) // The banner says that the connection is lost.
      .finally(() => {
        busy = false;
        if (again && !stopped) {
          again = false;
          go(untracked(depends));
        }
      });
  };

  const stop = effect(() => {
    const choice = depends();
    const changed = JSON.stringify(choice) !== JSON.stringify(previous);
    void ticks.value.at(-1)?.id;
    const state = link.value;
    const still = paused.value;
    previous = choice;
    if (state === "lost" || (state === "connecting" && untracked(() => latest.value) === null)) return;
    if (changed || (!still && !document.hidden && Date.now() - asked >= SHORTEST_MS)) {
      untracked(() => go(choice));
    }
  });
  return () => {
    stopped = true;
    stop();
  };
}
