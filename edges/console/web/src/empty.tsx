// Before the first message: what to check, in the order in which it is usually wrong.

import { computed } from "@preact/signals";
import type { FlowTick, HttpTick, Kind, Tick } from "./api";
import * as format from "./format";
import { kind, meta, shown } from "./state";

/** Whether an interval has anything of what its page is about. */
const ABOUT: Readonly<Record<Kind, ((tick: Tick) => boolean) | null>> = {
  http: (tick) => (tick as HttpTick).requests > 0 || (tick as HttpTick).responses > 0,
  flows: (tick) => tick.table.entries > 0 || (tick as FlowTick).ended > 0,
  // Its state is worth seeing before its first packet.
  gateway: null,
  // Its generators are there before its first session.
  load: null,
};

export const nothingYet = computed(() => {
  const about = ABOUT[kind.value];
  return about !== null && !shown.value.some(about);
});

export function Empty() {
  const packets = shown.value.reduce((sum, tick) => sum + tick.packets, 0);
  const live = meta.value?.live ?? true;
  return (
    <section class="card empty" data-empty>
      <h2>{kind.value === "http" ? "No HTTP seen yet" : "No flow seen yet"}</h2>
      {packets === 0 ? (
        <>
          <p>{live ? "No packet has arrived either. Check that" : "No packet has been read yet. Check that"}</p>
          <ul>
            {live ? <li><b>{meta.value?.source ?? "the interface"}</b> is up and is the one that carries the traffic; on a switch, that its port is a mirror port</li> : null}
            <li>the filter given with <code>-f</code> lets the traffic through</li>
            {live ? <li>VLAN tags or tunnels are in the filter (<code>vlan and …</code>) if the traffic has them</li> : null}
          </ul>
        </>
      ) : kind.value === "flows" ? (
        <>
          <p>Of {format.counted(packets, "packet")} so far none is of a TCP or UDP flow. Check that</p>
          <ul>
            <li>the filter given with <code>-f</code> lets TCP and UDP through</li>
            <li>packets are not cut off before their TCP header by <code>-s</code></li>
          </ul>
        </>
      ) : (
        <>
          <p>Of {format.counted(packets, "packet")} so far none is of an HTTP/1 transaction. Check that</p>
          <ul>
            <li>the traffic is not encrypted: HTTPS, HTTP/2 and HTTP/3 cannot be read from the wire; measure behind the point where TLS ends</li>
            <li><code>-f</code>, <code>--ports</code>, <code>--host</code> and <code>--url</code> let it through</li>
            <li>both directions are on this link: a request counts when its response is there, or after <code>--timeout</code> without one</li>
            <li>heads are not cut off by <code>-s</code></li>
          </ul>
        </>
      )}
    </section>
  );
}
