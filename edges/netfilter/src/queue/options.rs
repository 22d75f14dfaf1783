//! How a queue is set up.

/// What is asked of the kernel for a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Bytes of each packet that are copied; the kernel copies 65 531 at most.
    pub copy_range: u32,
    /// Packets that may wait for their verdict, those held included. One that comes then is dropped,
    /// or passes with `fail_open`.
    pub max_len: u32,
    /// Takes packets as segmentation offload left them, up to 64 KiB and with checksums not yet
    /// filled in; otherwise the kernel cuts them first, which costs seven tenths of the throughput
    /// and more.
    pub gso: bool,
    /// Has packets pass unseen while the queue or the socket is full, in place of dropping them. The kernel
    /// counts those for which the queue had no room nowhere but at the rule that sent them, and they get no number.
    pub fail_open: bool,
    /// Bytes of room at the socket. What finds none is dropped, or passes with `fail_open`; the usual
    /// 208 KiB are a few packets.
    pub receive_buffer: u32,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            copy_range: MAX_COPY_RANGE,
            max_len: 16_384,
            gso: true,
            fail_open: false,
            receive_buffer: 32 << 20,
        }
    }
}

/// The longest value of an attribute: 65 535 less its head.
const MAX_COPY_RANGE: u32 = 65_531;
