//! What the kernel says beside a frame (control messages, cmsg(3)).

/// What the kernel noted of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// When it entered the stack, by the clock of the system, in nanoseconds since the epoch.
    pub at_ns: Option<u64>,
    /// Its length before it was cut.
    pub wire_len: Option<usize>,
    /// Type and content of the VLAN tag that was taken out of it.
    pub tag: Option<(u16, u16)>,
    /// Whether somebody has verified the checksum of its segment.
    pub checksum_is_valid: bool,
    /// Whether its segment has no checksum yet: it comes from this machine, and the card that would
    /// have computed it is none.
    pub checksum_is_missing: bool,
}

/// `PACKET_AUXDATA` (`linux/if_packet.h`): the option, and the type of its message.
pub(super) const AUXDATA: i32 = 8;

const STATUS_CHECKSUM_MISSING: u32 = 1 << 3;
const STATUS_TAG: u32 = 1 << 4;
const STATUS_TAG_TYPE: u32 = 1 << 6;
const STATUS_CHECKSUM_VALID: u32 = 1 << 7;
const DOT1Q: u16 = 0x8100;

/// The control messages of one frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Control<'a>(pub(super) &'a [u8]);

/// Length with the header, level, type.
const HEADER: usize = 16;

impl Control<'_> {
    /// Room for a time and a `struct tpacket_auxdata`, and for one more.
    pub(super) const BYTES: usize = 128;

    /// All that is said of the frame.
    pub(super) fn note(self) -> Note {
        let mut note = Note::default();
        let mut rest = self.0;
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER>() {
            let len = usize::try_from(u64::from_ne_bytes(eight(header, 0))).unwrap_or(0);
            let Some(data) = len.checked_sub(HEADER).and_then(|len| behind.get(..len)) else {
                break;
            };
            match (
                word(header, 8).cast_signed(),
                word(header, 12).cast_signed(),
            ) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if data.len() >= 16 => {
                    let seconds = u64::from_ne_bytes(eight(data, 0));
                    let nanos = u64::from_ne_bytes(eight(data, 8));
                    let whole = seconds.saturating_mul(1_000_000_000);
                    note.at_ns = Some(whole.saturating_add(nanos));
                }
                (libc::SOL_PACKET, AUXDATA) if data.len() >= 20 => note.auxiliary(data),
                _ => {}
            }
            rest = behind
                .get(data.len().next_multiple_of(8)..)
                .unwrap_or_default();
        }
        note
    }
}

impl Note {
    /// `struct tpacket_auxdata`: status, length, length kept, two offsets, tag, type of the tag.
    fn auxiliary(&mut self, data: &[u8]) {
        let status = word(data, 0);
        self.wire_len = usize::try_from(word(data, 4)).ok();
        self.checksum_is_missing = status & STATUS_CHECKSUM_MISSING != 0;
        self.checksum_is_valid = status & STATUS_CHECKSUM_VALID != 0;
        if status & STATUS_TAG != 0 {
            let kind = if status & STATUS_TAG_TYPE == 0 {
                DOT1Q
            } else {
                half(data, 18)
            };
            self.tag = Some((kind, half(data, 16)));
        }
    }
}

fn eight(bytes: &[u8], at: usize) -> [u8; 8] {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().unwrap_or_default()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.map_or(0, |word| u32::from_ne_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.map_or(0, |half| u16::from_ne_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut out = (HEADER + data.len()).to_ne_bytes().to_vec();
        out.extend(level.to_ne_bytes());
        out.extend(kind.to_ne_bytes());
        out.extend(data);
        out.resize(out.len().next_multiple_of(8), 0);
        out
    }

    #[test]
    fn times_tags_and_checksums_are_read() {
        let time = [5_u64.to_ne_bytes(), 7_u64.to_ne_bytes()].concat();
        let mut auxiliary = Vec::new();
        for word in [
            1 | STATUS_TAG | STATUS_TAG_TYPE | STATUS_CHECKSUM_MISSING,
            9000,
            1500,
        ] {
            auxiliary.extend(word.to_ne_bytes());
        }
        for half in [0_u16, 14, 0x2005, 0x88a8] {
            auxiliary.extend(half.to_ne_bytes());
        }
        let all = [
            message(libc::SOL_SOCKET, 9999, &[1, 2, 3]),
            message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time),
            message(libc::SOL_PACKET, AUXDATA, &auxiliary),
        ]
        .concat();
        let note = Control(&all).note();
        assert_eq!(note.at_ns, Some(5_000_000_007));
        assert_eq!(note.wire_len, Some(9000));
        assert_eq!(note.tag, Some((0x88a8, 0x2005)));
        assert!(note.checksum_is_missing && !note.checksum_is_valid);
        for cut in 0..all.len() {
            let note = Control(&all[..cut]).note();
            assert!(note.tag.is_none() || cut >= all.len() - 8, "cut at {cut}");
        }
        let mut endless = all;
        endless[..8].fill(0);
        assert_eq!(Control(&endless).note(), Note::default());
    }
}
