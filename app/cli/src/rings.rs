//! Rings between a reader and its workers.

use linkweir_engine::{Frame, Port};
use linkweir_feed::{Consumer, Producer};

/// Bytes of the ring between the reader and each worker.
const RING_BYTES: usize = 8 << 20;

/// The reader's end of a ring.
pub(crate) struct RingPort(Producer);

/// A ring for each of several workers: the reader's ends, and those of the workers.
pub(crate) fn rings(workers: usize) -> anyhow::Result<(Vec<RingPort>, Vec<Consumer>)> {
    let (mut ports, mut consumers) = (Vec::new(), Vec::new());
    for worker in 0..workers {
        let (port, consumer) = linkweir_feed::ring(RING_BYTES, &format!("worker {worker}"))?;
        ports.push(RingPort(port));
        consumers.push(consumer);
    }
    Ok((ports, consumers))
}

impl Port for RingPort {
    fn push(&mut self, frame: &Frame<'_>) -> bool {
        self.0.push_wait(frame).is_ok()
    }

    fn flush(&mut self) {
        self.0.flush();
    }
}

impl Drop for RingPort {
    fn drop(&mut self) {
        self.0.finish();
    }
}
