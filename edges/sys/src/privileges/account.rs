//! Another user of the system: who that is, and becoming that one.

use std::ffi::{CStr, CString};
use std::io;
use std::os::raw::{c_char, c_int};
use std::path::Path;

use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// Bytes of the longest entry that is read: a name, a directory, a shell.
const MAX_ENTRY: usize = 1 << 20;
/// Groups of one user, at most (`NGROUPS_MAX` of Linux).
const MAX_GROUPS: usize = 65_536;

/// A user and the groups of that user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    name: String,
    uid: Uid,
    gid: Gid,
    /// With the first.
    groups: Vec<Gid>,
}

impl Account {
    /// Looks a name up, wherever this system keeps its users (`nsswitch.conf`); `None` where there is none.
    ///
    /// # Errors
    /// Where they cannot be asked for.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        let Ok(text) = CString::new(name) else {
            return Ok(None);
        };
        let Some((uid, gid)) = ids(&text)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            name: name.to_owned(),
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
            groups: groups(&text, gid)?,
        }))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does `work` with what this user may do to files, and is who it was before afterwards. Of the calling
    /// thread alone.
    ///
    /// # Errors
    /// Where it may not change its user: it needs `CAP_SETUID` and `CAP_SETGID`. Where that is found half-way
    /// the thread is left between the two, and no run should begin.
    pub fn acting<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let (uid, gid, groups) = (geteuid(), getegid(), getgroups()?);
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(None, self.gid, None)?;
        // Last, and first on the way back: the right to change the others goes with it.
        set_thread_res_uid(None, self.uid, None)?;
        let done = work();
        set_thread_res_uid(None, uid, None)?;
        set_thread_res_gid(None, gid, None)?;
        set_thread_groups(&groups)?;
        Ok(done)
    }

    /// Gives this user what the caller has just made.
    ///
    /// # Errors
    /// What the system says; it needs `CAP_CHOWN`.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        let (uid, gid) = (self.uid.as_raw(), self.gid.as_raw());
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))
    }

    /// Becomes this user for good. Capabilities stay permitted, and none is in effect.
    pub(super) fn enter(&self) -> io::Result<()> {
        set_keep_capabilities(true)?;
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(self.gid, self.gid, self.gid)?;
        set_thread_res_uid(self.uid, self.uid, self.uid)?;
        Ok(set_keep_capabilities(false)?)
    }
}

/// The numbers of a user and of the first group.
fn ids(name: &CStr) -> io::Result<Option<(u32, u32)>> {
    let mut room: Vec<c_char> = vec![0; 1024];
    loop {
        // SAFETY: a record of numbers and pointers, for which all zeros are a value.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: the name ends with a NUL, `room` has as many bytes as is said, and all of them outlive
        // the call; of `entry` only numbers are read later, no pointer into `room`.
        let error = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                &raw mut entry,
                room.as_mut_ptr(),
                room.len(),
                &raw mut found,
            )
        };
        match error {
            0 if found.is_null() => return Ok(None),
            0 => return Ok(Some((entry.pw_uid, entry.pw_gid))),
            // Nobody by that name, as some modules of the system's say it (getpwnam(3)).
            libc::ENOENT | libc::ESRCH | libc::EBADF => return Ok(None),
            libc::ERANGE if room.len() < MAX_ENTRY => room.resize(room.len() * 4, 0),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// All groups of a user, with the first.
fn groups(name: &CStr, first: u32) -> io::Result<Vec<Gid>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = c_int::try_from(groups.len()).unwrap_or(c_int::MAX);
        // SAFETY: the name ends with a NUL, `groups` has as many elements as `count` says.
        let fits = unsafe {
            libc::getgrouplist(name.as_ptr(), first, groups.as_mut_ptr(), &raw mut count)
        };
        if fits >= 0 {
            groups.truncate(usize::try_from(count).unwrap_or(0));
            return Ok(groups.into_iter().map(Gid::from_raw).collect());
        }
        if groups.len() >= MAX_GROUPS {
            return Err(io::Error::other("too many groups"));
        }
        groups.resize(groups.len() * 4, 0);
    }
}
