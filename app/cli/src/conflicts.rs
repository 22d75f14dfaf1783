//! No output may replace an input, or another output.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linkweir_capture::files_below;

use crate::files::is_stdout;

/// A destination that is a regular file, or will be one.
#[derive(Debug, PartialEq, Eq)]
struct Spot {
    /// The directory as the system sees it, and the name in it.
    path: PathBuf,
    /// Device and inode, where it exists.
    identity: Option<(u64, u64)>,
}

impl Spot {
    /// `None` for standard streams, devices, FIFOs and what cannot be looked at: those have other
    /// errors.
    fn of(path: &Path) -> Option<Self> {
        if path.as_os_str() == "-" {
            return None;
        }
        let identity = match fs::metadata(path) {
            Ok(meta) if meta.is_file() => Some((meta.dev(), meta.ino())),
            Ok(_) => return None,
            Err(_) => None,
        };
        let directory = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty())
            .unwrap_or_else(|| Path::new("."));
        let path = fs::canonicalize(directory).ok()?.join(path.file_name()?);
        Some(Self { path, identity })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.path == other.path || (self.identity.is_some() && self.identity == other.identity)
    }
}

/// Refuses outputs that would replace one another or one of `inputs` (a directory stands for its
/// files). Outputs and inputs come with the flag that named them.
///
/// # Errors
/// The message that says which two are one file.
pub fn check(outputs: &[(&str, &Path)], inputs: &[(&str, &Path)]) -> Result<(), String> {
    check_stdout(outputs)?;
    let mut taken: Vec<(&str, Spot)> = Vec::new();
    for (flag, path) in inputs {
        let below = files_below(path);
        let files = below.iter().filter_map(|file| Spot::of(file));
        taken.extend(files.chain(Spot::of(path)).map(|spot| (*flag, spot)));
    }
    for (flag, path) in outputs {
        let Some(spot) = Spot::of(path) else { continue };
        if let Some((other, _)) = taken.iter().find(|(_, there)| there.is_same(&spot)) {
            return Err(format!(
                "{flag} {}: already used by {other}; name another file",
                path.display()
            ));
        }
        taken.push((flag, spot));
    }
    Ok(())
}

/// Refuses a document on standard output where something else goes there too: nobody could tell them apart.
fn check_stdout(outputs: &[(&str, &Path)]) -> Result<(), String> {
    let there = outputs.iter();
    let there = there.filter(|(_, path)| path.to_str().is_some_and(is_stdout));
    let (records, documents): (Vec<&str>, Vec<&str>) = there
        .map(|(flag, _)| *flag)
        .partition(|flag| *flag == RECORDS);
    let mut all = documents.into_iter().chain(records);
    match (all.next(), all.next()) {
        (Some(document), Some(other)) if document != RECORDS => Err(format!(
            "{document} -: what {other} writes goes to standard output too; name a file for one of them"
        )),
        _ => Ok(()),
    }
}

/// The flag of records: those of several destinations may go to the same stream.
const RECORDS: &str = "-w";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_use() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("in.pcap"), b"x").unwrap();
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/deep.pcap"), b"x").unwrap();
        fs::hard_link(at("in.pcap"), at("link")).unwrap();
        let (input, link, new, dotted) = (at("in.pcap"), at("link"), at("new"), at("./new"));
        assert!(check(&[("-w", &new)], &[("-r", &input)]).is_ok());
        assert!(check(&[("-w", &link)], &[("-r", &input)]).is_err());
        assert!(check(&[("-w", &input)], &[("-r", directory.path())]).is_err());
        assert!(check(&[("-w", &at("a/b/deep.pcap"))], &[("-r", directory.path())]).is_err());
        assert!(check(&[("-w", &at("a/new.pcap"))], &[("-r", directory.path())]).is_ok());
        assert!(check(&[("-w", &new), ("--summary", &dotted)], &[]).is_err());
        let (stdout, null) = (Path::new("-"), Path::new("/dev/null"));
        assert!(
            check(
                &[("-w", stdout), ("-w", stdout), ("-w", null), ("-w", null)],
                &[]
            )
            .is_ok()
        );
        // A document on standard output is alone there.
        assert!(check(&[("-w", &new), ("--summary", stdout)], &[]).is_ok());
        for other in ["-w", "--report"] {
            let both = [(other, stdout), ("--summary", Path::new("/dev/stdout"))];
            let said = check(&both, &[]).unwrap_err();
            assert!(said.contains("standard output"), "{said}");
        }
    }
}
