//! What the threads of every command that runs on may still do, as `docs/privileges.md` has it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use linkweir_testkit::gateway::Place;
use linkweir_testkit::netns::{Running, until};

use crate::common::{Thread, skipped, threads};
use crate::gateway::site::{PATIENCE, Site};

/// Whose rows those of another user are; every system has this one.
const USER: &str = "nobody";
/// The table begins behind this line, and ends at the first empty one.
const MARK: &str = "<!-- threads -->";
/// Bits of capabilities that any command keeps.
const NAMES: [(u32, &str); 6] = [
    (1, "DAC_OVERRIDE"),
    (2, "DAC_READ_SEARCH"),
    (12, "NET_ADMIN"),
    (13, "NET_RAW"),
    (14, "IPC_LOCK"),
    (39, "BPF"),
];

/// A command, as the table calls it, and the names of threads that it has once it runs.
struct Case {
    shown: &'static str,
    words: String,
    threads: &'static [&'static str],
}

const fn case(shown: &'static str, words: String, threads: &'static [&'static str]) -> Case {
    Case {
        shown,
        words,
        threads,
    }
}

/// A policy that needs every thread that a gateway can have; no scanner and no broker is there.
const POLICY: &str = r#"
[[rule]]
name = "web"
application = ["http"]
action = "inspect"
scan = "clamd"
record = true
[scanner.clamd]
address = "127.0.0.1:9"
spool = "spool"
"#;

/// All of its threads but the first, of those of a kind one.
const GATEWAY: &[&str] = &[
    "console",
    "queue 0",
    "rdk:broker-1",
    "rdk:main",
    "scan-0",
    "scan-probe",
    "scan-spool",
    "vault",
    "watchdog",
];

/// All that run until they are asked to end. Nothing goes over the network meanwhile.
fn cases(config: &str, feed: &str) -> Vec<Case> {
    let kafka = "-w kafka://127.0.0.1:9/x --kafka linkweir.patience.ms=100";
    let gateway = format!("gateway run --config {config} {kafka} --console 127.0.0.1:8080");
    vec![
        case(
            "http -i",
            "http -i lan0 -w a.jsonl".to_owned(),
            &["linkweir"],
        ),
        case(
            "http -i -w kafka: --console",
            format!("http -i lan0 {kafka} --console 127.0.0.1:8080"),
            &["console", "rdk:main", "rdk:broker-1", "sketches"],
        ),
        case("http -r", "http -r - -w b.jsonl".to_owned(), &["linkweir"]),
        case(
            "flows -i",
            "flows -i lan0 -w c.jsonl".to_owned(),
            &["linkweir"],
        ),
        case(
            "flows -r",
            "flows -r - -w d.jsonl".to_owned(),
            &["linkweir"],
        ),
        case(
            "halves -i",
            "halves -i lan0 -w e.jsonl".to_owned(),
            &["linkweir"],
        ),
        case(
            "feed",
            format!("feed -i lan0 --consumers 1 --name {feed}"),
            &["feed-server"],
        ),
        case("gateway run", gateway.clone(), GATEWAY),
        case(
            "gateway run --user",
            format!("{gateway} --user {USER}"),
            GATEWAY,
        ),
        case(
            "load -w",
            "load http://10.88.2.2/ -i wan0 --clients 10.99.0.0/24 --gateway 10.88.2.2 \
             --arrivals constant:1 --duration 10m -w f.jsonl"
                .to_owned(),
            &["linkweir", "records", "report"],
        ),
        case(
            "load --role controller",
            "load http://10.88.2.2/ --role controller --generators 1 --arrivals constant:1 \
             --sessions 1"
                .to_owned(),
            &["linkweir", "report"],
        ),
    ]
}

/// Starts a command, and gives what its threads may do when none does more than at the end of its start.
fn seen(site: &Site, case: &Case) -> Vec<Thread> {
    let mut command = site
        .net
        .command(Place::Gateway, env!("CARGO_BIN_EXE_linkweir"));
    let words: Vec<&str> = case.words.split_whitespace().collect();
    command.args(&words).current_dir(site.path("."));
    // What is read from a pipe waits for it.
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut running = Running::start(&mut command).unwrap();
    let mut found = Vec::new();
    let is_settled = until(PATIENCE, || {
        if !matches!(running.ended(), Ok(None)) {
            return true;
        }
        found = threads(running.id());
        let all = || found.iter();
        let has_all = case
            .threads
            .iter()
            .all(|name| all().any(|one| one.name == *name));
        has_all && all().all(|one| one.no_new_privileges == "1" && one.seccomp == "2")
    });
    let is_there = matches!(running.ended(), Ok(None));
    let output = running.finish().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(is_there && is_settled, "{}: {found:#?}: {said}", case.shown);
    found
}

fn capabilities(mask: u64) -> String {
    let mut names = Vec::new();
    let mut rest = mask;
    for (bit, name) in NAMES {
        if mask & (1 << bit) != 0 {
            names.push(name.to_owned());
            rest &= !(1 << bit);
        }
    }
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    if names.is_empty() {
        names.push("none".to_owned());
    }
    names.join(" ")
}

/// A row for all threads of a command that may do the same. How many there are of a kind depends on the
/// machine.
fn rows(shown: &str, threads: &[Thread]) -> String {
    let name = |thread: &Thread| {
        let name = thread.name.trim_end_matches(|c: char| c.is_ascii_digit());
        name.trim_end_matches(['-', ' ']).to_owned()
    };
    let may = |thread: &Thread| {
        let user = if thread.uid == 0 { "root" } else { USER };
        let bit = |is_set| if is_set { "yes" } else { "NO" };
        format!(
            "{user} | {} | {} | {}",
            capabilities(thread.capabilities | thread.permitted),
            bit(thread.no_new_privileges == "1"),
            bit(thread.seccomp == "2")
        )
    };
    let kinds: BTreeSet<String> = threads.iter().map(may).collect();
    let mut rows = String::new();
    for kind in kinds {
        let names = threads.iter().filter(|one| may(one) == kind).map(name);
        let names: BTreeSet<String> = names.collect();
        let names: Vec<String> = names.into_iter().collect();
        writeln!(rows, "| `{shown}` | {} | {kind} |", names.join(", ")).unwrap();
    }
    rows
}

/// `LINKWEIR_BLESS=1` writes the table anew.
#[test]
fn the_table_of_threads_is_what_the_kernel_says() {
    let Some(site) = Site::open(&[]) else { return };
    if site.net.is_unprivileged() {
        return skipped("only root has privileges to give up");
    }
    for directory in [".", "spool", "record", "quarantine"] {
        let path = site.path(directory);
        fs::create_dir_all(&path).unwrap();
        // As the directory for temporary files is: root and others write there.
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let config = site.configure("gateway.toml", POLICY);
    let feed = format!("test-privileges-{}", std::process::id());
    let mut table =
        "| command | threads | user | capabilities | no_new_privs | seccomp |\n".to_owned();
    table += "| --- | --- | --- | --- | --- | --- |\n";
    for case in cases(&config, &feed) {
        table += &rows(case.shown, &seen(&site, &case));
    }
    println!("{table}");

    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/privileges.md");
    let text = fs::read_to_string(&manual).unwrap();
    let (before, rest) = text.split_once(&format!("{MARK}\n")).unwrap();
    let (old, after) = rest.split_once("\n\n").unwrap();
    if std::env::var_os("LINKWEIR_BLESS").is_some() {
        fs::write(manual, format!("{before}{MARK}\n{table}\n{after}")).unwrap();
        return;
    }
    assert_eq!(format!("{old}\n"), table);
}
