//! Where a head ends.

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
