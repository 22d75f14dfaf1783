//! Frames to be sent, in order, in one arena that is used again.

/// Frames that are to leave now.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
}

impl Frames {
    /// Appends a frame that `write` appends to the arena; nothing written is no frame.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        if self.bytes.len() > before {
            self.ends.push(self.bytes.len());
        }
    }

    /// Appends a copy of a frame.
    pub fn push(&mut self, frame: &[u8]) {
        self.push_with(|out| out.extend_from_slice(frame));
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frames in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let frame = self.bytes.get(from..*end).unwrap_or_default();
            from = *end;
            frame
        })
    }

    /// The last frame, which was just appended.
    #[must_use]
    pub fn last(&self) -> Option<&[u8]> {
        let (end, before) = self.ends.split_last()?;
        self.bytes.get(before.last().copied().unwrap_or(0)..*end)
    }

    /// Takes the last frame back: the path has lost or delayed it.
    pub fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Forgets all frames, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut frames = Frames::default();
        frames.push(b"one");
        frames.push_with(|_| {});
        frames.push(b"two");
        assert_eq!(frames.iter().collect::<Vec<_>>(), [b"one", b"two"]);
        assert_eq!(frames.last(), Some(&b"two"[..]));
        frames.pop();
        frames.push(b"three");
        assert_eq!(frames.iter().collect::<Vec<_>>(), [&b"one"[..], b"three"]);
        frames.clear();
        assert!(frames.is_empty());
        frames.pop();
        assert_eq!(frames.last(), None);
    }
}
