//! Labelled anomalies: TCP conversations as a capture point in the middle of the path sees them,
//! of which it is known what happened.
//!
//! The round-trip time is 20 ms, half of it on each side of the capture point. A [`Case`] is one
//! connection with the classes of its out-of-sequence segments, and the counts of a flow record
//! that follow from its bytes alone; [`all`] tells every case for one set of [`Options`].
//!
//! Not every capture shows the truth: without timestamps and SACK nothing tells a retransmission
//! that was not needed from one that was, if the acknowledgment came too late. There a [`Label`]
//! tolerates other classes beside the true one.

use crate::capture_writer::CapturedFrame;
use crate::conversation::Side;
use linkweir_record::flow::Anomaly;
use linkweir_wire::TcpFlags;
use std::collections::BTreeSet;

mod cases;
mod options;
mod path;
mod telling;

pub use cases::all;
pub use options::{IpId, Options, Version};

/// A class, or none for a segment that is not an anomaly.
pub type Classified = Option<Anomaly>;

/// What is true of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// What happened.
    pub truth: Classified,
    /// What a classifier may say where the capture does not show what happened.
    pub tolerated: Vec<Classified>,
    /// What the published rules (Mellia et al. 2008) say, one of these; none where the rules do not
    /// apply.
    pub tstat: Vec<Classified>,
}

/// What a flow record says of one side whatever its classifier: from the bytes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    /// Packets.
    pub pkts_all: u64,
    /// Packets with payload.
    pub pkts_data: u64,
    /// Payload bytes.
    pub bytes_all: u64,
    /// Payload bytes, each once.
    pub bytes_uniq: u64,
    /// Packets with bytes, a SYN or a FIN seen before.
    pub pkts_retx: u64,
    /// Bytes seen before.
    pub bytes_retx: u64,
    /// Packets behind later ones, with bytes not seen before.
    pub pkts_ooo: u64,
    /// Packets with SYN.
    pub syn_cnt: u64,
    /// Packets with SYN behind the first.
    pub syn_retx: u64,
    /// Packets with FIN.
    pub fin_cnt: u64,
}

impl Columns {
    fn of<'a>(packets: impl Iterator<Item = &'a path::Packet>) -> Self {
        let mut columns = Self::default();
        let mut seen: BTreeSet<i64> = BTreeSet::new();
        let mut controls: BTreeSet<(bool, i64)> = BTreeSet::new();
        for packet in packets {
            let flags = TcpFlags(packet.flags);
            columns.pkts_all += 1;
            columns.fin_cnt += u64::from(flags.contains(TcpFlags::FIN));
            if flags.contains(TcpFlags::SYN) {
                columns.syn_retx += u64::from(columns.syn_cnt > 0);
                columns.syn_cnt += 1;
            }
            // SYN and FIN have numbers: a packet with one that was seen has nothing new.
            for (control, is_fin) in [(TcpFlags::SYN, false), (TcpFlags::FIN, true)] {
                let is_control = packet.len == 0 && flags.contains(control);
                if is_control && !controls.insert((is_fin, packet.offset)) {
                    columns.pkts_retx += 1;
                }
            }
            if packet.len == 0 {
                continue;
            }
            columns.pkts_data += 1;
            columns.bytes_all += u64::from(packet.len);
            let begin = packet.offset.max(0);
            let highest = seen.last().copied();
            let range = begin..begin + i64::from(packet.len);
            let new = range.filter(|byte| seen.insert(*byte)).count() as u64;
            columns.bytes_uniq += new;
            let old = u64::from(packet.len) - new;
            columns.bytes_retx += old;
            columns.pkts_retx += u64::from(old > 0);
            let is_behind = highest.is_some_and(|highest| begin < highest);
            columns.pkts_ooo += u64::from(old == 0 && is_behind);
        }
        columns
    }
}

/// How counts of classes compare with the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All true.
    Right,
    /// Not all true, and no evidence in the capture against it.
    Tolerated,
    /// Wrong.
    Wrong,
}

/// One connection.
#[derive(Debug, Clone)]
pub struct Case {
    /// What happens.
    pub name: &'static str,
    /// To whom.
    pub options: Options,
    /// Port of the client, by which the connection is found in a capture of several.
    pub port: u16,
    /// Whether only one direction is in the capture.
    pub is_one_way: bool,
    /// Its frames, Ethernet, in the order of their times.
    pub frames: Vec<CapturedFrame>,
    /// The classes of the sender's segments; those of the other side have none.
    pub labels: Vec<Label>,
    /// What is true of the client.
    pub client: Columns,
    /// What is true of the server.
    pub server: Columns,
}

impl Case {
    /// Judges the sender's counts of the classes in [`Anomaly::ALL`].
    #[must_use]
    pub fn judge(&self, counts: &[u64; Anomaly::COUNT]) -> Verdict {
        let truths: Vec<Vec<Classified>> = self.labels.iter().map(|l| vec![l.truth]).collect();
        let tolerated: Vec<Vec<Classified>> = self
            .labels
            .iter()
            .map(|l| {
                std::iter::once(l.truth)
                    .chain(l.tolerated.clone())
                    .collect()
            })
            .collect();
        if explains(&truths, counts) {
            Verdict::Right
        } else if explains(&tolerated, counts) {
            Verdict::Tolerated
        } else {
            Verdict::Wrong
        }
    }

    /// Whether the counts are those of the published rules.
    #[must_use]
    pub fn is_as_published(&self, counts: &[u64; Anomaly::COUNT]) -> bool {
        let labels: Vec<Vec<Classified>> = self.labels.iter().map(|l| l.tstat.clone()).collect();
        explains(&labels, counts)
    }

    /// What is true of a side.
    #[must_use]
    pub const fn columns(&self, side: Side) -> Columns {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }
}

/// Whether one choice for each label gives these counts.
fn explains(labels: &[Vec<Classified>], counts: &[u64; Anomaly::COUNT]) -> bool {
    let Some((first, rest)) = labels.split_first() else {
        return counts.iter().all(|count| *count == 0);
    };
    first.iter().any(|class| match class {
        None => explains(rest, counts),
        Some(class) => {
            let mut left = *counts;
            match left.get_mut(*class as usize) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    explains(rest, &left)
                }
                _ => false,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_wire::{LinkType, SeqNumber, Tcp, TcpOption, Transport, decode};

    const SERVER: u16 = 80;

    /// One frame, read back: time, whether the server sent it, number, flags, payload, timestamps, blocks.
    #[derive(Debug)]
    struct Read {
        at_us: u64,
        by_server: bool,
        seq: SeqNumber,
        ack: SeqNumber,
        len: u32,
        tsval: Option<(u32, u32)>,
        blocks: Vec<(u32, u32)>,
    }

    fn read(case: &Case) -> Vec<Read> {
        let start = case.frames.first().unwrap().timestamp_ns;
        let of = |tcp: &Tcp<'_>, at_us| {
            let mut tsval = None;
            let mut blocks = Vec::new();
            for option in tcp.options() {
                match option {
                    TcpOption::Timestamps { value, echo } => tsval = Some((value, echo)),
                    TcpOption::Sack(pairs) => blocks.extend(pairs.map(|(from, to)| (from.0, to.0))),
                    _ => {}
                }
            }
            Read {
                at_us,
                by_server: tcp.src_port() == SERVER,
                seq: tcp.seq(),
                ack: tcp.ack(),
                len: tcp.payload_len,
                tsval,
                blocks,
            }
        };
        case.frames
            .iter()
            .map(|frame| {
                let packet = decode(LinkType::ETHERNET, &frame.bytes, frame.wire_len).unwrap();
                let Transport::Tcp(tcp) = packet.transport else {
                    panic!("no TCP")
                };
                of(&tcp, (frame.timestamp_ns - start) / 1000)
            })
            .collect()
    }

    fn case(options: Options, name: &str) -> Case {
        let cases = all(options, 20_000, 0);
        cases.into_iter().find(|case| case.name == name).unwrap()
    }

    const FULL: Options = Options {
        timestamps: true,
        sack: true,
        ..Options::PLAIN
    };

    #[test]
    fn every_case_of_all_options_is_told() {
        for options in Options::all() {
            let cases = all(options, 20_000, 1_000_000_000);
            assert_eq!(cases.len(), 34 + usize::from(options.sack), "{options:?}");
            for case in &cases {
                let times: Vec<u64> = case.frames.iter().map(|f| f.timestamp_ns).collect();
                assert!(times.is_sorted(), "{}", case.name);
                assert!(times.last().unwrap() - times[0] < 15_000_000_000);
                assert_eq!(read(case).len(), case.frames.len());
            }
        }
    }

    #[test]
    fn duplicate_acks_come_with_blocks_where_agreed() {
        let frames = read(&case(FULL, "fast retransmit, original seen"));
        let hole = frames.iter().filter(|f| f.len == 1000).nth(5).unwrap();
        let repeated: Vec<&Read> = frames
            .iter()
            .filter(|f| !f.by_server && f.ack == hole.seq && !f.blocks.is_empty())
            .collect();
        assert_eq!(repeated.len(), 4);
        let last = repeated.last().unwrap();
        let begin = hole.seq.0 + 1000;
        assert_eq!(last.blocks, [(begin, begin + 4000)]);
        // The echo is of the last segment in order.
        let before = frames.iter().filter(|f| f.len == 1000).nth(4).unwrap();
        assert_eq!(last.tsval.unwrap().1, before.tsval.unwrap().0);
        let plain = read(&case(Options::PLAIN, "fast retransmit, original seen"));
        assert!(
            plain
                .iter()
                .all(|f| f.blocks.is_empty() && f.tsval.is_none())
        );
        let acks = plain.iter().filter(|f| !f.by_server && f.ack == hole.seq);
        assert_eq!(acks.count(), 5);
    }

    #[test]
    fn what_was_not_needed_is_acknowledged_twice() {
        let frames = read(&case(FULL, "unnecessary rto, ack late"));
        let copies: Vec<&Read> = frames.iter().filter(|f| f.len == 1000).skip(5).collect();
        assert_eq!(copies.len(), 2);
        assert_eq!(copies[1].at_us - copies[0].at_us, 400_000);
        let begin = copies[0].seq.0;
        let acks: Vec<&Read> = frames
            .iter()
            .filter(|f| !f.by_server && f.at_us > copies[1].at_us && f.ack.0 == begin + 1000)
            .collect();
        // Eifel: the first echoes the original; the second has the duplicate in its block.
        assert_eq!(acks[0].tsval.unwrap().1, copies[0].tsval.unwrap().0);
        assert!(acks[0].blocks.is_empty());
        assert_eq!(acks[1].blocks, [(begin, begin + 1000)]);
    }

    #[test]
    fn copies_are_copies() {
        let case = case(FULL, "doubled");
        let same = |a: &CapturedFrame, b: &CapturedFrame| a.bytes == b.bytes;
        let pairs = case.frames.windows(2).filter(|w| same(&w[0], &w[1]));
        assert_eq!(pairs.count(), 1);
        assert_eq!(case.server.pkts_retx, 1);
        assert_eq!(case.server.bytes_retx, 1000);
    }

    #[test]
    fn numbers_wrap_inside_the_first_segment() {
        let options = Options {
            wraps: true,
            ..Options::PLAIN
        };
        let frames = read(&case(options, "rto, original seen"));
        let hit = frames.iter().filter(|f| f.len == 1000).nth(5).unwrap();
        assert!(hit.seq.0 > u32::MAX - 1000 && hit.seq.0.wrapping_add(1000) < 1000);
    }

    #[test]
    fn labels_judge_counts() {
        let case = case(Options::PLAIN, "unnecessary rto, ack late");
        let mut counts = [0; Anomaly::COUNT];
        assert_eq!(case.judge(&counts), Verdict::Wrong);
        counts[Anomaly::Rto as usize] = 1;
        assert_eq!(case.judge(&counts), Verdict::Tolerated);
        assert!(case.is_as_published(&counts));
        counts[Anomaly::Rto as usize] = 0;
        counts[Anomaly::UnnecessaryRto as usize] = 1;
        assert_eq!(case.judge(&counts), Verdict::Right);
        counts[Anomaly::Unknown as usize] = 1;
        assert_eq!(case.judge(&counts), Verdict::Wrong);
    }
}
