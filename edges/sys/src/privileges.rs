//! Giving up what a capture or a gateway needs no more once it is open.
//!
//! Four locks, each of which holds where another one is missing: capabilities are dropped, programs
//! cannot give any back (`no_new_privs`), files can be made and changed only in the folders named
//! (landlock), and system calls with which an intruder would go on (starting programs, tracing,
//! mounting, loading code into the kernel) are refused (seccomp).
//!
//! All of them bind the calling thread and the threads it starts later, not those that run already.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus,
};
use rustix::fs::{AtFlags, CWD};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{SeccompAction, SeccompFilter, SeccompRule};

/// What a process keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restrict {
    /// Folders (or files) in which files may be made, changed and renamed.
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
}

impl Restrict {
    /// Gives everything else up, for good.
    ///
    /// Returns what could not be done, one sentence each: a kernel without landlock or seccomp, a
    /// folder that does not exist.
    ///
    /// # Errors
    /// Where capabilities cannot be dropped.
    pub fn apply(&self) -> io::Result<Vec<String>> {
        let mut undone = Vec::new();
        rustix::thread::set_no_new_privs(true)?;
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
        // An administrator writes to folders of others by a capability; it is kept where it is
        // needed for that, and landlock limits it to those folders.
        let override_access = CapabilitySet::DAC_OVERRIDE;
        set(keep, keep | override_access)?;
        let foreign: Vec<String> = self
            .writable
            .iter()
            .filter(|path| path.exists() && !is_writable(path))
            .map(|path| path.display().to_string())
            .collect();
        if !foreign.is_empty() && have.permitted.contains(override_access) {
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
        let mut refused = REFUSED.to_vec();
        if !self.keep_bpf {
            refused.push(libc::SYS_bpf);
        }
        // No condition on the arguments: always refused.
        let rules: BTreeMap<i64, Vec<SeccompRule>> =
            refused.into_iter().map(|call| (call, Vec::new())).collect();
        let applied = std::env::consts::ARCH
            .try_into()
            .and_then(|machine| {
                let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
                SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)
            })
            .and_then(seccompiler::BpfProgram::try_from)
            .map_err(|error| error.to_string())
            .and_then(|program| {
                seccompiler::apply_filter(&program).map_err(|error| error.to_string())
            });
        if let Err(error) = applied {
            undone.push(format!("system calls are not restricted: {error}"));
        }
    }
}

/// Whether this thread may write there now.
fn is_writable(path: &Path) -> bool {
    rustix::fs::accessat(CWD, path, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Calls that a capture never makes and an intruder would: other programs, other processes, other
/// namespaces and roots, code in the kernel, keys, clocks.
const REFUSED: [i64; 40] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_setuid,
    libc::SYS_setgid,
];

#[cfg(test)]
mod tests {
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
    fn an_administrator_can_write_to_the_folder_of_somebody_else() {
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        if std::os::unix::fs::chown(&theirs, Some(65_534), Some(65_534)).is_err() {
            println!(
                "skipped: an_administrator_can_write_to_the_folder_of_somebody_else needs root"
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
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        let restrict = Restrict {
            writable: vec![inside.clone(), folder.path().join("missing")],
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
}
