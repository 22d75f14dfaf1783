//! The packets of chosen transactions, flows and times, written as they were captured.
//!
//! ```text
//! frame ─► Ring ─► Selector: wanted? ─► Pcapng ─► bytes
//!                     ▲ choices, of records and alerts
//! ```
//! A record is known only after its packets. Until then they wait in a [`Ring`]; whether a packet is written is
//! decided when it leaves. Where the same files can be read again once all choices are known, nothing waits.
//!
//! Who looks for the packets of one record finds the in-depth look of Vega et al. 2017 (sec. 1) here.

mod pcapng;
mod ring;
mod select;

pub use pcapng::Pcapng;
pub use ring::Ring;
pub use select::{Choice, SILENCE_NS, Selector, Until};

use linkweir_engine::hash::flow_hash;
use linkweir_engine::{Batch, Frame};

/// Cells of [`Left`].
const CELLS: usize = 1 << 16;

/// What a [`Keeper`] has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeeperCounts {
    /// Records and alerts that were chosen.
    pub chosen: u64,
    /// Of these, those of which packets may have left the ring unwritten, or that were too many at once.
    pub incomplete: u64,
    /// Packets that were written.
    pub packets: u64,
    /// Their bytes, as captured.
    pub bytes: u64,
}

/// Takes what is written of a file, in pieces of whole blocks.
pub trait Pieces {
    /// Takes a piece with so many packets; `bytes` is empty afterwards.
    fn piece(&mut self, bytes: &mut Vec<u8>, packets: u64);
}

/// Knows the secrets of connections.
pub trait Secrets: Send + std::fmt::Debug {
    /// Lines of a key log (RFC 9850) to stand before this frame: those of a connection that begins with it.
    fn before(&mut self, frame: &Frame<'_>) -> Option<String>;
}

/// Bytes that are handed over at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Keeps packets until they are chosen, and writes those that are.
#[derive(Debug)]
pub struct Keeper<W> {
    /// `None`: the choices are known before the packets.
    ring: Option<Ring>,
    gate: Gate<W>,
}

/// Decides about packets that leave.
#[derive(Debug)]
struct Gate<W> {
    selector: Selector,
    left: Left,
    pcapng: Pcapng,
    secrets: Option<Box<dyn Secrets>>,
    piece: Vec<u8>,
    packets_in_piece: u64,
    out: W,
    counts: KeeperCounts,
}

/// The latest packet that left unwritten: of all, and by a hash of its connection. Two connections may share a
/// cell: a choice then counts as incomplete although it is not, never the other way round.
#[derive(Debug, Default)]
struct Left {
    any: u64,
    cells: Vec<u64>,
}

impl Left {
    fn note(&mut self, frame: &Frame<'_>) {
        let time = frame.timestamp.as_nanos();
        self.any = self.any.max(time);
        if self.cells.is_empty() {
            self.cells.resize(CELLS, 0);
        }
        let cell = select::hash(frame).and_then(|hash| self.cells.get_mut(hash as usize % CELLS));
        if let Some(cell) = cell {
            *cell = time.max(*cell);
        }
    }

    fn of(&self, choice: &Choice) -> u64 {
        let hash = flow_hash(choice.client, choice.server);
        let cell = self.cells.get(hash as usize % CELLS);
        cell.copied().unwrap_or_default()
    }
}

impl<W: Pieces> Keeper<W> {
    /// One whose choices come after the packets, which wait in `ring`; without, before them. A file begins in `out`;
    /// with `secrets` other programs can open what is written.
    #[must_use]
    pub fn new(ring: Option<Ring>, secrets: Option<Box<dyn Secrets>>, out: W) -> Self {
        let mut piece = Vec::new();
        let pcapng = Pcapng::begin(&mut piece);
        Self {
            ring,
            gate: Gate {
                selector: Selector::default(),
                left: Left::default(),
                pcapng,
                secrets,
                piece,
                packets_in_piece: 0,
                out,
                counts: KeeperCounts::default(),
            },
        }
    }

    /// Chooses packets of a connection.
    pub fn choose(&mut self, choice: Choice) {
        let gate = &mut self.gate;
        gate.counts.chosen += 1;
        let is_late = self.ring.is_some() && choice.from_ns <= gate.left.of(&choice);
        gate.counts.incomplete += u64::from(is_late);
        gate.selector.choose(choice);
    }

    /// Chooses all packets of a time; one without an end goes on until [`Keeper::end_time`].
    pub fn choose_time(&mut self, from_ns: u64, until_ns: Option<u64>) {
        let gate = &mut self.gate;
        gate.counts.chosen += 1;
        let is_late = self.ring.is_some() && from_ns <= gate.left.any;
        let is_chosen = gate.selector.choose_time(from_ns, until_ns);
        gate.counts.incomplete += u64::from(is_late || !is_chosen);
    }

    /// Ends the latest time that goes on and began at `from_ns`.
    pub fn end_time(&mut self, from_ns: u64, until_ns: u64) {
        self.gate.selector.end_time(from_ns, until_ns);
    }

    /// Takes packets, in capture order.
    pub fn batch(&mut self, batch: &Batch<'_>) {
        let Self { ring, gate } = self;
        match ring {
            Some(ring) => {
                let mut leaves = |frame: &Frame<'_>| gate.pass(frame, true);
                batch
                    .frames()
                    .for_each(|frame| ring.push(&frame, &mut leaves));
            }
            None => batch.frames().for_each(|frame| gate.pass(&frame, false)),
        }
    }

    /// No packet comes any more: decides about those that wait, and hands everything over.
    pub fn finish(self) -> (W, KeeperCounts) {
        let Self { ring, mut gate } = self;
        if let Some(mut ring) = ring {
            ring.drain(&mut |frame| gate.pass(frame, true));
        }
        gate.hand_over();
        let counts = Self::counts_of(&gate);
        (gate.out, counts)
    }

    /// How many of the connections' choices had no packet, and some of them: see [`Selector::absent`].
    #[must_use]
    pub fn absent(&self) -> (u64, Vec<Choice>) {
        self.gate.selector.absent()
    }

    /// Hands over what is written so far.
    pub fn flush(&mut self) {
        self.gate.hand_over();
    }

    /// Hands over what is written so far, lets `change` look for the next file, and begins it.
    pub fn begin_file(&mut self, change: impl FnOnce(&mut W)) {
        let gate = &mut self.gate;
        gate.hand_over();
        change(&mut gate.out);
        gate.pcapng = Pcapng::begin(&mut gate.piece);
    }

    const fn counts_of(gate: &Gate<W>) -> KeeperCounts {
        let mut counts = gate.counts;
        counts.incomplete += gate.selector.evicted();
        counts
    }

    /// How far it has come.
    #[must_use]
    pub const fn counts(&self) -> KeeperCounts {
        Self::counts_of(&self.gate)
    }
}

impl<W: Pieces> Gate<W> {
    fn pass(&mut self, frame: &Frame<'_>, remembers: bool) {
        if self.selector.takes(frame) {
            self.counts.packets += 1;
            self.counts.bytes += frame.bytes.len() as u64;
            let secrets = self.secrets.as_mut().and_then(|of| of.before(frame));
            if let Some(lines) = secrets {
                Pcapng::secrets(&lines, &mut self.piece);
            }
            self.pcapng.frame(frame, &mut self.piece);
            self.packets_in_piece += 1;
            if self.piece.len() >= PIECE_BYTES {
                self.hand_over();
            }
        } else if remembers {
            self.left.note(frame);
        }
    }

    fn hand_over(&mut self) {
        if !self.piece.is_empty() {
            let packets = std::mem::take(&mut self.packets_in_piece);
            self.out.piece(&mut self.piece, packets);
            self.piece.clear();
        }
    }
}

#[cfg(test)]
mod tests;
