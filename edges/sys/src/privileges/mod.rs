//! Giving up what a capture or a gateway needs no more once it is open.
//!
//! Five locks, each of which holds where another one is missing: who the process is (a user of its own),
//! capabilities are dropped, programs cannot give any back (`no_new_privs`), files can be made and changed
//! only in the directories named (landlock), and system calls with which an intruder would go on (starting
//! programs, tracing, mounting, loading code into the kernel), or all but those that a service makes, are
//! refused (seccomp).
//!
//! All of them bind the calling thread and the threads it starts later, not those that run already.

mod account;
mod calls;

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus,
};
use rustix::fs::{Access, AtFlags, CWD, Mode, accessat};
use rustix::process::umask;
use rustix::thread::{CapabilitySet, CapabilitySets};

pub use account::Account;
pub use calls::Calls;

/// Keeps the memory of this process out of dumps and from those who could trace it: secrets are in it.
///
/// # Errors
/// What `prctl(2)` says.
pub fn forbid_core_dumps() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(
        rustix::process::DumpableBehavior::NotDumpable,
    )?)
}

/// What a process keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restrict {
    /// Directories (or files) in which files may be made, changed and renamed.
    pub writable: Vec<PathBuf>,
    /// Keeps `CAP_DAC_READ_SEARCH`: files of others that an administrator names are read as they come up.
    pub keep_read: bool,
    /// Keeps `CAP_NET_RAW`, to open an interface again that has gone and come back.
    pub keep_net: bool,
    /// Keeps `CAP_NET_ADMIN`, `CAP_BPF` and `CAP_IPC_LOCK` too, and the system call `bpf`: what `AF_XDP` needs for
    /// the same.
    pub keep_bpf: bool,
    /// Keeps `CAP_NET_ADMIN`: verdicts on queued packets and changes of connection marks, each of which
    /// is checked when it is made. Sockets that were opened with `CAP_NET_RAW` go on without it.
    pub keep_net_admin: bool,
    /// Which system calls go through.
    pub calls: Calls,
    /// Whose process it is from then on; as before where it is nobody.
    pub user: Option<Account>,
}

impl Restrict {
    /// Gives everything else up, for good.
    ///
    /// Returns what could not be done, one sentence each: a kernel without landlock or seccomp, a
    /// directory that does not exist.
    ///
    /// # Errors
    /// Where capabilities cannot be dropped, or the user cannot be changed.
    pub fn apply(&self) -> io::Result<Vec<String>> {
        let mut undone = Vec::new();
        rustix::thread::set_no_new_privs(true)?;
        if let Some(user) = &self.user {
            user.enter()?;
        }
        self.drop_capabilities(&mut undone)?;
        self.restrict_files(&mut undone);
        self.restrict_calls(&mut undone);
        Ok(undone)
    }

    fn drop_capabilities(&self, undone: &mut Vec<String>) -> io::Result<()> {
        let have = rustix::thread::capabilities(None)?;
        let mut keep = CapabilitySet::empty();
        if self.keep_read {
            keep |= CapabilitySet::DAC_READ_SEARCH;
        }
        if self.keep_net {
            keep |= CapabilitySet::NET_RAW;
        }
        if self.keep_bpf {
            // Without the last the memory of its frames counts against RLIMIT_MEMLOCK.
            keep |= CapabilitySet::NET_ADMIN | CapabilitySet::BPF | CapabilitySet::IPC_LOCK;
        }
        if self.keep_net_admin {
            keep |= CapabilitySet::NET_ADMIN;
        }
        let set = |effective: CapabilitySet, permitted: CapabilitySet| {
            let sets = CapabilitySets {
                effective: effective & have.permitted,
                permitted: permitted & have.permitted,
                inheritable: CapabilitySet::empty(),
            };
            rustix::thread::set_capabilities(None, sets)
        };
        // Kernels before 4.3 have no ambient set to clear.
        rustix::thread::clear_ambient_capability_set().ok();
        // An administrator writes to directories of others by a capability; it is kept where it is
        // needed for that, and landlock limits it to those directories. A user of its own has directories.
        let override_access = match self.user {
            Some(_) => CapabilitySet::empty(),
            None => CapabilitySet::DAC_OVERRIDE,
        };
        set(keep, keep | override_access)?;
        let foreign: Vec<String> = self
            .writable
            .iter()
            .filter(|path| path.exists() && !is_writable(path))
            .map(|path| path.display().to_string())
            .collect();
        if !foreign.is_empty() && have.permitted.intersects(override_access) {
            keep |= override_access;
            undone.push(format!(
                "CAP_DAC_OVERRIDE is kept to write to {}, which belongs to somebody else",
                foreign.join(", ")
            ));
        }
        set(keep, keep)?;
        Ok(())
    }

    fn restrict_files(&self, undone: &mut Vec<String>) {
        match self.landlock(undone) {
            Ok(RulesetStatus::NotEnforced) => undone.push(
                "files are not restricted: the kernel has no landlock (Linux 5.13 and later)"
                    .to_owned(),
            ),
            Ok(_) => {}
            Err(error) => undone.push(format!("files are not restricted: {error}")),
        }
    }

    fn landlock(&self, undone: &mut Vec<String>) -> Result<RulesetStatus, landlock::RulesetError> {
        // Version 3 adds truncation; older kernels do what they can.
        let writes = AccessFs::from_write(ABI::V3);
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(writes)?
            .create()?;
        for path in &self.writable {
            match PathFd::new(path) {
                Ok(fd) => {
                    let allowed = if path.is_dir() {
                        writes
                    } else {
                        writes & AccessFs::from_file(ABI::V3)
                    };
                    ruleset = ruleset.add_rule(PathBeneath::new(fd, allowed))?;
                }
                Err(error) => undone.push(format!("cannot write there: {error}")),
            }
        }
        Ok(ruleset.restrict_self()?.ruleset)
    }

    fn restrict_calls(&self, undone: &mut Vec<String>) {
        match calls::restrict(self.calls, self.keep_bpf) {
            Ok(more) => undone.extend(more),
            Err(error) => undone.push(format!("system calls are not restricted: {error}")),
        }
    }
}

/// Whether this thread may write there now; in a directory that is to make files.
#[must_use]
pub fn is_writable(path: &Path) -> bool {
    let mut wanted = Access::WRITE_OK;
    if path.is_dir() {
        wanted |= Access::EXEC_OK;
    }
    accessat(CWD, path, wanted, AtFlags::EACCESS).is_ok()
}

/// Keeps others than the owner and its group from reading the files that this process makes from here on:
/// they get mode 0640 at most, directories 0750. A mask that hides more stays.
pub fn hide_new_files() {
    let hidden = Mode::from_raw_mode(0o027);
    // The mask can only be asked for by setting one.
    let before = umask(Mode::from_raw_mode(0o077));
    umask(before | hidden);
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::process::Uid;

    use super::*;

    /// The locks bind a thread, so a test gives up only its own.
    fn locked(restrict: Restrict, then: impl FnOnce(Vec<String>) + Send + 'static) {
        std::thread::spawn(move || then(restrict.apply().unwrap()))
            .join()
            .unwrap();
    }

    #[test]
    fn capabilities_are_gone_but_those_named() {
        let had = rustix::thread::capabilities(None).unwrap().permitted;
        locked(Restrict::default(), move |_| {
            let sets = rustix::thread::capabilities(None).unwrap();
            assert_eq!(sets.permitted, CapabilitySet::empty());
            assert_eq!(sets.effective, CapabilitySet::empty());
            assert!(rustix::thread::no_new_privs().unwrap());
        });
        let restrict = Restrict {
            keep_net: true,
            ..Restrict::default()
        };
        locked(restrict, move |_| {
            let sets = rustix::thread::capabilities(None).unwrap();
            assert_eq!(sets.effective, had & CapabilitySet::NET_RAW);
        });
        let restrict = Restrict {
            keep_net_admin: true,
            ..Restrict::default()
        };
        locked(restrict, move |_| {
            let sets = rustix::thread::capabilities(None).unwrap();
            assert_eq!(sets.effective, had & CapabilitySet::NET_ADMIN);
            assert_eq!(sets.permitted, sets.effective);
        });
    }

    #[test]
    fn an_administrator_can_write_to_the_directory_of_somebody_else() {
        let directory = tempfile::tempdir().unwrap();
        let theirs = directory.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        if std::os::unix::fs::chown(&theirs, Some(65_534), Some(65_534)).is_err() {
            println!(
                "skipped: an_administrator_can_write_to_the_directory_of_somebody_else needs root"
            );
            return;
        }
        let restrict = Restrict {
            writable: vec![theirs.clone()],
            ..Restrict::default()
        };
        locked(restrict, move |undone| {
            assert!(
                undone[0].starts_with("CAP_DAC_OVERRIDE is kept"),
                "{undone:?}"
            );
            std::fs::write(theirs.join("a"), "text").unwrap();
        });
    }

    #[test]
    fn files_can_be_written_only_where_said() {
        let directory = tempfile::tempdir().unwrap();
        let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        let restrict = Restrict {
            writable: vec![inside.clone(), directory.path().join("missing")],
            ..Restrict::default()
        };
        locked(restrict, move |undone| {
            assert!(
                undone.iter().any(|text| text.contains("missing")),
                "{undone:?}"
            );
            std::fs::write(inside.join("a.tmp"), "text").unwrap();
            std::fs::rename(inside.join("a.tmp"), inside.join("a")).unwrap();
            assert_eq!(std::fs::read_to_string(inside.join("a")).unwrap(), "text");
            if undone.iter().any(|text| text.contains("landlock")) {
                println!("skipped: files_can_be_written_only_where_said needs landlock");
                return;
            }
            let error = std::fs::write(outside.join("b"), "text").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            let error = std::fs::remove_file(outside.join("b")).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::Other);
        });
    }

    #[test]
    fn no_program_can_be_started() {
        locked(Restrict::default(), |undone| {
            if undone.iter().any(|text| text.contains("system calls")) {
                println!("skipped: no_program_can_be_started needs seccomp: {undone:?}");
                return;
            }
            let error = std::process::Command::new("/bin/true")
                .status()
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            // Ordinary work goes on.
            assert!(
                !std::fs::read_to_string("/proc/self/status")
                    .unwrap()
                    .is_empty()
            );
            std::thread::spawn(|| ()).join().unwrap();
        });
    }
    /// Calls that each go as far as the kernel: what they answer where nothing refuses them is another
    /// error, or nothing.
    fn refused(what: &str, done: libc::c_long) {
        let error = io::Error::last_os_error();
        assert!(
            done == -1 && error.raw_os_error() == Some(libc::EPERM),
            "{what}: {done}, {error}"
        );
    }

    /// A call with numbers, of which none is an address that the kernel would write to.
    fn call(number: libc::c_long, words: [i64; 4]) -> libc::c_long {
        let [a, b, c, d] = words;
        // SAFETY: it changes no memory; a copy of the process that it makes shares none.
        unsafe { libc::syscall(number, a, b, c, d, 0) }
    }

    /// Signal 0: nothing that `kill` would do to a process.
    fn kill_nothing(process: u32) -> libc::c_long {
        call(libc::SYS_kill, [process.into(), 0, 0, 0])
    }

    #[test]
    fn a_service_makes_only_calls_of_a_service() {
        // No user and no capability stands in the way of these: the filter alone does.
        let parent = std::os::unix::process::parent_id();
        assert_eq!(kill_nothing(parent), 0);
        let restrict = Restrict {
            calls: Calls::OfService,
            ..Restrict::default()
        };
        locked(restrict, move |undone| {
            if undone.iter().any(|text| text.contains("system calls are")) {
                println!("skipped: a_service_makes_only_calls_of_a_service: {undone:?}");
                return;
            }
            refused("kill another", kill_nothing(parent));
            assert_eq!(kill_nothing(std::process::id()), 0, "it may end itself");
            let packets = [libc::AF_PACKET, libc::SOCK_RAW, 0, 0].map(i64::from);
            let hosts = [libc::AF_VSOCK, libc::SOCK_STREAM, 0, 0].map(i64::from);
            let key = [0, libc::TIOCSTI.cast_signed(), 0, 0];
            for (what, number, words) in [
                ("groups of processes", libc::SYS_setpgid, [0; 4]),
                ("tracing", libc::SYS_ptrace, [0; 4]),
                ("shared memory", libc::SYS_shmget, [0; 4]),
                ("a file without a name", libc::SYS_memfd_create, [0; 4]),
                ("another root", libc::SYS_chroot, [0; 4]),
                ("what it is", libc::SYS_personality, [0xffff_ffff, 0, 0, 0]),
                ("packets", libc::SYS_socket, packets),
                ("virtual machines", libc::SYS_socket, hosts),
                ("a key pressed", libc::SYS_ioctl, key),
                ("limits", libc::SYS_prlimit64, [parent.into(), 0, 0, 0]),
            ] {
                refused(what, call(number, words));
            }
            // What it needs goes on.
            std::thread::spawn(|| ()).join().unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::net::TcpStream::connect(address).unwrap();
            std::fs::read("/proc/self/status").unwrap();
        });
    }

    /// A namespace of users would give back every capability; `unshare` is not the only way to one.
    #[test]
    fn only_threads_are_started() {
        for calls in [Calls::NotRefused, Calls::OfService] {
            let restrict = Restrict {
                calls,
                ..Restrict::default()
            };
            locked(restrict, move |undone| {
                if undone.iter().any(|text| text.contains("system calls are")) {
                    println!("skipped: only_threads_are_started needs seccomp: {undone:?}");
                    return;
                }
                let signal = i64::from(libc::SIGCHLD);
                for flags in [i64::from(libc::CLONE_NEWUSER) | signal, signal] {
                    let done = call(libc::SYS_clone, [flags, 0, 0, 0]);
                    if done == 0 {
                        // SAFETY: ends the copy alone.
                        unsafe { libc::_exit(0) };
                    }
                    refused("clone", done);
                }
                let done = call(libc::SYS_clone3, [0; 4]);
                let error = io::Error::last_os_error();
                assert_eq!((done, error.raw_os_error()), (-1, Some(libc::ENOSYS)));
            });
        }
    }

    #[test]
    fn another_user_reads_no_secrets() {
        let user = Account::named("nobody").unwrap().unwrap();
        assert_eq!(Account::named("no such user").unwrap(), None);
        assert_eq!(Account::named("a\0b").unwrap(), None);
        let directory = tempfile::tempdir().unwrap();
        let secret = directory.path().join("secret");
        std::fs::write(&secret, "text").unwrap();
        let theirs = directory.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        if user.own(&theirs).is_err() || user.acting(|| ()).is_err() {
            println!("skipped: another_user_reads_no_secrets needs root and the user");
            return;
        }
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(0o640)).unwrap();
        let read = || std::fs::read(&secret).map_err(|error| error.kind());
        let denied = Err(io::ErrorKind::PermissionDenied);
        let had = rustix::thread::capabilities(None).unwrap();
        assert_eq!(user.acting(read).unwrap(), denied);
        assert!(user.acting(|| is_writable(&theirs)).unwrap());
        assert!(!user.acting(|| is_writable(directory.path())).unwrap());
        // It is who it was.
        assert_eq!(read(), Ok(b"text".to_vec()));
        assert_eq!(rustix::thread::capabilities(None).unwrap(), had);

        let restrict = Restrict {
            writable: vec![theirs.clone(), directory.path().to_owned()],
            keep_net_admin: true,
            user: Some(user),
            ..Restrict::default()
        };
        let (secret, above) = (secret.clone(), directory.path().join("above"));
        locked(restrict, move |_| {
            let read = std::fs::read(&secret).map_err(|error| error.kind());
            assert_eq!(read, denied);
            let sets = rustix::thread::capabilities(None).unwrap();
            assert_eq!(sets.effective, had.permitted & CapabilitySet::NET_ADMIN);
            assert_eq!(sets.permitted, sets.effective);
            std::fs::write(theirs.join("a"), "text").unwrap();
            let made = std::fs::write(above, "text").map_err(|error| error.kind());
            assert_eq!(made, Err(io::ErrorKind::PermissionDenied));
            for done in [
                rustix::thread::set_thread_res_uid(None, Uid::ROOT, None),
                rustix::thread::set_thread_groups(&[]),
            ] {
                done.unwrap_err();
            }
        });
    }
}
