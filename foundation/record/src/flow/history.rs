//! What a connection went through, in the letters of Zeek's conn.log.
//!
//! Source: `history` in Zeek's `base/protocols/conn/main.zeek`.

use crate::short::Short;

/// What a side did for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Event {
    /// The first packet that was seen came from the server.
    Flipped = 1,
    /// SYN without ACK.
    Syn,
    /// SYN with ACK.
    SynAck,
    /// An acknowledgment and nothing else.
    Ack,
    /// Payload, without SYN, FIN and RST.
    Data,
    /// FIN.
    Fin,
    /// RST.
    Rst,
    /// Payload seen before.
    Retransmission,
    /// A window of zero.
    ZeroWindow,
    /// Bytes of this side were acknowledged that the capture missed.
    Gap,
}

/// The letter of each event, of the client.
const LETTERS: [u8; 11] = *b"?^SHADFRTWG";

/// Bits of an entry: an event, and the side in the lowest.
const BITS: u32 = 5;

/// Entries in 64 bits.
const ENTRIES: u32 = u64::BITS / BITS;

/// Events in their order: the first of each kind and side.
///
/// Shape: 8 bytes, from the lowest bits on five for each event; of more than twelve the later ones are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct History(u64);

impl History {
    /// The most events.
    pub const MAX: usize = ENTRIES as usize;

    /// Appends an event that has not been there; the caller knows.
    #[inline]
    pub const fn push(&mut self, event: Event, is_client: bool) {
        let entry = (event as u64) << 1 | is_client as u64;
        let at = (u64::BITS - self.0.leading_zeros()).next_multiple_of(BITS);
        if at < BITS * ENTRIES {
            self.0 |= entry << at;
        }
    }

    /// Appends an event, unless it has been there.
    pub fn push_once(&mut self, event: Event, is_client: bool) {
        let entry = (event as u8, is_client);
        if !self.entries().any(|one| one == entry) {
            self.push(event, is_client);
        }
    }

    fn entries(self) -> impl Iterator<Item = (u8, bool)> {
        let entries = (0..ENTRIES).map(move |at| self.0 >> (at * BITS) & 31);
        let entries = entries.take_while(|entry| *entry != 0);
        entries.map(|entry| (u8::try_from(entry >> 1).unwrap_or_default(), entry & 1 != 0))
    }

    /// The letters: upper case of what the client did, lower case of the server; `^` of neither.
    #[must_use]
    pub fn text(self) -> Short {
        let mut letters = [0; Self::MAX];
        let mut len = 0;
        for (letter, (event, is_client)) in letters.iter_mut().zip(self.entries()) {
            let upper = LETTERS.get(usize::from(event)).copied().unwrap_or(b'?');
            *letter = if is_client {
                upper
            } else {
                upper.to_ascii_lowercase()
            };
            len += 1;
        }
        Short::new(letters.get(..len).unwrap_or_default())
    }

    /// Whether nothing was seen.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(events: &[(Event, bool)]) -> String {
        let mut history = History::default();
        for (event, is_client) in events {
            history.push_once(*event, *is_client);
        }
        String::from_utf8(history.text().as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn letters_in_their_order() {
        use Event::{Ack, Data, Fin, Flipped, Gap, Retransmission, Rst, Syn, SynAck, ZeroWindow};
        assert!(History::default().is_empty());
        assert_eq!(made(&[]), "");
        let whole = [
            (Syn, true),
            (SynAck, false),
            (Ack, true),
            (Data, true),
            (Data, true),
            (Ack, false),
            (Data, false),
            (Fin, true),
            (Fin, false),
        ];
        assert_eq!(made(&whole), "ShADadFf");
        assert_eq!(
            made(&[(Flipped, true), (SynAck, false), (Rst, true), (Rst, false)]),
            "^hRr"
        );
        let rare = [(Retransmission, false), (ZeroWindow, true), (Gap, false)];
        assert_eq!(made(&rare), "tWg");
    }

    #[test]
    fn it_ends_after_twelve() {
        let events = [
            Event::Syn,
            Event::Ack,
            Event::Data,
            Event::Fin,
            Event::Rst,
            Event::Retransmission,
            Event::Gap,
        ];
        let all = events.map(|event| [(event, true), (event, false)]);
        assert_eq!(made(all.as_flattened()), "SsAaDdFfRrTt");
    }
}
