//! Reads arbitrary bytes as a capture of any format and compression, in chunks of any size.
//!
//! Input: two bytes that give the chunk size (big endian), then the file. Whatever the chunk size,
//! the frames, the fault and the counters must be the same, and no frame may leave the buffer.

use crate::capture_run;

pub(crate) fn target(data: &[u8]) {
    let Some((&[high, low], file)) = data.split_first_chunk::<2>() else {
        return;
    };
    let chunk = usize::from(u16::from_be_bytes([high, low])) + 1;
    capture_run::compare(file.to_vec(), chunk);
}
