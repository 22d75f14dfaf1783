//! Memory that is mapped, and unmapped on drop.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A readable and writable mapping of whole pages.
///
/// Invariant: `len` bytes at `start` are mapped for reading and writing until drop, which unmaps
/// them once.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: memory of the process, not of a thread; access is governed by who holds this value.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Memory that is shared with the kernel through a descriptor.
    pub(crate) fn shared(fd: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<Self> {
        Self::map(
            libc::MAP_SHARED | libc::MAP_POPULATE,
            fd.as_raw_fd(),
            len,
            offset,
        )
    }

    /// Zeroed memory of this process.
    pub(crate) fn private(len: usize) -> io::Result<Self> {
        Self::map(
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
            len,
            0,
        )
    }

    fn map(flags: i32, fd: i32, len: usize, offset: i64) -> io::Result<Self> {
        const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, ACCESS, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// The first byte.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The address of `size` bytes at `offset`, where they are inside.
    pub(crate) fn at(&self, offset: usize, size: usize) -> Option<NonNull<u8>> {
        if offset.checked_add(size)? > self.len {
            return None;
        }
        // SAFETY: the offset lies inside the mapping, which is one allocation.
        Some(unsafe { self.start.add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nothing refers to it after this. The only failure is
        // a wrong argument, which the invariant excludes.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
