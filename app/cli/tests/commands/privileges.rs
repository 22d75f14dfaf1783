//! What commands over files, and those that wait for others, may still do while they read.

use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_testkit::netns::until;
use tempfile::tempdir;

use crate::common::{demo, linkweir, run, threads};

/// `CAP_DAC_READ_SEARCH` alone: files of others that an administrator names are read as they come up.
const READ: u64 = 1 << 2;

#[test]
fn who_reads_files_or_waits_for_others_has_given_up_its_privileges() {
    let directory = tempdir().unwrap();
    // A pipe that nobody writes to.
    let silent = directory.path().join("silent");
    let made = Command::new("mkfifo").arg(silent).status().unwrap();
    assert!(made.success());
    std::fs::write(
        directory.path().join("a.toml"),
        "[gateway]\ndefault = \"allow\"\n",
    )
    .unwrap();
    let demo = demo();
    let demo = demo.to_str().unwrap();
    let archive = directory.path().join("archive");
    let archive = archive.to_str().unwrap();
    run(&["flows", "-q", "-r", demo, "--archive", archive]).exits(0);
    for words in [
        "merge silent --sketch out.json",
        "model sessions silent -w out.csv --summary out.json",
        "model fit silent -o out.json",
        "model simulate silent --bins 5 --seed 1 -w out.csv",
        "model check silent counts.csv --plot out.svg",
        "model export silent --matrices -w out.json",
        "archive dump archive",
        "gateway check --config silent",
        "gateway check --config a.toml -r silent -w out.jsonl",
        "feed -r DEMO --name linkweir-test-privileges --consumers 1 --summary out.json",
        "feed -r - --histogram out.svg",
        "console --from kafka://127.0.0.1:9/x --console 127.0.0.1:0",
        "load http://10.0.0.1/ --arrivals constant:1 --sessions 1 --role controller --generators 1 \
         --listen 127.0.0.1:0 --summary out.json",
    ] {
        let mut command = linkweir();
        command.args(
            words
                .split_whitespace()
                .map(|word| word.replace("DEMO", demo)),
        );
        command.current_dir(directory.path());
        // Nobody writes to its input, nobody reads its output.
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let is_locked = || {
            threads(child.id())
                .iter()
                .all(|thread| thread.seccomp == "2")
        };
        let has_given_up = until(Duration::from_secs(5), is_locked);
        let all = threads(child.id());
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ended, None, "`{words}` has ended");
        assert!(has_given_up, "`{words}`: {all:?}");
        for thread in all {
            assert_eq!(thread.capabilities & !READ, 0, "`{words}`: {thread:?}");
            assert_eq!(thread.no_new_privileges, "1", "`{words}`: {thread:?}");
        }
        std::fs::read_dir(directory.path())
            .unwrap()
            .flatten()
            .for_each(|file| {
                if file.file_name().to_string_lossy().contains("out.") {
                    std::fs::remove_file(file.path()).unwrap();
                }
            });
    }
}
