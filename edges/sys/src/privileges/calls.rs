//! Which system calls go through (seccomp).
//!
//! What is refused fails with `EPERM` and does not end the process: a library of another version that tries
//! a call it could do without goes on, and a gateway in the path of other people's traffic stays. The kernel
//! writes each refusal to its log (audit, type 1326: program, process, number of the call).

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Calls by number; an empty list of conditions is none at all, otherwise one of them is to hold.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What is let through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Calls {
    /// All but those with which an intruder would go on.
    #[default]
    NotRefused,
    /// Those that a service makes that has opened what it serves: files, sockets, threads, time. None by
    /// which it could act on other processes.
    OfService,
}

/// Refuses all other calls from here on, for the calling thread and those it starts.
///
/// Returns what is not as it should be.
pub(super) fn restrict(calls: Calls, keep_bpf: bool) -> io::Result<Vec<String>> {
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let all = match calls {
        Calls::NotRefused => {
            refused(keep_bpf).and_then(|rules| program(rules, refuse, SeccompAction::Allow))
        }
        Calls::OfService => {
            of_service().and_then(|rules| program(rules, SeccompAction::Allow, refuse))
        }
    };
    // It hides its flags from filters. A library that learns that there is no such call takes `clone`.
    let no_clone3 = program(
        [(libc::SYS_clone3, Vec::new())].into(),
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        SeccompAction::Allow,
    );
    let (all, no_clone3) = (
        all.map_err(io::Error::other)?,
        no_clone3.map_err(io::Error::other)?,
    );
    // What every start of a thread tries is no news to anybody.
    install(&no_clone3, 0)?;
    let mut undone = Vec::new();
    match install(&all, libc::SECCOMP_FILTER_FLAG_LOG) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            install(&all, 0)?;
            let why = "refused system calls are not in the kernel's log (Linux 4.14 and later)";
            undone.push(why.to_owned());
        }
        done => done?,
    }
    Ok(undone)
}

fn program(rules: Rules, named: SeccompAction, others: SeccompAction) -> Built<BpfProgram> {
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, others, named, machine)?.try_into()
}

/// `no_new_privs` must have been set, or it needs `CAP_SYS_ADMIN`.
fn install(program: &BpfProgram, flags: libc::c_ulong) -> io::Result<()> {
    let mut steps: Vec<libc::sock_filter> = (program.iter())
        .map(|step| libc::sock_filter {
            code: step.code,
            jt: step.jt,
            jf: step.jf,
            k: step.k,
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(steps.len()).map_err(io::Error::other)?,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which has as many steps as it says and outlives the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

type Built<T> = Result<T, seccompiler::BackendError>;

/// An argument (0 is the first) that is one of some values.
fn one_of(argument: u8, values: &[u64]) -> Built<Vec<SeccompRule>> {
    let rule = |value: &u64| {
        let equal =
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *value)?;
        SeccompRule::new(vec![equal])
    };
    values.iter().map(rule).collect()
}

/// The flags of a `clone` that starts a thread, or of one that starts anything else.
fn clone_flags(is_thread: bool) -> Built<Vec<SeccompRule>> {
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let value = if is_thread { thread } else { 0 };
    let flags = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(thread),
        value,
    )?;
    Ok(vec![SeccompRule::new(vec![flags])?])
}

fn refused(keep_bpf: bool) -> Built<Rules> {
    let calls = REFUSED.iter().chain(REFUSED_HERE);
    let mut rules: Rules = calls.map(|call| (*call, Vec::new())).collect();
    if !keep_bpf {
        rules.insert(libc::SYS_bpf, Vec::new());
    }
    rules.insert(libc::SYS_clone, clone_flags(false)?);
    Ok(rules)
}

fn of_service() -> Built<Rules> {
    let calls = OF_SERVICE.iter().chain(OF_SERVICE_HERE);
    let mut rules: Rules = calls.map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, clone_flags(true)?);
    let this = u64::from(std::process::id());
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        rules.insert(call, one_of(0, &[this])?);
    }
    rules.insert(libc::SYS_socket, one_of(0, &FAMILIES)?);
    rules.insert(libc::SYS_socketpair, one_of(0, &FAMILIES)?);
    rules.insert(libc::SYS_ioctl, one_of(1, &REQUESTS)?);
    rules.insert(libc::SYS_prctl, one_of(0, &PROCESS)?);
    // Its own, and only to be read.
    let read = [(0, 0), (2, 0)].map(|(argument, value)| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value)
    });
    let read = read.into_iter().collect::<Built<_>>()?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(read)?]);
    Ok(rules)
}

/// Connections, names, and the kernel's answers about rules and interfaces.
const FAMILIES: [u64; 4] = [
    libc::AF_UNIX as u64,
    libc::AF_INET as u64,
    libc::AF_INET6 as u64,
    libc::AF_NETLINK as u64,
];

/// Of a terminal what it is and how it is set (by `struct termios` and `termios2`) and its size; of a
/// descriptor whether it waits and how much there is to read.
const REQUESTS: [u64; 12] = [
    0x5401,      // TCGETS
    0x5402,      // TCSETS
    0x5403,      // TCSETSW
    0x5404,      // TCSETSF
    0x802c_542a, // TCGETS2
    0x402c_542b, // TCSETS2
    0x402c_542c, // TCSETSW2
    0x402c_542d, // TCSETSF2
    0x5413,      // TIOCGWINSZ
    0x5421,      // FIONBIO
    0x541b,      // FIONREAD
    0x5451,      // FIOCLEX
];

/// Names of threads and of memory, what the kernel told the process of itself, and whether a memory dump is
/// made.
const PROCESS: [u64; 5] = [
    libc::PR_SET_NAME as u64,
    libc::PR_GET_NAME as u64,
    0x5356_4d41, // PR_SET_VMA
    0x4155_5856, // PR_GET_AUXV
    libc::PR_GET_DUMPABLE as u64,
];

/// Calls that a capture never makes and an intruder would: other programs, other processes, other
/// namespaces and roots, code in the kernel, keys, clocks, and calls that filters do not see.
const REFUSED: &[i64] = &[
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
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Without conditions on their arguments. `clone3` is here because a filter of its own answers it.
const OF_SERVICE: &[i64] = &[
    // Descriptors.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_lseek,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    // Files; landlock says where.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    // Connections.
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_msync,
    libc::SYS_membarrier,
    libc::SYS_mseal,
    // Threads, and signals to this process.
    libc::SYS_clone3,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_getcpu,
    // Time.
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_getrusage,
    // What it is itself.
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getpriority,
    libc::SYS_capget,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_umask,
];

/// What the libraries of this machine still make of older calls.
#[cfg(target_arch = "x86_64")]
const OF_SERVICE_HERE: &[i64] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_chmod,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_eventfd,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_getrlimit,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_SERVICE_HERE: &[i64] = &[];
