//! Policies of the gateway's rows.

use super::rows::{Row, Stands};
use super::site::Site;
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::gateway::{LAN, WAN};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Window of the rows that scan, KiB: within the paper's 20 to 40.
pub(super) const WINDOW_KIB: u32 = 32;

/// A scanner, and how much it gets at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    pub(super) socket: &'a Path,
    pub(super) window_kib: u32,
}

impl Scanner<'_> {
    /// Bytes of a window.
    pub(super) const fn window_bytes(&self) -> u32 {
        self.window_kib * 1024
    }

    /// Bytes of a window that the next one repeats. A window is longer than what is left of the one before.
    pub(super) fn tail_bytes(&self) -> u32 {
        (self.window_bytes() / 2).min(1024)
    }
}

/// Lines of the rules, as they stand in the file.
#[derive(Debug, Clone)]
pub(super) struct Policy<'a> {
    pub(super) queues: u16,
    pub(super) scanner: Option<Scanner<'a>>,
    /// Whether the queue waits for scans, for comparison.
    pub(super) waits_for_scans: bool,
    pub(super) rules: String,
}

impl<'a> Policy<'a> {
    /// The policy of a row.
    ///
    /// # Errors
    /// The gateway has no part in it.
    pub(super) fn of(row: &Row, queues: u16, scanner: Option<Scanner<'a>>) -> Result<Self> {
        let Stands::Gateway(looks) = row.how.stands else {
            bail!("{}: no policy", row.name)
        };
        let action = if looks.is_empty() { "allow" } else { "inspect" };
        let rule = format!(
            "[[rule]]\nname = \"web\"\napplication = [\"http\"]\naction = \"{action}\"\n{}",
            looks.concat()
        );
        Ok(Self {
            queues,
            scanner: scanner.filter(|_| row.how.scans),
            waits_for_scans: false,
            rules: rule,
        })
    }

    /// Writes it among the files of a site.
    pub(super) fn write(&self, site: &Site) -> Result<PathBuf> {
        let path = site.path("gateway.toml");
        let text = self.text(&site.path(""))?;
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    fn text(&self, dir: &Path) -> Result<String> {
        let here = dir.display();
        let mut text = format!(
            "[gateway]\nqueues = {}\ninterfaces = [\"{LAN}\", \"{WAN}\"]\nfail = \"open\"\n\
             default = \"allow\"\ncontrol = \"{here}/gateway.sock\"\n\n",
            self.queues
        );
        if let Some(scanner) = self.scanner {
            write!(
                text,
                "[scanner.clamd]\naddress = \"{}\"\nwindow = \"{}KiB\"\ntail = \"{}B\"\ntimeout = \"5s\"\n\n",
                scanner.socket.display(),
                scanner.window_kib,
                scanner.tail_bytes()
            )?;
        }
        if self.rules.contains("record = true") {
            // The oldest make room, so that a run of any length keeps what passes; memory, not a disk, is
            // what they are written to.
            write!(
                text,
                "[record]\ndirectory = \"{here}/kept\"\nmax-file = \"100MiB\"\nmax-total = \"1GiB\"\n\
                 when-full = \"delete-oldest\"\n\n"
            )?;
        }
        text.push_str(&self.rules);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::named;
    use super::*;

    #[test]
    fn a_policy_has_what_its_row_needs() {
        let scanner = Scanner {
            socket: Path::new("/s"),
            window_kib: 7,
        };
        let text = |word| {
            let policy = Policy::of(named(word).unwrap(), 2, Some(scanner)).unwrap();
            policy.text(Path::new("/f")).unwrap()
        };
        assert!(text("classify").ends_with("action = \"allow\"\n"));
        assert!(!text("inspect").contains("scanner"));
        let all = text("all");
        for part in [
            "window = \"7KiB\"",
            "directory = \"/f/kept\"",
            "queues = 2",
            "keywords-file",
        ] {
            assert!(all.contains(part), "{part}");
        }
        assert!(Policy::of(named("forward").unwrap(), 2, None).is_err());
    }
}
