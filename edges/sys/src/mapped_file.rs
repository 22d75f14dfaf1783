//! A file of constant size in memory, for one writer.
//!
//! The writer holds an exclusive lock (`flock`), so that a second one is refused; readers need none
//! and read with `pread`. All blocks of a new file are allocated when it is made: a full disk is an
//! error then, and not a signal later.
//!
//! Memory of a file that somebody shortens is gone, and touching it ends the process with SIGBUS; no
//! program can exclude that for a file that others may write. [`MappedFile::is_whole`] asks for the
//! size and is to be called before each use, so that only a truncation in that very moment is
//! fatal. So is a bad block of the disk, and a file system that finds no room although it had
//! promised some (one that copies on write, when full).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use rustix::fs::{FallocateFlags, FlockOperation, RenameFlags};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};
use thiserror::Error;

/// Why a file cannot be mapped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// Another process has it open for writing.
    #[error("another process is writing it")]
    Locked,
    /// It is not a regular file, or an empty one.
    #[error("it is not a regular file with something in it")]
    NotAFile,
    /// There is one of this name already.
    #[error("there is a file of this name already")]
    Exists,
    /// The disk has no room for it.
    #[error("the file system has no room for {bytes} bytes: {source}")]
    NoRoom {
        /// Bytes that were needed.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// What the system said.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for MapError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

/// A mapped file, locked against other writers until drop.
///
/// Invariant: `len` bytes at `start` are mapped for reading and writing by this value alone until
/// drop, which unmaps them once; nobody else in this process has a pointer into them.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    len: usize,
    file: File,
}

// SAFETY: memory of the process, not of a thread; access to the bytes goes through `&self` and
// `&mut self`.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Makes a file of `len` zero bytes, all allocated, lets `fill` write into it, and gives it its
    /// name when that is done: nobody sees half a file.
    ///
    /// Until then it is `.NAME.partial` beside it; one that a killed process left is used again.
    ///
    /// # Errors
    /// Where there is a file of this name, no room, no right to write, or `len` is zero.
    pub fn create(path: &Path, len: u64, fill: impl FnOnce(&mut [u8])) -> Result<Self, MapError> {
        let partial = partial_name(path).ok_or(MapError::NotAFile)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&partial)?;
        lock(&file)?;
        // Another process may have completed it between the two calls.
        let (mine, named) = (file.metadata()?, std::fs::metadata(&partial));
        if !named.is_ok_and(|named| (named.dev(), named.ino()) == (mine.dev(), mine.ino())) {
            return Err(MapError::Locked);
        }
        let made = Self::fill(file, path, &partial, len, fill);
        if made.is_err() && std::fs::remove_file(&partial).is_err() {
            // It stays, and the next one uses it.
        }
        made
    }

    fn fill(
        file: File,
        path: &Path,
        partial: &Path,
        len: u64,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Self, MapError> {
        // What another process left behind goes away, zeros come.
        file.set_len(0)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, len)
            .or_else(|error| match error {
                // Writing zeros is as good, and slower.
                rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS => write_zeros(&file, len),
                error => Err(error.into()),
            })
            .map_err(|source| MapError::NoRoom { bytes: len, source })?;
        let mut mapped = Self::map(file)?;
        fill(mapped.bytes_mut());
        mapped.write_back()?;
        rename(partial, path)?;
        Ok(mapped)
    }

    /// Opens a file that is there, for reading and writing.
    ///
    /// # Errors
    /// Where another process writes it, it is not a regular file with something in it, or the system
    /// refuses.
    pub fn open(path: &Path) -> Result<Self, MapError> {
        let file = File::options().read(true).write(true).open(path)?;
        lock(&file)?;
        Self::map(file)
    }

    fn map(file: File) -> Result<Self, MapError> {
        let about = file.metadata()?;
        let len = usize::try_from(about.len()).unwrap_or(0);
        if !about.is_file() || len == 0 || isize::try_from(len).is_err() {
            return Err(MapError::NotAFile);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free range, so nothing that exists is replaced.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                access,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )
        }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(MapError::NotAFile)?;
        Ok(Self { start, len, file })
    }

    /// The bytes of the file.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        // SAFETY: by the invariant the range is mapped and readable, and changed only through
        // `&mut self`; other processes are kept out by the lock, as far as they ask for it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes of the file, to be changed.
    pub const fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Whether the file still has all of its bytes, so that they can be touched.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let len = self.file.metadata().map_or(0, |about| about.len());
        len >= self.len as u64
    }

    /// Waits until everything is on the disk.
    ///
    /// # Errors
    /// What the system said.
    pub fn write_back(&self) -> io::Result<()> {
        // SAFETY: the range is mapped by the invariant; msync changes nothing in it.
        Ok(unsafe { rustix::mm::msync(self.start.as_ptr().cast(), self.len, MsyncFlags::SYNC) }?)
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nothing borrows from a value being dropped.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "unmapping what was mapped cannot fail");
    }
}

fn lock(file: &File) -> Result<(), MapError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(MapError::Locked),
        other => Ok(other?),
    }
}

/// Gives the file its name, unless there is one of that name.
fn rename(from: &Path, to: &Path) -> Result<(), MapError> {
    use rustix::io::Errno;
    match rustix::fs::renameat_with(
        rustix::fs::CWD,
        from,
        rustix::fs::CWD,
        to,
        RenameFlags::NOREPLACE,
    ) {
        Err(Errno::EXIST) => Err(MapError::Exists),
        // A file system without the flag.
        Err(Errno::INVAL | Errno::NOSYS) if !to.exists() => Ok(std::fs::rename(from, to)?),
        Err(Errno::INVAL | Errno::NOSYS) => Err(MapError::Exists),
        other => Ok(other?),
    }
}

fn partial_name(path: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name()?);
    name.push(".partial");
    Some(path.with_file_name(name))
}

fn write_zeros(mut file: &File, len: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), len), &mut file).map(drop)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_whole_and_keeps_what_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.arc");
        let partial = directory.path().join(".a.arc.partial");
        std::fs::write(&partial, "left behind").unwrap();
        let mut file = MappedFile::create(&path, 100_000, |bytes| {
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes[0] = 7;
        })
        .unwrap();
        assert!(!partial.exists());
        let about = std::fs::metadata(&path).unwrap();
        assert_eq!(about.len(), 100_000);
        assert!(about.blocks() * 512 >= 100_000, "allocated, not sparse");
        file.bytes_mut()[99_999] = 9;
        // Seen by readers at once.
        let read = std::fs::read(&path).unwrap();
        assert_eq!((read[0], read[99_999]), (7, 9));
        file.write_back().unwrap();
        drop(file);
        let again = MappedFile::open(&path).unwrap();
        assert_eq!((again.bytes()[0], again.bytes()[99_999]), (7, 9));
    }

    #[test]
    fn a_second_writer_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.arc");
        let first = MappedFile::create(&path, 4096, |_| ()).unwrap();
        assert!(matches!(MappedFile::open(&path), Err(MapError::Locked)));
        assert!(matches!(
            MappedFile::create(&path, 4096, |_| ()),
            Err(MapError::Exists)
        ));
        drop(first);
        MappedFile::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_was_cut_is_noticed_and_a_full_disk_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.arc");
        let file = MappedFile::create(&path, 10_000, |_| ()).unwrap();
        assert!(file.is_whole());
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(5)
            .unwrap();
        assert!(!file.is_whole());
        let full = MappedFile::create(&directory.path().join("b.arc"), 1 << 60, |_| ());
        assert!(matches!(full, Err(MapError::NoRoom { .. })), "{full:?}");
        assert!(matches!(
            MappedFile::create(&directory.path().join("c.arc"), 0, |_| ()),
            Err(MapError::NoRoom { .. } | MapError::NotAFile)
        ));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        std::fs::write(&path, "").unwrap();
        assert!(matches!(
            MappedFile::open(directory.path()),
            Err(MapError::Io(_))
        ));
        drop(file);
        assert!(matches!(MappedFile::open(&path), Err(MapError::NotAFile)));
    }
}
