//! The programs that take part: ours, built as users get them, and those of the system.

use crate::shell::{self, cargo, passes, target_dir};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};

/// What cannot be done without: program and Debian package.
const NEEDED: [(&str, &str); 9] = [
    ("nginx", "nginx"),
    ("wrk", "wrk"),
    ("curl", "curl"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    ("iptables", "iptables"),
    ("ip6tables", "iptables"),
    ("nft", "nftables"),
];

/// Says what is missing, all at once.
pub(super) fn check() -> Result<()> {
    let missing = NEEDED
        .iter()
        .filter(|(program, _)| shell::find(program).is_none());
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    bail!(
        "missing; install them with: apt-get install {}",
        packages.join(" ")
    )
}

/// Where they are.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) linkweir: PathBuf,
    folder: PathBuf,
    pub(super) squid: Option<PathBuf>,
}

impl Programs {
    /// Builds ours; `binary` is used in place of the release build of linkweir.
    pub(super) fn build(binary: Option<&Path>) -> Result<Self> {
        let linkweir = match binary {
            Some(binary) => binary.canonicalize().context("--binary")?,
            None => shell::release_binary()?,
        };
        for words in [
            ["--package", "linkweir-bench-gateway", "--bins", ""],
            ["--package", "linkweir-netfilter", "--example", "accept"],
            ["--package", "linkweir-scan", "--example", "throughput"],
        ] {
            let mut build = cargo();
            build.args(["build", "--release"]);
            build.args(words.iter().filter(|word| !word.is_empty()));
            if !passes(&mut build)? {
                bail!("cargo build {} failed", words.join(" "));
            }
        }
        let squid = shell::find("squid");
        if squid.is_none() {
            eprintln!(
                "bench gateway: squid is not installed (apt-get install squid): no row for it"
            );
        }
        Ok(Self {
            linkweir,
            folder: target_dir().join("release"),
            squid,
        })
    }

    /// A program of `benches/gateway`.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// An example of a crate.
    pub(super) fn example(&self, name: &str) -> PathBuf {
        self.folder.join("examples").join(name)
    }
}
