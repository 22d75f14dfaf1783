//! Messages in several parts: `Message-ID` in each of them, `Chunks` in the first, `Chunk` in the others.
//!
//! A part is a message like any other. Between two of them are a line and a head, so that a keyword over
//! the cut would not be seen: the end of one and the beginning of the next are given once more.

use linkweir_proto::msn::MimeMessage;

/// Messages of a side that are under way at a time; the server's side has those of everybody.
const MAX_OPEN: usize = 4;
/// Longest identifier; a GUID has 38 bytes.
const MAX_ID: usize = 64;
/// Bytes of each side of a cut: keywords as long as this are found over it.
const MARGIN: usize = 256;
/// Most parts of a message; clients send up to 1664 bytes in each.
const MAX_PARTS: u32 = 1024;

/// The messages under way from one side.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    id: Vec<u8>,
    /// The end of what came so far.
    end: Vec<u8>,
    /// Parts that are still to come.
    left: u32,
}

impl Chunks {
    /// A message came: if it is a part, remembers its end; if it goes on with one, gives what is around
    /// the cut to `on_cut`, and is true.
    pub(super) fn on_part(
        &mut self,
        message: &MimeMessage<'_>,
        text: &[u8],
        on_cut: impl FnOnce(&[u8]),
    ) -> bool {
        let Some(id) = message.field(b"Message-ID").filter(|id| id.len() <= MAX_ID) else {
            return false;
        };
        if let Some(parts) = message.field(b"Chunks").and_then(number) {
            self.open.retain(|open| open.id != id);
            if (2..=MAX_PARTS).contains(&parts) {
                self.begin(id, text, parts - 1);
            }
            return false;
        }
        let Some(at) = self.open.iter().position(|open| open.id == id) else {
            return false;
        };
        let Some(open) = self.open.get_mut(at) else {
            return false;
        };
        open.end
            .extend_from_slice(text.get(..MARGIN).unwrap_or(text));
        on_cut(&open.end);
        open.left -= 1;
        if open.left == 0 {
            self.open.remove(at);
        } else if text.len() >= MARGIN {
            open.end = last(text).to_vec();
        } else {
            open.end = last(&open.end).to_vec();
        }
        true
    }

    fn begin(&mut self, id: &[u8], text: &[u8], left: u32) {
        if self.open.len() >= MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push(Open {
            id: id.to_vec(),
            end: last(text).to_vec(),
            left,
        });
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    str::from_utf8(digits).ok()?.parse().ok()
}

/// The end of a text, as much as is kept.
fn last(text: &[u8]) -> &[u8] {
    text.get(text.len().saturating_sub(MARGIN)..)
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(chunks: &mut Chunks, head: &str, text: &str) -> (bool, String) {
        let payload = format!("{head}\r\n\r\n");
        let mut cut = String::new();
        let message = MimeMessage::parse(payload.as_bytes());
        let belongs = chunks.on_part(&message, text.as_bytes(), |joint| {
            cut = String::from_utf8_lossy(joint).into_owned();
        });
        (belongs, cut)
    }

    #[test]
    fn a_cut_is_seen_from_both_sides() {
        let mut chunks = Chunks::default();
        let none = (false, String::new());
        assert_eq!(
            part(&mut chunks, "Message-ID: {1}\r\nChunks: 3", "one sec"),
            none
        );
        assert_eq!(
            part(&mut chunks, "Content-Type: text/plain", "between"),
            none
        );
        let (belongs, cut) = part(&mut chunks, "Message-ID: {1}\r\nChunk: 1", "r");
        assert!(belongs);
        assert_eq!(cut, "one secr");
        assert_eq!(
            part(&mut chunks, "Message-ID: {1}\r\nChunk: 2", "et"),
            (true, "one secret".to_owned())
        );
        assert_eq!(
            part(&mut chunks, "Message-ID: {1}\r\nChunk: 3", "more"),
            none
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut chunks = Chunks::default();
        let long = "x".repeat(5000);
        for number in 0..100 {
            part(
                &mut chunks,
                &format!("Message-ID: {{{number}}}\r\nChunks: 9"),
                &long,
            );
        }
        assert_eq!(chunks.open.len(), MAX_OPEN);
        let (_, cut) = part(&mut chunks, "Message-ID: {99}\r\nChunk: 1", &long);
        assert_eq!(cut.len(), 2 * MARGIN);
        assert!(chunks.open.iter().all(|open| open.end.len() <= MARGIN));
    }
}
