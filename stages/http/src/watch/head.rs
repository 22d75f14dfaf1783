//! A head that goes on in another segment.

use linkweir_table::Chain;
use linkweir_wire::SeqNumber;

use crate::segment::{Place, Standing};

/// A head that is being gathered.
#[derive(Debug)]
pub(crate) struct PartialHead {
    /// Where it begins.
    pub(super) place: Place,
    pub(super) next_seq: SeqNumber,
    pub(super) text: Chain,
    /// Whether the bytes so far are known to be a start line.
    pub(super) sure: bool,
    /// Whether the start line is whole and good.
    pub(super) first_line: bool,
    /// How far the empty line that ends the head has come: 0, or after LF, or after LF CR.
    pub(super) line_end: u8,
    /// Few and rare: the only allocation here.
    pub(super) late: Vec<Late>,
}

#[derive(Debug)]
pub(super) struct Late {
    pub(super) seq: SeqNumber,
    pub(super) text: Chain,
}

impl PartialHead {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            next_seq: place.seq,
            text: Chain::default(),
            sure: false,
            first_line: false,
            line_end: 0,
            late: Vec::new(),
        }
    }

    /// It is that of the message of a followed pipeline whose turn it is.
    pub(crate) const fn set_turn(&mut self, turn: u32) {
        self.place.standing = Standing::InTurn(turn);
    }

    /// Where and when the head begins.
    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    /// Whether `bytes`, the gathered head, is a response's.
    pub(crate) fn is_response(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(b"HTTP")
    }
}

/// Why bytes were not added to a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is not a head after all.
    NoHead,
    /// It is longer than `MAX_HEAD`, or the pool is exhausted.
    TooLong,
}

/// Finds the end of a head: behind the line feed of an empty line. `state` is what the bytes before say.
pub(super) fn scan(state: &mut u8, bytes: &[u8]) -> Option<usize> {
    for (at, byte) in bytes.iter().enumerate() {
        *state = match (*state, byte) {
            (1 | 2, b'\n') => return Some(at + 1),
            (1, b'\r') => 2,
            (_, b'\n') => 1,
            _ => 0,
        };
    }
    None
}
