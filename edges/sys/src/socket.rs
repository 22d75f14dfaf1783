//! The calls on sockets that take a structure, with their sizes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// An address family as it stands in an address.
pub(crate) fn family(number: i32) -> u16 {
    u16::try_from(number).unwrap_or(0)
}

fn size<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

fn checked(status: i32) -> io::Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `setsockopt` with a plain value; pointers inside it must be good for the call.
pub(crate) fn set<T: Copy>(
    fd: BorrowedFd<'_>,
    level: i32,
    option: i32,
    value: &T,
) -> io::Result<()> {
    let value: *const T = value;
    // SAFETY: `size` bytes are readable at `value`; the kernel keeps no pointer to them.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, value.cast(), size::<T>()) })
}

/// `getsockopt` into a plain value of integers: every bit pattern is a value.
pub(crate) fn get<T: Copy>(
    fd: BorrowedFd<'_>,
    level: i32,
    option: i32,
    value: &mut T,
) -> io::Result<()> {
    let mut len = size::<T>();
    let value: *mut T = value;
    // SAFETY: `len` bytes are writable at `value`, and `len` is writable too.
    checked(unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, value.cast(), &raw mut len) })
}

/// `bind` to an address of a family that this crate knows.
pub(crate) fn bind<T: Copy>(fd: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    let address: *const T = address;
    // SAFETY: `size` bytes are readable at `address`; the kernel checks family and size.
    checked(unsafe { libc::bind(fd.as_raw_fd(), address.cast(), size::<T>()) })
}

/// `getsockname` into an address of integers.
pub(crate) fn name<T: Copy>(fd: BorrowedFd<'_>, address: &mut T) -> io::Result<()> {
    let mut len = size::<T>();
    let address: *mut T = address;
    // SAFETY: `len` bytes are writable at `address`, and `len` is writable too.
    checked(unsafe { libc::getsockname(fd.as_raw_fd(), address.cast(), &raw mut len) })
}
