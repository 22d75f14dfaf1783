// What must be known before any number is believed: that it is old, frozen or final.

import * as format from "./format";
import { arrivedAt, link, meta, missed, now, paused, refusal, stale, ticks, togglePause, zone } from "./state";
import { connect } from "./stream";

function ago(): string {
  return arrivedAt.value === 0 ? "never" : `${format.span((now.value - arrivedAt.value) / 1000)} ago`;
}

export function Banners() {
  const last = ticks.value.at(-1);
  const until = last === undefined ? "" : `${format.date(last.t_ms, zone.value)} ${format.clock(last.t_ms, zone.value)}`;
  return (
    <div class="banners" aria-live="polite">
      {link.value === "lost" ? (
        <p class="banner banner-bad" data-banner="stale">
          <b>Stale data.</b> The connection to linkweir is lost; the last interval came {ago()}. Trying again.
          <button type="button" class="button" onClick={() => void connect()}>Reconnect now</button>
        </p>
      ) : stale.value ? (
        <p class="banner banner-bad" data-banner="stale">
          <b>Stale data.</b> The last interval came {ago()}, one is due every {format.time((meta.value?.interval_s ?? 1) * 1e9)}.
          <button type="button" class="button" onClick={() => void connect()}>Reconnect now</button>
        </p>
      ) : null}
      {meta.value?.finished === true ? (
        <p class="banner" data-banner="finished">
          <b>Run finished.</b> {until === "" ? "No interval was seen." : `The last interval ended at ${until}.`}
        </p>
      ) : null}
      {paused.value ? (
        <p class="banner" data-banner="paused">
          <b>Paused.</b> {missed.value === 0 ? "Nothing new since." : `${missed.value} ${missed.value === 1 ? "interval" : "intervals"} collected since.`}
          <button type="button" class="button" onClick={togglePause}>Resume</button>
        </p>
      ) : null}
      {link.value === "connecting" ? (
        <p class="banner" data-banner="connecting">
          <b>Connecting.</b> {refusal.value === "" ? "No answer from linkweir yet." : refusal.value}
        </p>
      ) : null}
    </div>
  );
}
