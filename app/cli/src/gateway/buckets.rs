//! Rates of single clients as the kernel keeps them, for packets of a capture: which ones would exceed them.

use std::collections::HashMap;
use std::net::IpAddr;

use linkweir_gateway::policy::client_network;
use linkweir_netfilter::rules::ClientRate;
use linkweir_wire::Timestamp;

/// Buckets that are remembered; further clients have none, and exceed nothing.
const MOST: usize = 1 << 18;

/// A bucket: how many bytes it holds, and since when.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    bytes: f64,
    at: Timestamp,
}

/// Rule, client, and whether the client sends.
type Key = (u16, IpAddr, bool);

/// The buckets of all clients, rules and directions.
#[derive(Debug, Default)]
pub(super) struct Buckets(HashMap<Key, Bucket>);

impl Buckets {
    /// Whether a packet of so many bytes exceeds the rate of its client. One that does takes nothing, as the kernel drops it.
    pub(super) fn exceeds(
        &mut self,
        rate: &ClientRate,
        (client, is_from_client): (IpAddr, bool),
        bytes: usize,
        now: Timestamp,
    ) -> bool {
        let most = (rate.burst_bytes + rate.rate_bytes) as f64;
        let key = (rate.rule, client_network(client), is_from_client);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            return false;
        }
        let bucket = self.0.entry(key).or_insert(Bucket {
            bytes: most,
            at: now,
        });
        let passed = now.nanos_since(bucket.at);
        if passed > 0 {
            let more = passed as f64 / 1e9 * rate.rate_bytes as f64;
            bucket.bytes = (bucket.bytes + more).min(most);
            bucket.at = now;
        }
        let bytes = bytes as f64;
        if bytes > bucket.bytes {
            return true;
        }
        bucket.bytes -= bytes;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_with_the_rate_and_is_one_clients() {
        let rate = ClientRate {
            rule: 3,
            rate_bytes: 1000,
            burst_bytes: 500,
        };
        let [one, same, other, four]: [IpAddr; 4] =
            ["2001:db8::1", "2001:db8::2", "2001:db8:1::1", "192.0.2.1"]
                .map(|address| address.parse().expect("an address"));
        let at = |ms: u64| Timestamp::from_nanos(1_000_000_000 + ms * 1_000_000);
        let mut buckets = Buckets::default();
        for (client, is_up, bytes, ms, expected) in [
            (one, true, 1500, 0, false),
            (one, true, 1, 0, true),
            (same, true, 1, 0, true),
            // Other directions and clients.
            (one, false, 1500, 0, false),
            (other, true, 1500, 0, false),
            (four, true, 1500, 0, false),
            // 100 bytes in 100 ms; what was dropped took none.
            (one, true, 101, 100, true),
            (one, true, 100, 100, false),
            (one, true, 1, 100, true),
            // Time that goes back brings nothing, and a long time no more than it holds.
            (one, true, 1, 50, true),
            (one, true, 1501, 100_000, true),
            (one, true, 1500, 100_000, false),
            (one, true, 1, 100_000, true),
        ] {
            let exceeds = buckets.exceeds(&rate, (client, is_up), bytes, at(ms));
            assert_eq!(exceeds, expected, "{client} {is_up} {bytes} at {ms}");
        }
    }
}
