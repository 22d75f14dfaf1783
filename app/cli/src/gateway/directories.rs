//! The directories in which the gateway makes files, and the user who may write there.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use linkweir_sys::privileges::{Account, is_writable};

use super::args::RunArgs;
use super::config::{GatewayConfig, RecordSettings};
use crate::exit::Wrong;
use crate::outputs;

/// The directory of files that are kept or still come, and that of infected ones. One is made in the
/// other where only one is named.
pub(super) fn file_directories(settings: &RecordSettings) -> Option<(PathBuf, PathBuf)> {
    match (&settings.directory, &settings.quarantine) {
        (Some(directory), Some(quarantine)) => Some((directory.clone(), quarantine.clone())),
        (Some(directory), None) => Some((directory.clone(), directory.join("quarantine"))),
        (None, Some(quarantine)) => Some((quarantine.join("passing"), quarantine.clone())),
        (None, None) => None,
    }
}

/// The directories in which files will be made, and the devices and pipes that are written to.
pub(super) fn written(args: &RunArgs, config: &GatewayConfig) -> Vec<PathBuf> {
    let named = args.output.write.iter().filter(|to| !to.contains("://"));
    let named = named.chain(&args.output.summary).map(Path::new);
    let named = named.chain(args.view.written().map(|(_, path)| path));
    let mut directories = outputs::written_directories(named);
    directories.extend(config.settings.control.parent().map(|directory| {
        let here = directory.as_os_str().is_empty();
        if here {
            PathBuf::from(".")
        } else {
            directory.to_owned()
        }
    }));
    directories.extend(
        file_directories(&config.record)
            .into_iter()
            .flat_map(|(a, b)| [a, b]),
    );
    directories.extend(
        config
            .scanner
            .iter()
            .filter_map(|scanner| scanner.spool.clone()),
    );
    directories
}

/// The user that is to serve the queues.
pub(super) fn account(name: &str) -> anyhow::Result<Account> {
    let account = Account::named(name).with_context(|| format!("--user {name}"))?;
    account.ok_or_else(|| anyhow!(Wrong(format!("--user: no such user: `{name}`"))))
}

/// Does `work` as this user would be allowed to.
pub(super) fn acting<T>(
    user: Option<&Account>,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    match user {
        Some(account) => {
            let done = account.acting(work);
            done.with_context(|| format!("--user {} (needs root)", account.name()))?
        }
        None => work(),
    }
}

/// Makes the directories that are missing, those between them too. A user gets what it may not make itself.
pub(super) fn make(directories: &[PathBuf], user: Option<&Account>) -> anyhow::Result<()> {
    for directory in directories {
        // A directory that the user may change is no place for root to give anything away in.
        let made = acting(user, || Ok(make_all(directory)))?;
        let made = match (made, user) {
            (Err(_), Some(user)) => give(directory, user),
            (made, _) => made,
        };
        made.with_context(|| directory.display().to_string())?;
    }
    Ok(())
}

fn make_all(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(path)
}

/// Makes a directory for somebody else.
fn give(directory: &Path, user: &Account) -> std::io::Result<()> {
    let missing = directory.ancestors().take_while(|path| !path.exists());
    let missing: Vec<&Path> = missing
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    std::fs::create_dir_all(directory)?;
    missing.iter().try_for_each(|path| user.own(path))
}

/// Whether a user can do what the gateway does until its end; called as that user.
pub(super) fn check(
    user: &Account,
    directories: &[PathBuf],
    config: &GatewayConfig,
) -> anyhow::Result<()> {
    let name = user.name();
    if let Err(error) = File::open(&config.path) {
        let shown = config.path.display();
        return Err(anyhow!(Wrong(format!(
            "{shown}: the user `{name}` cannot read it, as a reload must: {error}"
        ))));
    }
    match directories.iter().find(|directory| !is_writable(directory)) {
        Some(directory) => {
            let shown = directory.display();
            Err(anyhow!(Wrong(format!(
                "{shown}: the user `{name}` cannot write there; `chown {name} {shown}`, or name another place"
            ))))
        }
        None => Ok(()),
    }
}
