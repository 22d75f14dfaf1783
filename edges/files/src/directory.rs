//! A directory, held open: what is done in it is done there, whatever its path means meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, linkat, openat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

/// Mode of a file that is written or kept.
pub(crate) const WRITABLE: Mode = Mode::from_raw_mode(0o600);
/// Mode of one in the quarantine.
pub(crate) const READ_ONLY: Mode = Mode::from_raw_mode(0o400);

/// A directory as it was when it was opened.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

impl Dir {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Keeps other runs out, as long as it is open.
    pub(crate) fn lock(&self) -> io::Result<()> {
        Ok(flock(&self.0, FlockOperation::NonBlockingLockExclusive)?)
    }

    /// Makes a file that is not there, and follows no link to make it.
    pub(crate) fn create(&self, name: &str) -> io::Result<OwnedFd> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, WRITABLE)?)
    }

    /// Opens a file that is there, and no link.
    pub(crate) fn reopen(&self, name: &str, is_written: bool) -> io::Result<OwnedFd> {
        let access = if is_written {
            OFlags::WRONLY
        } else {
            OFlags::RDONLY
        };
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?)
    }

    /// Deletes a file; one that is gone already is as good.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Gives a file another name, in this directory or in `to`, unless that is taken:
    /// [`io::ErrorKind::AlreadyExists`].
    pub(crate) fn rename(&self, name: &str, to: &Self, new_name: &str) -> io::Result<()> {
        match renameat_with(&self.0, name, &to.0, new_name, RenameFlags::NOREPLACE) {
            // Some file systems do not know the flag. A link does not replace either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                linkat(&self.0, name, &to.0, new_name, AtFlags::empty())?;
                unlinkat(&self.0, name, AtFlags::empty())?;
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// Makes names survive a power cut, where the file system can do that.
    pub(crate) fn sync(&self) {
        rustix::fs::fsync(&self.0).ok();
    }
}

/// The directory that a path names, opened again when it has become another one.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    dir: Arc<Dir>,
}

impl Directory {
    /// Opens it; makes it if it is not there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
        Ok(Self {
            path: path.to_owned(),
            dir: Arc::new(Dir::open(path)?),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory as it is now. It is not made again when somebody has removed it: what looks like it
    /// may be the place where a disk is mounted.
    pub(crate) fn now(&mut self) -> io::Result<Arc<Dir>> {
        let there = statat(CWD, &self.path, AtFlags::empty())?;
        let ours = fstat(&self.dir.0)?;
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino) {
            self.dir = Arc::new(Dir::open(&self.path)?);
            // Only a second run could hold it, and it would have the older one's files as well.
            self.dir.lock()?;
        }
        Ok(Arc::clone(&self.dir))
    }

    /// Whether both are one directory.
    pub(crate) fn is_same(&self, other: &Self) -> io::Result<bool> {
        let (ours, theirs) = (fstat(&self.dir.0)?, fstat(&other.dir.0)?);
        Ok((ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino))
    }
}
