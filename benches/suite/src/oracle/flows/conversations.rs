//! What `tshark -z conv,tcp` prints, and the same from the frames themselves.

use super::tcptrace::{End, read_end};
use anyhow::{Context as _, Result};
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{Source as _, SourceEvent};
use linkweir_wire::{Network, Tcp, TcpFlags, Transport, decode};
use std::collections::BTreeMap;
use std::path::Path;

/// A pair of ends, the lower first.
pub(super) type Pair = [End; 2];

/// The pair of two ends, and whether they were exchanged for it.
pub(super) fn pair(one: End, other: End) -> (Pair, bool) {
    if one <= other {
        ([one, other], false)
    } else {
        ([other, one], true)
    }
}

/// Packets and bytes of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Bytes that make one unit of what is printed: 1, 1,000 or a million.
    pub(super) unit: u64,
}

/// Both directions of every pair: sent by the lower end, by the higher one.
pub(super) type Conversations = BTreeMap<Pair, [Direction; 2]>;

/// Reads what tshark printed. Of several conversations of one pair the sums.
///
/// # Errors
/// A line is not as expected.
pub(super) fn parse(text: &str) -> Result<Conversations> {
    let mut found = Conversations::new();
    for line in text.lines().filter(|line| line.contains("<->")) {
        let (one, rest) = line.split_once("<->").context("no arrow")?;
        let mut words = rest.split_whitespace();
        let mut word = || words.next().with_context(|| format!("too short: {line}"));
        let other = read_end(word()?)?;
        let one = read_end(one.trim())?;
        let mut direction = || -> Result<Direction> {
            let packets = word()?.parse().context("frames")?;
            let bytes: u64 = word()?.replace(',', "").parse().context("bytes")?;
            let unit = match word()? {
                "bytes" => 1,
                "kB" => 1_000,
                "MB" => 1_000_000,
                other => anyhow::bail!("unit `{other}`"),
            };
            Ok(Direction {
                packets,
                bytes: bytes * unit,
                unit,
            })
        };
        // First what came back, then what went.
        let (back, forth) = (direction()?, direction()?);
        let (pair, is_exchanged) = pair(one, other);
        let both = if is_exchanged {
            [back, forth]
        } else {
            [forth, back]
        };
        let sums = found.entry(pair).or_default();
        for (sum, direction) in sums.iter_mut().zip(both) {
            sum.packets += direction.packets;
            sum.bytes += direction.bytes;
            sum.unit = sum.unit.max(direction.unit);
        }
    }
    Ok(found)
}

/// What a capture has, frame by frame: of TCP packets and bytes on the wire, and those of IP.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) wire: Conversations,
    pub(super) ip: Conversations,
    /// Smallest and largest window in a SYN of each direction.
    pub(super) syn_windows: BTreeMap<Pair, [Option<(u64, u64)>; 2]>,
    /// Segments of each direction without data that repeat its acknowledgment.
    pub(super) repeats: BTreeMap<Pair, [Repeats; 2]>,
}

/// Segments without data whose acknowledgment and window are those of the one before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repeats {
    last: Option<(u32, u16)>,
    pub(super) count: u64,
}

impl Repeats {
    fn see(&mut self, tcp: &Tcp<'_>) {
        let flags = tcp.flags();
        let is_first = flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        let said = (tcp.ack().0, tcp.window());
        if !is_first && tcp.payload_len == 0 && self.last == Some(said) {
            self.count += 1;
        }
        self.last = flags.contains(TcpFlags::ACK).then_some(said);
    }
}

/// Reads and decodes a capture. What follows a fault of the file is not there.
///
/// # Errors
/// The capture cannot be read at all.
pub(super) fn frames(capture: &Path) -> Result<Frames> {
    let inputs = [Input::from(capture.to_path_buf())];
    let mut source = CaptureFiles::open(&inputs, ReadOptions::default())?;
    let mut found = Frames::default();
    loop {
        match source.next_event()? {
            SourceEvent::Batch(batch) => {
                for frame in batch.frames() {
                    let Ok(packet) = decode(frame.link, frame.bytes, frame.wire_len) else {
                        continue;
                    };
                    let Transport::Tcp(tcp) = packet.transport else {
                        continue;
                    };
                    let (src, dst) = (packet.network.src(), packet.network.dst());
                    let from = (src, tcp.src_port());
                    let (pair, is_exchanged) = pair(from, (dst, tcp.dst_port()));
                    let ip = match packet.network {
                        Network::V4(header) => u64::from(word(header.get(2..4))),
                        Network::V6(header) => 40 + u64::from(word(header.get(4..6))),
                        Network::None => 0,
                    };
                    if tcp.flags().contains(TcpFlags::SYN) {
                        let window = u64::from(tcp.window());
                        let both = found.syn_windows.entry(pair).or_default();
                        if let Some(of) = both.get_mut(usize::from(is_exchanged)) {
                            let (low, high) = of.unwrap_or((window, window));
                            *of = Some((low.min(window), high.max(window)));
                        }
                    }
                    let repeats = found.repeats.entry(pair).or_default();
                    if let Some(repeats) = repeats.get_mut(usize::from(is_exchanged)) {
                        repeats.see(&tcp);
                    }
                    let lengths = [
                        (&mut found.wire, u64::from(frame.wire_len)),
                        (&mut found.ip, ip),
                    ];
                    for (conversations, bytes) in lengths {
                        let both = conversations.entry(pair).or_default();
                        if let Some(direction) = both.get_mut(usize::from(is_exchanged)) {
                            direction.packets += 1;
                            direction.bytes += bytes;
                            direction.unit = 1;
                        }
                    }
                }
            }
            SourceEvent::Idle => {}
            SourceEvent::Fault(_) | SourceEvent::End => return Ok(found),
        }
    }
}

fn word(bytes: Option<&[u8]>) -> u16 {
    let word = bytes.and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u16::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_both_orders() {
        let text = "\
TCP Conversations
10.0.0.9:3371       <-> 10.0.0.1:80                 4 3236 bytes       3 883 bytes       7 4119 bytes     0.0         1.7
10.0.0.1:81       <-> 10.0.0.9:3371                 148 218 kB       1 10 bytes       7 4119 bytes     0.0         1.7
";
        let read = parse(text).unwrap();
        let end = |last: u8, port| (std::net::IpAddr::from([10, 0, 0, last]), port);
        let [low, high] = read[&[end(1, 80), end(9, 3371)]];
        assert_eq!((low.packets, low.bytes, high.packets), (4, 3236, 3));
        let [low, high] = read[&[end(1, 81), end(9, 3371)]];
        assert_eq!((low.packets, high.packets, high.bytes), (1, 148, 218_000));
        assert_eq!(high.unit, 1000);
    }
}
