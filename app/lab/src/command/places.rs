//! The directory in which a run keeps its files, looked at before it begins: nobody wants to learn it
//! afterwards.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use linkweir_cli::conflicts;
use linkweir_cli::lab::LabArgs;

/// Refuses a directory that cannot be written, and files that would replace one another.
pub(super) fn check(args: &LabArgs) -> Result<(), String> {
    let files = [("--report", &args.report), ("--summary", &args.summary)];
    let files: Vec<(&str, &Path)> = files
        .into_iter()
        .filter_map(|(flag, path)| Some((flag, Path::new(path.as_deref()?))))
        .filter(|(_, path)| path.as_os_str() != "-")
        .collect();
    if let Some(path) = &args.keep {
        let why = |error: io::Error| format!("--keep {}: {error}", path.display());
        can_write(&existing(path)).map_err(why)?;
        // Logs would go on where an earlier run's ended.
        if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(format!(
                "--keep {}: not empty; a run keeps its files in a directory of its own",
                path.display()
            ));
        }
    }
    conflicts::check(&files, &[])
}

/// Tries it: nothing else tells for sure.
fn can_write(path: &Path) -> io::Result<()> {
    let probe = path.join(format!(".linkweir-{}", std::process::id()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&probe)?;
    fs::remove_file(&probe)
}

/// The directory in which a new one will be made: the last that is there.
fn existing(path: &Path) -> PathBuf {
    let all = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    let there = all.map(Path::to_path_buf).find(|path| path.exists());
    there.unwrap_or_else(|| PathBuf::from("."))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LabArgs,
    }

    fn said(words: &[&str]) -> Option<String> {
        let words = ["lab"].iter().chain(words);
        check(&Line::parse_from(words).args).err()
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        assert_eq!(
            said(&["--report", &at("a.html"), "--keep", &at("new/er")]),
            None
        );
        assert_eq!(said(&["--summary", "-", "--report", "/dev/null"]), None);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        let nowhere = said(&["--keep", "/proc/x/y"]).unwrap();
        assert!(nowhere.starts_with("--keep /proc/x/y"), "{nowhere}");
        fs::write(at("file"), "").unwrap();
        assert!(said(&["--keep", &at("file")]).is_some());
        let used = said(&["--keep", &at("")]).unwrap();
        assert!(used.contains("not empty"), "{used}");
        let both = said(&["--report", &at("a"), "--summary", &at("a")]).unwrap();
        assert!(both.contains("--report already"), "{both}");
    }
}
