//! How evenly the paper's hashes spread real packets (Fig. 8).
//!
//! For each of Eqs. (1) to (3) and the mixed hash: occurrences of the hash value, a signed number of
//! 32 bits as in the figure, in equal bins; how many values there are; how far the bins are from
//! even; and which share of packets and of transactions each of N consumers would get.

use std::collections::HashMap;

use linkweir_engine::hash::{
    Endpoint, eq1_connection, eq2_transaction, eq3_balance, mixed_balance,
};
use linkweir_engine::split::{link_number, shard_of};
use linkweir_engine::{Batch, Frame, RunReport, Source, SourceError, SourceEvent};
use linkweir_proto::http1::{Start, classify};
use linkweir_wire::{LinkType, Transport, decode, decode_plain};
use serde_json::{Value, json};

use super::args::FeedArgs;
use super::summary::account;
use crate::exit::warn;
use crate::signals::Signals;

/// Bins of the histogram; each holds 2^25 values.
pub(super) const BINS: usize = 128;
/// Numbers of consumers that shares are shown for.
pub(super) const SHARDS: [u32; 3] = [2, 4, 8];
/// Maximum number of values that are distinguished, for each hash: about 40 MB.
const MAX_VALUES: usize = 1 << 21;

/// How one hash spreads packets.
#[derive(Debug)]
pub(super) struct HashSpread {
    /// Name as a key, and for people.
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    hash: fn(Endpoint, Endpoint, u32) -> u32,
    /// Packets by the upper bits of the value as a signed number.
    pub(super) bins: [u64; BINS],
    /// Packets by value.
    values: HashMap<u32, u64>,
    /// Whether there were more values than are distinguished.
    is_cut: bool,
    /// Packets and requests of each consumer, for each number of them.
    shares: [[[u64; 8]; 2]; SHARDS.len()],
}

fn eq1(src: Endpoint, dst: Endpoint, _: u32) -> u32 {
    eq1_connection(src, dst)
}

impl HashSpread {
    fn new(
        key: &'static str,
        name: &'static str,
        hash: fn(Endpoint, Endpoint, u32) -> u32,
    ) -> Self {
        Self {
            key,
            name,
            hash,
            bins: [0; BINS],
            values: HashMap::new(),
            is_cut: false,
            shares: [[[0; 8]; 2]; SHARDS.len()],
        }
    }

    fn add(&mut self, value: u32, is_request: bool) {
        // The sign bit flipped orders signed numbers from the least to the greatest.
        let bin = ((value ^ 1 << 31) >> 25) as usize;
        if let Some(count) = self.bins.get_mut(bin) {
            *count += 1;
        }
        if let Some(count) = self.values.get_mut(&value) {
            *count += 1;
        } else if self.values.len() < MAX_VALUES {
            self.values.insert(value, 1);
        } else {
            self.is_cut = true;
        }
        for (shares, count) in self.shares.iter_mut().zip(SHARDS) {
            let shard = shard_of(value, count) as usize;
            let [packets, requests] = shares;
            if let Some(packets) = packets.get_mut(shard) {
                *packets += 1;
            }
            if is_request && let Some(requests) = requests.get_mut(shard) {
                *requests += 1;
            }
        }
    }

    fn packets(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// Pearson's statistic against an even spread over the bins; `BINS - 1` is what chance gives.
    #[expect(clippy::cast_precision_loss, reason = "a statistic")]
    pub(super) fn chi_square(&self) -> f64 {
        let expected = self.packets() as f64 / BINS as f64;
        if expected == 0.0 {
            return 0.0;
        }
        self.bins
            .iter()
            .map(|count| (*count as f64 - expected).powi(2) / expected)
            .sum()
    }

    pub(super) fn distinct(&self) -> u64 {
        self.values.len() as u64
    }

    /// Packets of the most frequent value.
    pub(super) fn most_frequent(&self) -> u64 {
        self.values.values().copied().max().unwrap_or(0)
    }

    /// Share of the fullest bin.
    pub(super) fn fullest_bin(&self) -> f64 {
        share(self.bins.iter().copied().max().unwrap_or(0), self.packets())
    }

    /// Shares of each of `SHARDS[at]` consumers: of packets, of requests.
    pub(super) fn shares(&self, at: usize) -> [Vec<f64>; 2] {
        let (Some(counts), Some(shards)) = (self.shares.get(at), SHARDS.get(at)) else {
            return [Vec::new(), Vec::new()];
        };
        counts.each_ref().map(|counts| {
            let all = counts.iter().sum();
            counts
                .iter()
                .take(*shards as usize)
                .map(|count| share(*count, all))
                .collect()
        })
    }

    fn to_json(&self, with_bins: bool) -> Value {
        let shards: serde_json::Map<String, Value> = SHARDS
            .iter()
            .enumerate()
            .map(|(at, count)| {
                let [packets, requests] = self.shares(at);
                let shares = json!({ "packet_share": packets, "transaction_share": requests });
                (count.to_string(), shares)
            })
            .collect();
        let mut value = json!({
            "distinct_values": self.distinct(),
            "distinct_values_is_a_lower_bound": self.is_cut,
            "most_frequent_value_packets": self.most_frequent(),
            "max_bin_share": self.fullest_bin(),
            "chi_square": self.chi_square(),
            "degrees_of_freedom": BINS - 1,
            "shards": shards,
        });
        if with_bins && let Value::Object(keys) = &mut value {
            keys.insert("bins".to_owned(), json!(self.bins.as_slice()));
        }
        value
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// How far the largest share is from an even one.
pub(super) fn worst(shares: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most eight")]
    let even = 1.0 / shares.len().max(1) as f64;
    shares
        .iter()
        .fold(0.0, |worst, s| (s - even).abs().max(worst))
}

/// How each hash spreads the packets of a trace.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) hashes: [HashSpread; 4],
    /// TCP segments, which are what is spread.
    pub(super) packets: u64,
    /// Those that begin an HTTP request.
    pub(super) requests: u64,
    /// Packets without TCP.
    pub(super) others: u64,
}

impl Spread {
    pub(super) fn new() -> Self {
        Self {
            hashes: [
                HashSpread::new("eq1", "Eq. (1): connection", eq1),
                HashSpread::new("eq2", "Eq. (2): transaction", eq2_transaction),
                HashSpread::new("eq3", "Eq. (3): balance", eq3_balance),
                HashSpread::new("mixed", "mixed", mixed_balance),
            ],
            packets: 0,
            requests: 0,
            others: 0,
        }
    }

    pub(super) fn read(
        &mut self,
        mut source: impl Source,
        args: &FeedArgs,
        signals: &Signals,
        report: &mut RunReport,
    ) -> Result<(), SourceError> {
        let limit = args.input.count.unwrap_or(u64::MAX);
        while !signals.stop() && report.packets < limit {
            match source.next_event()? {
                SourceEvent::End => break,
                SourceEvent::Idle => {}
                SourceEvent::Fault(fault) => {
                    warn(&format!("{}: {}", fault.input, fault.message));
                    report.faults.push(fault);
                }
                SourceEvent::Batch(batch) => {
                    let left = usize::try_from(limit - report.packets).unwrap_or(usize::MAX);
                    let batch: Batch<'_> = batch.first(left);
                    account(report, &batch);
                    batch.frames().for_each(|frame| self.add(&frame));
                }
            }
            report.drops = source.drops();
        }
        Ok(())
    }

    fn add(&mut self, frame: &Frame<'_>) {
        let packet = (frame.link == LinkType::ETHERNET)
            .then(|| decode_plain(frame.bytes, frame.wire_len))
            .flatten()
            .or_else(|| decode(frame.link, frame.bytes, frame.wire_len).ok());
        let Some((packet, Transport::Tcp(tcp))) = packet.map(|p| (p, p.transport)) else {
            self.others += 1;
            return;
        };
        let src = (packet.network.src(), tcp.src_port());
        let dst = (packet.network.dst(), tcp.dst_port());
        let is_request = matches!(classify(tcp.payload), Start::Request);
        self.packets += 1;
        self.requests += u64::from(is_request);
        let link = link_number(&tcp);
        for hash in &mut self.hashes {
            hash.add((hash.hash)(src, dst, link), is_request);
        }
    }

    pub(super) fn to_json(&self, with_bins: bool) -> Value {
        let hashes: serde_json::Map<String, Value> = self
            .hashes
            .iter()
            .map(|hash| (hash.key.to_owned(), hash.to_json(with_bins)))
            .collect();
        json!({
            "packets": self.packets,
            "requests": self.requests,
            "other_packets": self.others,
            "bin_count": BINS,
            "first_bin_from": i32::MIN,
            "bin_width": 1_u64 << 25,
            "hashes": hashes,
        })
    }

    /// A table for people.
    pub(super) fn to_screen(&self) -> String {
        let mut lines = vec![format!(
            "  {:<22} {:>12} {:>14} {:>10} {:>12}   largest distance from an even share (packets, transactions)",
            "hash", "values", "most frequent", "top bin", "chi2/df"
        )];
        for hash in &self.hashes {
            #[expect(clippy::cast_precision_loss, reason = "a statistic")]
            let reduced = hash.chi_square() / (BINS - 1) as f64;
            let shares: Vec<String> = SHARDS
                .iter()
                .enumerate()
                .map(|(at, count)| {
                    let [packets, requests] = hash.shares(at).map(|shares| worst(&shares) * 100.0);
                    format!("N={count}: {packets:.2} {requests:.2}")
                })
                .collect();
            lines.push(format!(
                "  {:<22} {:>12} {:>14} {:>8.2} % {:>12.2}   {}",
                hash.name,
                hash.distinct(),
                hash.most_frequent(),
                hash.fullest_bin() * 100.0,
                reduced,
                shares.join("   ")
            ));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_hash_is_distinguished_from_a_lopsided_one() {
        let mut even = HashSpread::new("a", "a", eq1);
        let mut lopsided = HashSpread::new("b", "b", eq1);
        for n in 0..128_000_u32 {
            even.add(n.wrapping_mul(33_554_432) | n, n % 4 == 0);
            lopsided.add(8, true);
        }
        assert_eq!(even.bins, [1000; BINS]);
        assert!(even.chi_square() < 1e-9 && lopsided.chi_square() > 1e6);
        assert_eq!(
            (lopsided.distinct(), lopsided.most_frequent()),
            (1, 128_000)
        );
        assert_eq!(
            lopsided.bins[BINS / 2],
            128_000,
            "zero begins the right half"
        );
        assert_eq!(lopsided.shares(0)[0], [1.0, 0.0]);
        assert!((worst(&lopsided.shares(1)[1]) - 0.75).abs() < 1e-9);
        assert!((lopsided.fullest_bin() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_bins_are_those_of_signed_numbers() {
        let mut hash = HashSpread::new("a", "a", eq1);
        for value in [i32::MIN, -1, 0, i32::MAX] {
            hash.add(value.cast_unsigned(), false);
        }
        let at = [0, BINS / 2 - 1, BINS / 2, BINS - 1].map(|bin| hash.bins[bin]);
        assert_eq!(at, [1; 4]);
    }
}
