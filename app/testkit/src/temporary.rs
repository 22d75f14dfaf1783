//! A directory that goes with the program, however that ends.
//!
//! A [`tempfile::TempDir`] stays behind where a program is killed. Here a process of its own removes the
//! directory when the pipe it reads from is closed, which the kernel does whatever becomes of us.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A directory in the place for temporary files (`TMPDIR`). Dropped, it is gone.
#[derive(Debug)]
pub struct TemporaryDirectory {
    path: PathBuf,
    janitor: Child,
}

impl TemporaryDirectory {
    /// Makes one whose name begins so.
    ///
    /// # Errors
    /// There is no room, or no shell.
    pub fn new(prefix: &str) -> io::Result<Self> {
        // Nobody else may look into it, whatever the umask is.
        let made = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let janitor = janitor(made.path())?;
        Ok(Self {
            path: made.keep(),
            janitor,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Others that end at the same time may still make files in it, so what fails is tried again.
const REMOVE: &str = "cat >/dev/null; \
    for again in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- \"$1\" && exit; sleep 0.3; done";

/// A key pressed for us is not for it.
fn janitor(directory: &Path) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", REMOVE, "sh"])
        .arg(directory)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        // There is nobody to tell if it does not end.
        drop(self.janitor.wait());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_goes_with_what_is_in_it() {
        let directory = TemporaryDirectory::new("testkit-").unwrap();
        let path = directory.path().to_owned();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(path.join("d")).unwrap();
        fs::write(path.join("d/x"), "x").unwrap();
        drop(directory);
        assert!(!path.exists());
    }
}
