//! How much a pipe holds.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// What an ordinary user may ask for, unless `/proc/sys/fs/pipe-max-size` says otherwise (pipe(7)).
const PIPE_BYTES: libc::c_int = 1 << 20;

/// Sets the size of the pipe that `file` is an end of to 1 MiB: with the default of 64 KiB, reader and writer wake each other
/// sixteen times more often. Leaves alone what is not a pipe, is larger already, or may not grow.
pub fn widen_pipe(file: &impl AsFd) {
    let fd = file.as_fd();
    let size = pipe_size(fd);
    if (1..PIPE_BYTES).contains(&size) {
        // SAFETY: takes a number and gives one; no memory is passed.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
    }
}

/// Bytes that fit into a pipe; negative for what is none.
fn pipe_size(fd: BorrowedFd<'_>) -> libc::c_int {
    // SAFETY: takes nothing and gives a number; no memory is passed.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETPIPE_SZ) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_grows_and_nothing_else_minds() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let before = pipe_size(reader.as_fd());
        widen_pipe(&reader);
        let after = pipe_size(reader.as_fd());
        // A user whose pipes have too many pages keeps the size.
        assert!(after == PIPE_BYTES || after == before, "{before} {after}");
        let file = tempfile::tempfile().unwrap();
        widen_pipe(&file);
        assert!(pipe_size(file.as_fd()) < 0);
    }
}
