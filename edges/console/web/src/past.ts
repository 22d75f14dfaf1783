// The last day, which the server keeps in a file: asked for as often as it grows.

import { effect } from "@preact/signals";
import { fetchPast } from "./api";
import { isPast, link, meta, past, paused, range } from "./state";

/** Seconds between two questions: a row of the finest level. */
const EVERY_S = 5;

/** Keeps what is shown of the past in step with the range. */
export function watchPast(): void {
  let timer: ReturnType<typeof setInterval> | undefined;
  effect(() => {
    const span = range.value;
    // Of a run that has ended there is nothing more to come.
    const goes = meta.value?.finished !== true && !paused.value && link.value === "open";
    clearInterval(timer);
    if (!isPast.value) return;
    const ask = (): void => {
      if (document.hidden) return;
      fetchPast(span).then(
        ({ step_s, ticks }) => {
          if (span === range.peek()) past.value = { span, step_s, ticks };
        },
        () => undefined, // The banner says that the connection is lost.
      );
    };
    ask();
    if (goes) timer = setInterval(ask, 1000 * EVERY_S);
  });
}
