//! Mappings of memory without a name.

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of a page, and of the control file. Larger pages only waste a little.
pub(super) const PAGE: usize = 4096;

/// Seals a file may not lack before it is mapped: its size stays, so that no access can fault.
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A file in memory of `len` zero bytes.
pub(super) fn create(name: &str, len: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(name, flags)?;
    rustix::fs::ftruncate(&file, len as u64)?;
    rustix::fs::fcntl_add_seals(&file, SIZE_SEALS)?;
    Ok(file)
}

/// From now on nobody can map the file for writing (Linux 5.1); mappings that exist stay as they are.
pub(super) fn seal_for_others(file: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::fcntl_add_seals(
        file,
        SealFlags::FUTURE_WRITE | SealFlags::SEAL,
    )?)
}

/// The length of a file that somebody else made; an error where it could still shrink.
pub(super) fn sealed_len(file: BorrowedFd<'_>) -> io::Result<usize> {
    let wrong = |text| io::Error::new(io::ErrorKind::InvalidData, text);
    if !rustix::fs::fcntl_get_seals(file)?.contains(SIZE_SEALS) {
        return Err(wrong("the memory is not sealed"));
    }
    usize::try_from(rustix::fs::fstat(file)?.st_size).map_err(|_| wrong("no size"))
}

/// A mapped range.
///
/// Invariant: `[address, address + len)` is mapped by this value alone until it is dropped, over
/// files of sealed size, readable throughout.
#[derive(Debug)]
pub(super) struct Mapping {
    address: NonNull<c_void>,
    len: NonZeroUsize,
}

// SAFETY: a mapping belongs to the process, not to a thread; access to its bytes is governed by
// those who hold it.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(address: *mut c_void, len: usize) -> io::Result<Self> {
        match (NonNull::new(address), NonZeroUsize::new(len)) {
            (Some(address), Some(len)) => Ok(Self { address, len }),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// One mapping of a whole file, readable and writable.
    pub(super) fn whole(file: &impl AsFd, len: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free range, so nothing that exists is replaced.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Self::new(address, len)
    }

    /// A file twice in a row: the byte after the last is the first again.
    ///
    /// `len` is a multiple of the page size.
    pub(super) fn mirrored(file: &impl AsFd, len: usize, writable: bool) -> io::Result<Self> {
        let both = len.checked_mul(2).ok_or(io::ErrorKind::InvalidInput)?;
        // Reserves the range, so that the two halves have a place beside each other.
        // SAFETY: the kernel chooses a free range, so nothing that exists is replaced.
        let address = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                both,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let range = Self::new(address, both)?;
        let protection = if writable {
            ProtFlags::READ | ProtFlags::WRITE
        } else {
            ProtFlags::READ
        };
        let second = range.address.as_ptr().wrapping_byte_add(len);
        for half in [range.address.as_ptr(), second] {
            // SAFETY: replaces one half of the range reserved above, which nothing else uses.
            unsafe {
                rustix::mm::mmap(
                    half,
                    len,
                    protection,
                    MapFlags::SHARED | MapFlags::FIXED,
                    file,
                    0,
                )
            }?;
        }
        Ok(range)
    }

    /// The first byte.
    #[inline]
    pub(super) const fn start<T>(&self) -> *mut T {
        self.address.as_ptr().cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours by the invariant, and nothing borrows from a value being dropped.
        let unmapped = unsafe { rustix::mm::munmap(self.address.as_ptr(), self.len.get()) };
        debug_assert!(unmapped.is_ok(), "unmapping what was mapped cannot fail");
    }
}
