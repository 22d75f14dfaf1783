//! How hidden files get names of their own.

use std::fs::File;
use std::io;

use rustix::fs::fchmod;
use rustix::io::Errno;

use crate::directory::{Dir, READ_ONLY};
use crate::name::{candidates, json, partial};

/// Gives the hidden files of `name` in `from` their own names in `to`; the first that is free, which it
/// returns. The text comes first: a file never has its name without one.
pub(crate) fn publish(from: &Dir, name: &str, to: &Dir) -> io::Result<String> {
    let (hidden, hidden_text) = (partial(name), partial(&json(name)));
    for own in candidates(name) {
        if to.has(&own) {
            continue;
        }
        match from.rename(&hidden_text, to, &json(&own)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other?,
        }
        match from.rename(&hidden, to, &own) {
            Ok(()) => return Ok(own),
            // Somebody was faster, or the file is gone: the text goes back.
            Err(error) => {
                to.rename(&json(&own), from, &hidden_text)?;
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(error);
                }
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// [`publish`] to the quarantine, which may be on another file system: then the file is copied.
pub(crate) fn isolate(from: &Dir, name: &str, to: &Dir) -> io::Result<String> {
    match publish(from, name, to) {
        Err(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {}
        other => return other,
    }
    let copy = candidates(name)
        .find(|copy| !to.has(&partial(copy)) && !to.has(&partial(&json(copy))))
        .ok_or(io::ErrorKind::AlreadyExists)?;
    let copied = copy_one(from, &partial(name), to, &partial(&copy))
        .and_then(|()| copy_one(from, &partial(&json(name)), to, &partial(&json(&copy))))
        .and_then(|()| {
            let file = to.reopen(&partial(&copy), false)?;
            Ok(fchmod(file, READ_ONLY)?)
        })
        .and_then(|()| publish(to, &copy, to));
    match copied {
        Ok(own) => {
            from.remove(&partial(name))?;
            from.remove(&partial(&json(name)))?;
            Ok(own)
        }
        Err(error) => {
            to.remove(&partial(&copy)).ok();
            to.remove(&partial(&json(&copy))).ok();
            Err(error)
        }
    }
}

fn copy_one(from: &Dir, name: &str, to: &Dir, new_name: &str) -> io::Result<()> {
    let mut source = File::from(from.reopen(name, false)?);
    let mut copy = File::from(to.create(new_name)?);
    io::copy(&mut source, &mut copy)?;
    copy.sync_data()
}
