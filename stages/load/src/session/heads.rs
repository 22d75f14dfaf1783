//! Heads of responses that came in pieces.

/// Beginnings of heads of bounded size, one by one and all together.
///
/// Most heads come whole and never touch this.
#[derive(Debug)]
pub struct Heads {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
    max_head: usize,
    max_bytes: usize,
    bytes: usize,
}

/// Capacity that a buffer may keep when its head is whole.
const KEPT_BYTES: usize = 2048;

/// The buffer of a head; none at first.
#[derive(Debug, Default)]
pub(super) struct Handle(Option<u32>);

/// Why a piece was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The head is longer than one may be.
    TooLong,
    /// All heads together are.
    NoRoom,
}

impl Heads {
    /// Heads of at most `max_head` bytes, at most `max_bytes` of them at a time. Memory is up to twice that,
    /// for buffers grow by doubling, and 2 KiB for each buffer that waits.
    #[must_use]
    pub const fn new(max_head: usize, max_bytes: usize) -> Self {
        Self {
            buffers: Vec::new(),
            free: Vec::new(),
            max_head,
            max_bytes,
            bytes: 0,
        }
    }

    /// The longest head that is taken, bytes.
    pub(super) const fn max_head(&self) -> usize {
        self.max_head
    }

    pub(super) fn append(&mut self, handle: &mut Handle, piece: &[u8]) -> Result<(), Refused> {
        if self.get(handle).len() + piece.len() > self.max_head {
            return Err(Refused::TooLong);
        }
        if self.bytes + piece.len() > self.max_bytes {
            return Err(Refused::NoRoom);
        }
        let number = match handle.0 {
            Some(number) => number,
            None => self.take().ok_or(Refused::NoRoom)?,
        };
        handle.0 = Some(number);
        let buffer = self.buffers.get_mut(number as usize);
        buffer.ok_or(Refused::NoRoom)?.extend_from_slice(piece);
        self.bytes += piece.len();
        Ok(())
    }

    fn take(&mut self) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        let number = u32::try_from(self.buffers.len()).ok()?;
        self.buffers.push(Vec::new());
        Some(number)
    }

    pub(super) fn get(&self, handle: &Handle) -> &[u8] {
        handle
            .0
            .and_then(|number| self.buffers.get(number as usize))
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn release(&mut self, handle: &mut Handle) {
        let Some(number) = handle.0.take() else {
            return;
        };
        if let Some(buffer) = self.buffers.get_mut(number as usize) {
            self.bytes -= buffer.len();
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
            self.free.push(number);
        }
    }

    /// Bytes of heads that are held.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let buffers: usize = self.buffers.iter().map(Vec::capacity).sum();
        buffers
            + self.buffers.capacity() * size_of::<Vec<u8>>()
            + self.free.capacity() * size_of::<u32>()
    }
}
