//! What a run that was killed has left.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::directory::{Dir, READ_ONLY};
use crate::file::{isolate, publish};
use crate::name::{JSON, candidates, json, of_partial, partial};
use crate::options::Stale;

/// A directory, open and by its path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) dir: &'a Dir,
    pub(crate) path: &'a Path,
}

/// Completes or deletes hidden files; gives how many were completed. What cannot be done is left for
/// the next start. `quarantine` is `None` where it is the directory itself.
pub(crate) fn recover(
    directory: At<'_>,
    quarantine: Option<At<'_>>,
    stale: Stale,
) -> io::Result<u64> {
    if let Some(quarantine) = quarantine {
        // Halves of copies: the whole ones are still in the directory.
        for name in hidden(quarantine.path)?.keys() {
            quarantine.dir.remove(&partial(name)).ok();
        }
    }
    let infected = quarantine.unwrap_or(directory);
    let hidden = hidden(directory.path)?;
    let mut completed = 0;
    for (name, meta) in &hidden {
        let is_text = name
            .strip_suffix(JSON)
            .is_some_and(|of| hidden.contains_key(of));
        if is_text && !hidden.contains_key(&json(name)) {
            // Goes with its file.
            continue;
        }
        let is_infected = meta.permissions().mode() & 0o777 == READ_ONLY.as_raw_mode();
        let is_wanted = meta.len() > 0 && (is_infected || stale == Stale::Keep);
        let to = if is_infected {
            infected.dir
        } else {
            directory.dir
        };
        let outcome = if !is_wanted {
            remove(directory.dir, name)
        } else if hidden.contains_key(&json(name)) {
            let own = if is_infected {
                isolate(directory.dir, name, to)
            } else {
                publish(directory.dir, name, to)
            };
            own.map(|_| completed += 1)
        } else {
            // Killed between the two names: the text has its own already.
            let own = candidates(name)
                .take_while(|own| to.has(&json(own)))
                .find(|own| !to.has(own));
            match own {
                Some(own) => directory
                    .dir
                    .rename(&partial(name), to, &own)
                    .map(|()| completed += 1),
                None => remove(directory.dir, name),
            }
        };
        // Left as it is; the run goes on without it.
        outcome.ok();
    }
    Ok(completed)
}

fn remove(dir: &Dir, name: &str) -> io::Result<()> {
    dir.remove(&partial(&json(name)))?;
    dir.remove(&partial(name))
}

/// The names for which hidden files stand.
fn hidden(path: &Path) -> io::Result<BTreeMap<String, Metadata>> {
    let mut names = BTreeMap::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        // Does not follow links: one that somebody has put there is no file.
        let meta = entry.metadata()?;
        if meta.is_file()
            && let Some(name) = entry.file_name().to_str().and_then(of_partial)
        {
            names.insert(name.to_owned(), meta);
        }
    }
    Ok(names)
}
