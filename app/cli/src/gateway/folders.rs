//! The folders in which the gateway makes files, and the user who may write there.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use linkweir_sys::privileges::{Account, is_writable};

use super::args::RunArgs;
use super::config::{GatewayConfig, RecordSettings};
use crate::exit::Wrong;
use crate::outputs;

/// The folder of files that are kept or still come, and that of infected ones. One is made in the
/// other where only one is named.
pub(super) fn vault_folders(settings: &RecordSettings) -> Option<(PathBuf, PathBuf)> {
    match (&settings.folder, &settings.quarantine) {
        (Some(folder), Some(quarantine)) => Some((folder.clone(), quarantine.clone())),
        (Some(folder), None) => Some((folder.clone(), folder.join("quarantine"))),
        (None, Some(quarantine)) => Some((quarantine.join("passing"), quarantine.clone())),
        (None, None) => None,
    }
}

/// The folders in which files will be made, and the devices and pipes that are written to.
pub(super) fn written(args: &RunArgs, config: &GatewayConfig) -> Vec<PathBuf> {
    let named = args.output.write.iter().filter(|to| !to.contains("://"));
    let named = named.chain(&args.output.summary).map(Path::new);
    let mut folders = outputs::written_folders(named);
    folders.extend(config.settings.control.parent().map(|folder| {
        let here = folder.as_os_str().is_empty();
        if here {
            PathBuf::from(".")
        } else {
            folder.to_owned()
        }
    }));
    folders.extend(
        vault_folders(&config.record)
            .into_iter()
            .flat_map(|(a, b)| [a, b]),
    );
    folders.extend(
        config
            .scanner
            .iter()
            .filter_map(|scanner| scanner.spool.clone()),
    );
    folders
}

/// The user that is to serve the queues.
pub(super) fn account(name: &str) -> anyhow::Result<Account> {
    let account = Account::named(name).with_context(|| format!("--user {name}"))?;
    account.ok_or_else(|| anyhow!(Wrong(format!("--user: there is no user `{name}`"))))
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

/// Makes the folders that are missing, those between them too. A user gets what it may not make itself.
pub(super) fn make(folders: &[PathBuf], user: Option<&Account>) -> anyhow::Result<()> {
    for folder in folders {
        // A folder that the user may change is no place for root to give anything away in.
        let made = acting(user, || Ok(make_all(folder)))?;
        let made = match (made, user) {
            (Err(_), Some(user)) => give(folder, user),
            (made, _) => made,
        };
        made.with_context(|| folder.display().to_string())?;
    }
    Ok(())
}

fn make_all(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(path)
}

/// Makes a folder for somebody else.
fn give(folder: &Path, user: &Account) -> std::io::Result<()> {
    let missing = folder.ancestors().take_while(|path| !path.exists());
    let missing: Vec<&Path> = missing
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    std::fs::create_dir_all(folder)?;
    missing.iter().try_for_each(|path| user.own(path))
}

/// Whether a user can do what the gateway does until its end; called as that user.
pub(super) fn check(
    user: &Account,
    folders: &[PathBuf],
    config: &GatewayConfig,
) -> anyhow::Result<()> {
    let name = user.name();
    if let Err(error) = File::open(&config.path) {
        let shown = config.path.display();
        return Err(anyhow!(Wrong(format!(
            "{shown}: the user `{name}` cannot read it, as a reload must: {error}"
        ))));
    }
    match folders.iter().find(|folder| !is_writable(folder)) {
        Some(folder) => {
            let shown = folder.display();
            Err(anyhow!(Wrong(format!(
                "{shown}: the user `{name}` cannot write there; `chown {name} {shown}`, or name another place"
            ))))
        }
        None => Ok(()),
    }
}
