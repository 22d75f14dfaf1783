//! The units of the package, as systemd reads and judges them.

use std::path::{Path, PathBuf};
use std::process::Command;

use linkweir_testkit::ran;

/// Exposure that no unit may have more of, in tenths: 0 is none, 100 everything (`systemd-analyze security`).
const MAX_EXPOSURE: &str = "27";

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// The units in a directory of their own, with a program that is there.
fn units(directory: &Path) -> Vec<PathBuf> {
    let mut units = Vec::new();
    for entry in std::fs::read_dir(packaging().join("systemd")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("/usr/bin/linkweir"));
        let to = directory.join(
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .replace("@.", "@lo."),
        );
        std::fs::write(&to, text.replace("/usr/bin/linkweir", "/bin/true")).unwrap();
        units.push(to);
    }
    assert_eq!(units.len(), 3);
    units
}

#[test]
fn units_are_valid_and_expose_little() {
    if ran::installed("systemd-analyze").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for unit in units(directory.path()) {
        let verify = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(&unit)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verify.stderr);
        // Of other units on this machine it says more.
        let name = unit.file_name().unwrap().to_str().unwrap();
        let ours = said.lines().find(|line| line.contains(name));
        assert!(ours.is_none(), "{said}");
        let security = Command::new("systemd-analyze")
            .args(["security", "--offline=yes", "--no-pager"])
            .arg(format!("--threshold={MAX_EXPOSURE}"))
            .arg(&unit)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&security.stdout);
        assert!(said.contains("Overall exposure level"), "{said}");
        assert!(security.status.success(), "{said}");
    }
}

#[test]
fn directories_are_those_of_the_unit() {
    let text = std::fs::read_to_string(packaging().join("tmpfiles.d/linkweir.conf")).unwrap();
    let unit = packaging().join("systemd/linkweir-gateway.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for (line, setting) in lines.zip(["StateDirectory", "LogsDirectory", "RuntimeDirectory"]) {
        let path = line.split(' ').nth(1).unwrap();
        let name = path.rsplit_once('/').unwrap().1;
        assert!(unit.contains(&format!("\n{setting}={name}\n")), "{line}");
        let mode = unit
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{setting}Mode=")));
        assert_eq!(
            line.split(' ').nth(2),
            Some(mode.unwrap_or("0755")),
            "{line}"
        );
    }
    assert_eq!(
        text.lines().filter(|line| line.starts_with("d ")).count(),
        3
    );
}

#[test]
fn the_container_is_built_as_the_package_is() {
    let root = packaging().join("..");
    let text = std::fs::read_to_string(root.join("Containerfile")).unwrap();
    let package = std::fs::read_to_string(root.join("scripts/package.sh")).unwrap();
    // The same build of the same program.
    assert!(package.contains("cargo build --release --locked --package linkweir"));
    assert!(text.contains("RUN cargo build --release --locked --package linkweir"));
    assert!(text.contains("RUN scripts/setup.sh build"));
    for copied in text
        .lines()
        .filter_map(|line| line.strip_prefix("COPY packaging/"))
    {
        for file in copied.split(' ').filter(|word| !word.starts_with('/')) {
            let file = file.strip_prefix("packaging/").unwrap_or(file);
            assert!(packaging().join(file).is_file(), "{file}");
        }
    }
    let user = text.lines().position(|line| line == "USER 65532").unwrap();
    let entry = text.lines().position(|line| line.starts_with("ENTRYPOINT"));
    assert!(Some(user) < entry);
    // What it does where nothing else is said is a run that the program knows, up to the interface.
    let words = text
        .lines()
        .find_map(|line| line.strip_prefix("CMD "))
        .unwrap();
    let words: Vec<String> = serde_json::from_str(words).unwrap();
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .map(|word| if word == "eth0" { "none0" } else { word })
        .collect();
    crate::common::run(&words)
        .exits(3)
        .says("none0: no such interface");
}
