//! `deps`: the floors of the house, checked against `cargo metadata`.
//!
//! A crate imports from the floors below it and from what its row names. Tests may use the testkit.

use crate::Outcome;
use crate::shell::{cargo, output};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a crate may import of ours.
enum May {
    /// Only the crates named.
    Only(&'static [&'static str]),
    /// Every crate of the foundation, and the crates named.
    FoundationAnd(&'static [&'static str]),
    /// Every crate but those named.
    EverythingBut(&'static [&'static str]),
    /// Every crate.
    Everything,
}

/// Directory, what the crate in it may import. A crate that is not here fails the check: a new one is
/// put on its floor first.
const HOUSE: &[(&str, May)] = &[
    ("foundation/wire", May::Only(&[])),
    ("foundation/proto", May::Only(&["linkweir-wire"])),
    (
        "foundation/keys",
        May::Only(&["linkweir-proto", "linkweir-wire"]),
    ),
    (
        "foundation/stream",
        May::Only(&["linkweir-table", "linkweir-wire"]),
    ),
    ("foundation/table", May::Only(&["linkweir-wire"])),
    ("foundation/sketch", May::Only(&["linkweir-wire"])),
    (
        "foundation/record",
        May::Only(&["linkweir-sketch", "linkweir-wire"]),
    ),
    ("foundation/engine", May::FoundationAnd(&[])),
    ("stages/flows", May::FoundationAnd(&[])),
    ("stages/gateway", May::FoundationAnd(&[])),
    ("stages/http", May::FoundationAnd(&[])),
    ("stages/load", May::FoundationAnd(&["linkweir-model"])),
    ("stages/model", May::Only(&["linkweir-wire"])),
    ("edges/sys", May::Only(&[])),
    ("edges/capture", May::FoundationAnd(&["linkweir-sys"])),
    ("edges/columnar", May::FoundationAnd(&["linkweir-sys"])),
    ("edges/post", May::Only(&[])),
    ("edges/kafka", May::FoundationAnd(&["linkweir-sys"])),
    // The formats and carriers that are too heavy for every build are crates of their own.
    (
        "edges/sink",
        May::FoundationAnd(&[
            "linkweir-columnar",
            "linkweir-kafka",
            "linkweir-post",
            "linkweir-sys",
        ]),
    ),
    // Bytes of records, names of files.
    (
        "edges/tstat",
        May::FoundationAnd(&["linkweir-sink", "linkweir-sys"]),
    ),
    // A report written to a file is tested with the sink that does it.
    ("edges/report", May::FoundationAnd(&["linkweir-sink"])),
    ("edges/feed", May::FoundationAnd(&["linkweir-sys"])),
    ("edges/inject", May::FoundationAnd(&["linkweir-sys"])),
    ("edges/netfilter", May::FoundationAnd(&["linkweir-sys"])),
    ("edges/scan", May::FoundationAnd(&["linkweir-sys"])),
    ("edges/files", May::FoundationAnd(&["linkweir-sys"])),
    ("edges/geo", May::FoundationAnd(&[])),
    ("edges/live", May::FoundationAnd(&["linkweir-sys"])),
    (
        "edges/console",
        May::FoundationAnd(&["linkweir-live", "linkweir-post", "linkweir-sys"]),
    ),
    // What users install has no peers of the tests in it.
    ("app/cli", May::EverythingBut(&["linkweir-lab", TESTKIT])),
    ("app/lab", May::Everything),
    ("app/testkit", May::Everything),
    // The keyword automaton alone; a proxy with the gateway's functions.
    (
        "benches/gateway",
        May::FoundationAnd(&["linkweir-gateway", "linkweir-scan", "linkweir-sys"]),
    ),
    // Traffic from the testkit, captures for the oracle, a model that a bench fits.
    ("benches/instructions", May::Everything),
    ("benches/suite", May::Everything),
    ("fuzz", May::Everything),
    ("xtask", May::Only(&[])),
];

const TESTKIT: &str = "linkweir-testkit";

#[derive(Debug)]
struct Member {
    name: String,
    directory: String,
    /// Name, and whether only tests and benches use it.
    imports: Vec<(String, bool)>,
}

/// The names of all workspace members.
pub(crate) fn packages() -> Result<Vec<String>> {
    let members = members(&metadata()?)?;
    Ok(members.into_iter().map(|member| member.name).collect())
}

fn metadata() -> Result<Value> {
    let metadata = output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    serde_json::from_slice(&metadata).context("read cargo metadata")
}

/// Checks the imports of every workspace member.
pub(crate) fn run() -> Outcome {
    let members = members(&metadata()?)?;
    let faults = faults(&members);
    for fault in &faults {
        println!("deps: {fault}");
    }
    println!("deps: {} crates, {} faults", members.len(), faults.len());
    Ok(faults.is_empty())
}

fn members(metadata: &Value) -> Result<Vec<Member>> {
    let root = metadata
        .get("workspace_root")
        .and_then(Value::as_str)
        .context("workspace_root")?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("packages")?;
    let text = |value: &Value, key: &str| -> Result<String> {
        Ok(value
            .get(key)
            .and_then(Value::as_str)
            .with_context(|| format!("no {key}"))?
            .to_owned())
    };
    packages
        .iter()
        .map(|package| {
            let manifest = text(package, "manifest_path")?;
            let directory = manifest
                .strip_prefix(root)
                .and_then(|path| path.strip_suffix("/Cargo.toml"))
                .unwrap_or(&manifest);
            let dependencies = package.get("dependencies").and_then(Value::as_array);
            let imports = dependencies
                .into_iter()
                .flatten()
                // Ours are the ones with a path.
                .filter(|dependency| dependency.get("path").is_some())
                .map(|dependency| {
                    let kind = dependency.get("kind").and_then(Value::as_str);
                    Ok((text(dependency, "name")?, kind == Some("dev")))
                })
                .collect::<Result<_>>()?;
            Ok(Member {
                name: text(package, "name")?,
                directory: directory.trim_start_matches('/').to_owned(),
                imports,
            })
        })
        .collect()
}

fn faults(members: &[Member]) -> Vec<String> {
    let directories: BTreeMap<&str, &str> = members
        .iter()
        .map(|member| (member.name.as_str(), member.directory.as_str()))
        .collect();
    let in_foundation = |name: &str| {
        directories
            .get(name)
            .is_some_and(|directory| directory.starts_with("foundation/"))
    };
    let mut faults = Vec::new();
    for member in members {
        let Some((_, may)) = HOUSE
            .iter()
            .find(|(directory, _)| *directory == member.directory)
        else {
            faults.push(format!(
                "{} ({}) has no floor yet",
                member.name, member.directory
            ));
            continue;
        };
        for (import, only_in_tests) in &member.imports {
            let allowed = match may {
                May::Everything => true,
                May::EverythingBut(named) => !named.contains(&import.as_str()),
                May::FoundationAnd(named) => {
                    in_foundation(import) || named.contains(&import.as_str())
                }
                May::Only(named) => named.contains(&import.as_str()),
            };
            let test_helper = *only_in_tests && import == TESTKIT;
            if !allowed && !test_helper {
                faults.push(format!("{} must not import {import}", member.name));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(directory: &str, imports: &[(&str, bool)]) -> Member {
        Member {
            name: format!("linkweir-{}", directory.rsplit('/').next().unwrap()),
            directory: directory.to_owned(),
            imports: imports
                .iter()
                .map(|(name, dev)| ((*name).to_owned(), *dev))
                .collect(),
        }
    }

    #[test]
    fn a_stage_that_imports_an_edge_is_a_fault() {
        let members = [
            member("foundation/wire", &[]),
            member("edges/sink", &[("linkweir-wire", false)]),
            member(
                "stages/http",
                &[("linkweir-wire", false), ("linkweir-sink", false)],
            ),
        ];
        assert_eq!(
            faults(&members),
            ["linkweir-http must not import linkweir-sink"]
        );
    }

    #[test]
    fn tests_may_use_the_testkit_and_nothing_else_may() {
        let in_tests = [member("foundation/wire", &[(TESTKIT, true)])];
        assert!(faults(&in_tests).is_empty());
        let in_code = [member("foundation/wire", &[(TESTKIT, false)])];
        assert_eq!(faults(&in_code).len(), 1);
    }

    #[test]
    fn the_program_has_no_peers_of_the_tests_in_it() {
        assert!(faults(&[member("app/cli", &[(TESTKIT, true)])]).is_empty());
        for import in [TESTKIT, "linkweir-lab"] {
            let members = [member("app/cli", &[(import, false)])];
            assert_eq!(faults(&members).len(), 1, "{import}");
        }
    }

    #[test]
    fn an_unknown_crate_is_a_fault() {
        assert_eq!(faults(&[member("stages/mystery", &[])]).len(), 1);
    }
}
