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

mod cases;
mod options;
mod path;
mod telling;

pub use cases::all;
pub use options::{IpId, Options, Version};

use crate::capture_writer::CapturedFrame;
use crate::conversation::Side;
use linkweir_record::flow::Anomaly;
use linkweir_wire::TcpFlags;
use std::collections::BTreeSet;

/// A class, or none for a segment that is no anomaly.
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
mod tests;
