//! Packets in IP fragments, as senders, networks and attackers make them.
//!
//! Of frames with an IP packet right behind the Ethernet header.

use linkweir_wire::emit::fragments;

use crate::capture_writer::CapturedFrame;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What happens to a part of a packet on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It never comes.
    Lost,
    /// It comes again, so many places later.
    Again(usize),
    /// It comes so many places later.
    Late(usize),
    /// One with other bytes comes before it.
    Forged,
    /// It says that it begins eight bytes earlier than it does.
    Early,
    /// It says that it is three bytes shorter than it is, which is impossible but for the last one.
    Odd,
}

/// The parts of the packet in a frame, each with at most `piece` bytes of data.
#[must_use]
pub fn parts_of(frame: &CapturedFrame, identification: u32, piece: usize) -> Vec<CapturedFrame> {
    let (ethernet, rest) = frame.bytes.split_at(ETHERNET.min(frame.bytes.len()));
    let len = match rest {
        [first, _, a, b, ..] if first >> 4 == 4 => usize::from(u16::from_be_bytes([*a, *b])),
        [_, _, _, _, a, b, ..] => 40 + usize::from(u16::from_be_bytes([*a, *b])),
        _ => rest.len(),
    };
    // Without the padding of Ethernet.
    let packet = rest.get(..len).unwrap_or(rest);
    let whole = |part: Vec<u8>| {
        let bytes = [ethernet, &part].concat();
        CapturedFrame {
            wire_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            bytes,
            ..frame.clone()
        }
    };
    let parts = fragments(packet, identification, piece);
    parts.into_iter().map(whole).collect()
}

/// The parts of the packets of all frames, in their order; see [`parts_of`].
#[must_use]
pub fn in_parts(frames: &[CapturedFrame], piece: usize) -> Vec<CapturedFrame> {
    let of = |(id, frame)| parts_of(frame, id, piece);
    (1..).zip(frames).flat_map(of).collect()
}

/// Lets troubles happen, one after the other, to the frames at these places (modulo their number). The
/// times stay in order.
pub fn suffer(frames: &mut Vec<CapturedFrame>, troubles: &[(usize, Trouble)]) {
    for &(place, trouble) in troubles {
        let Some(place) = place.checked_rem(frames.len()) else {
            return;
        };
        let mut one = frames.remove(place);
        let len = frames.len();
        let after = |places: usize| place.saturating_add(places).min(len);
        match trouble {
            Trouble::Lost => {}
            Trouble::Late(places) => frames.insert(after(places), one),
            Trouble::Again(places) => {
                frames.insert(after(places), one.clone());
                frames.insert(place, one);
            }
            Trouble::Forged => {
                let mut other = one.clone();
                // Behind the headers of TCP over version 6.
                let bytes = other.bytes.iter_mut().skip(ETHERNET + 48);
                bytes.for_each(|byte| *byte = b'X');
                frames.insert(place, one);
                frames.insert(place, other);
            }
            Trouble::Early => {
                change(&mut one, (6, 42), |place| match place & 0x1fff {
                    0 => place,
                    _ => place - 1,
                });
                frames.insert(place, one);
            }
            Trouble::Odd => {
                change(&mut one, (2, 4), |len| len.saturating_sub(3));
                frames.insert(place, one);
            }
        }
    }
    let mut times: Vec<u64> = frames.iter().map(|frame| frame.timestamp_ns).collect();
    times.sort_unstable();
    for (frame, time) in frames.iter_mut().zip(times) {
        frame.timestamp_ns = time;
    }
}

/// Changes a number of 16 bits in the header, whose places are those in version 4 and 6.
fn change(frame: &mut CapturedFrame, places: (usize, usize), to: impl Fn(u16) -> u16) {
    let is_v6 = frame
        .bytes
        .get(ETHERNET)
        .is_some_and(|first| first >> 4 == 6);
    let place = ETHERNET + if is_v6 { places.1 } else { places.0 };
    if let Some([a, b]) = frame.bytes.get_mut(place..place + 2) {
        let number = u16::from_be_bytes([*a, *b]);
        // The place of version 6 is in the upper bits.
        let number = if is_v6 && places.1 == 42 {
            to(number >> 3) << 3 | number & 7
        } else {
            to(number)
        };
        [*a, *b] = number.to_be_bytes();
    }
}
