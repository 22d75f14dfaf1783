//! The thread that moves long scans out of memory while they gather.

use std::io::Write as _;
use std::path::Path;
use std::sync::PoisonError;

use crate::queue::{SpoolJob, Spooled};
use crate::shared::{Shared, locked};
use crate::status::{Failure, FailureCause};

/// Writes until the scanner ends.
pub(crate) fn run(shared: &Shared, directory: &Path) {
    while let Some(mut job) = next(shared) {
        let (key, memory) = (job.key, job.memory());
        let written = write(&mut job, directory).map_err(|error| {
            let text = format!(
                "the spool directory {} takes no bytes: {error}",
                directory.display()
            );
            Failure::new(FailureCause::Spool, text)
        });
        // What was in memory is let go before it counts as free.
        drop(job);
        let mut state = locked(&shared.state);
        let next = state.queue.spooled_back(key, memory, written);
        shared.follow(state, key, next);
    }
}

fn next(shared: &Shared) -> Option<SpoolJob> {
    let mut state = locked(&shared.state);
    loop {
        if shared.is_stopped() {
            return None;
        }
        if let Some(job) = state.queue.take_spool() {
            return Some(job);
        }
        state = shared
            .spool
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Appends the parts to the scan's file, which has no name: it is gone with the last who has it open.
fn write(job: &mut SpoolJob, directory: &Path) -> std::io::Result<Spooled> {
    let mut spooled = match job.file.take() {
        Some(spooled) => spooled,
        None => Spooled {
            file: tempfile::tempfile_in(directory)?,
            length: 0,
        },
    };
    for part in job.parts.drain(..) {
        spooled.file.write_all(&part)?;
        spooled.length += part.len() as u64;
    }
    Ok(spooled)
}
