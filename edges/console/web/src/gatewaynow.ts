// What a gateway says of itself, and its last events: asked for as intervals come.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchNow, type GatewayNow } from "./api";
import { poll } from "./poll";

export const gatewayNow = signal<GatewayNow | null>(null);

/** Asks while what is shown needs it. */
export function useGatewayNow(): void {
  useEffect(() => poll(() => null, async () => {
    gatewayNow.value = await fetchNow();
  }), []);
}
