//! The programs that take part: ours, built as users get them, and those of the system.

use crate::bench::harness::linkweir;
use crate::shell::{self, cargo, passes, target_dir};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// What cannot be done without: program and Debian package.
pub(super) const NEEDED: [(&str, &str); 9] = [
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

/// Where they are.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) linkweir: PathBuf,
    dir: PathBuf,
    pub(super) squid: Option<PathBuf>,
    pub(super) icap: Option<PathBuf>,
}

impl Programs {
    /// Builds ours; `binary` is used in place of the release build of linkweir.
    pub(super) fn build(binary: Option<&Path>) -> Result<Self> {
        let linkweir = linkweir(binary)?;
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
        let optional = |program, packages| {
            let found = shell::find(program);
            if found.is_none() {
                eprintln!(
                    "bench gateway: {program} is not installed (apt-get install {packages}): no row for it"
                );
            }
            found
        };
        Ok(Self {
            linkweir,
            dir: target_dir().join("release"),
            squid: optional("squid", "squid"),
            icap: optional("c-icap", "c-icap libc-icap-mod-virus-scan"),
        })
    }

    /// A program of `benches/gateway`.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// An example of a crate.
    pub(super) fn example(&self, name: &str) -> PathBuf {
        self.dir.join("examples").join(name)
    }
}
