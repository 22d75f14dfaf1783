//! Configuration files, manual pages, completions.

use std::path::PathBuf;

use crate::common::{Ran, demo, http, run};
use tempfile::{TempDir, tempdir};

fn config(text: &str) -> (TempDir, PathBuf) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("linkweir.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

fn with(text: &str, words: &[&str]) -> Ran {
    let (_directory, path) = config(text);
    let words: Vec<&str> = ["--config", path.to_str().unwrap()]
        .iter()
        .chain(words)
        .copied()
        .collect();
    http(&demo(), &words)
}

#[test]
fn flags_from_a_file() {
    let ran = with(
        "format = \"csv\"\nhost = \"www\" # a comment\nsort = true\ncount = 2000\n",
        &[],
    )
    .exits(0);
    let flags = ["--format", "csv", "--host", "www", "--sort", "-c", "2000"];
    assert_eq!(ran.stdout, http(&demo(), &flags).exits(0).stdout);
}

#[test]
fn the_command_line_wins() {
    let text = "format = \"csv\"\ncount = 10\nhost = \"nowhere\"";
    let ran = with(text, &["--format=jsonl", "-c", "2000", "--host", "www"]).exits(0);
    let flags = ["--format", "jsonl", "-c", "2000", "--host", "www"];
    assert_eq!(ran.stdout, http(&demo(), &flags).exits(0).stdout);
    let ran = with("count = 10", &["-c2000"]).exits(0);
    assert_eq!(ran.stdout, http(&demo(), &["-c", "2000"]).exits(0).stdout);
}

#[test]
fn inputs_and_outputs_in_the_file() {
    let directory = tempdir().unwrap();
    let (one, two) = (
        directory.path().join("1.jsonl"),
        directory.path().join("2.csv"),
    );
    let (_directory, path) = config(&format!(
        "read = [{:?}]\nwrite = [{one:?}, {two:?}]\nquiet = true\n",
        demo()
    ));
    let ran = run(&["http", "--config", path.to_str().unwrap()]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(std::fs::read_to_string(one).unwrap().lines().count(), 800);
    assert_eq!(std::fs::read_to_string(two).unwrap().lines().count(), 801);
}

#[test]
fn wrong_files() {
    with("format = \"csv\"\n\nhots = \"www\"\n", &[])
        .exits(2)
        .says("line 3")
        .says("hots");
    with("format = \"csv\"\nhost = [\"a\"]\n", &[])
        .exits(2)
        .says("line 2")
        .says("host");
    with("sort = \"yes\"\n", &[])
        .exits(2)
        .says("line 1")
        .says("sort");
    with("format = \n", &[]).exits(2).says("linkweir.toml");
    with("write = [\n\"a.csv\",\n[1]]\n", &[])
        .exits(2)
        .says("line 3: `write` is a list of texts");
    // What is right for TOML and wrong for the flag: where it stands, and nothing of the command line.
    let ran = with("sort = true\nread-size = \"1MiB\"\ntimeout = \"60\"\n", &[])
        .exits(2)
        .says("linkweir.toml, line 3: invalid value '60' for '--timeout <DURATION>': ");
    assert!(!ran.stderr.contains("--help"), "{}", ran.stderr);
    with(
        "rotate = \"1h\"\nwrite = [\n  \"a.jsonl\",\n]\nread = [\n\"-\"]\nports = \"80-70\"\n",
        &[],
    )
    .exits(2)
    .says("linkweir.toml, line 7: ")
    .says("80-70");
    let ran = run(&["http", "-r", "-", "--timeout", "60"]).exits(2);
    assert!(!ran.stderr.contains(" line "), "that is none of a file's");
    // Several lines are several lines.
    let ran = with("sort = true\nread = [\"a\",\n", &[]).exits(2);
    assert!(
        ran.stderr
            .contains("linkweir.toml: TOML parse error at line 2, column "),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("\n  2 | read = [\"a\",\n"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("\\n"), "{}", ran.stderr);
    with("config = \"other.toml\"\n", &[]).exits(2);
    http(&demo(), &["--config", "/no/such.toml"])
        .exits(2)
        .says("/no/such.toml");
}

#[test]
fn a_bad_expression_of_a_policy_is_shown_as_it_stands() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("gateway.toml");
    let policy = "[[signature]]\nname = \"a\"\nclient = \"regex:^x(abc\"\n";
    std::fs::write(&path, policy).unwrap();
    let ran = run(&["gateway", "check", "--config", path.to_str().unwrap()])
        .exits(2)
        .says("gateway.toml:3:");
    assert!(
        ran.stderr.contains("\n      ^x(abc\n        ^\n"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("\\n"), "{}", ran.stderr);
}

#[test]
fn a_policy_says_what_passes_before_a_rule_decides() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("gateway.toml");
    let check = |policy: &str| {
        std::fs::write(&path, policy).unwrap();
        run(&["gateway", "check", "--config", path.to_str().unwrap()]).exits(0)
    };
    let notes = |ran: &Ran| ran.stdout.matches("\nnote: ").count();
    let rule = |application: &str, action: &str| {
        format!("[[rule]]\nname = \"r\"\napplication = \"{application}\"\naction = \"{action}\"\n")
    };
    assert_eq!(notes(&check(&rule("unknown", "allow"))), 0);
    assert_eq!(notes(&check(&rule("http", "drop"))), 0);
    let strict = check(&rule("unknown", "drop"));
    assert!(
        strict.stdout.contains("note: rule `r` is for `unknown`"),
        "{}",
        strict.stdout
    );
    let signature = "[[signature]]\nname = \"own\"\nclient = \"regex:join\"\n";
    let expression = check(&format!("{signature}{}", rule("own", "drop")));
    assert!(
        expression
            .stdout
            .contains("note: signature `own` is a regular"),
        "{}",
        expression.stdout
    );
    assert_eq!(notes(&check(&signature.replace("regex:", "text:"))), 0);
    let scanner = "[scanner.clamd]\naddress = \"/run/clamd\"\n";
    let looks = |application: &str, what: &str| {
        check(&format!(
            "{scanner}{}{what}\n",
            rule(application, "inspect")
        ))
    };
    let warnings = |ran: &Ran| ran.stdout.matches("\nwarning: ").count();
    for (application, what, count) in [
        ("http", "scan = \"clamd\"", 0),
        ("smtp", "scan = \"clamd\"", 1),
        ("edonkey", "file-names = \"*.exe\"", 0),
        ("ssh", "file-names = \"*.exe\"", 1),
        (
            "smtp",
            "file-names = \"*.exe\"\nscan = { hold = \"file\" }",
            2,
        ),
    ] {
        assert_eq!(
            warnings(&looks(application, what)),
            count,
            "{application}, {what}"
        );
    }
}

#[test]
fn manual_pages() {
    let directory = tempdir().unwrap();
    let inside = directory.path().join("man/man1");
    run(&["man", inside.to_str().unwrap()]).exits(0);
    let page = std::fs::read_to_string(inside.join("linkweir-http.1")).unwrap();
    for flag in [
        "max\\-pending",
        "keep\\-duplicates",
        "anonymize",
        "read\\-size",
        "Exit codes",
    ] {
        assert!(page.contains(flag), "{flag}");
    }
    let page = std::fs::read_to_string(inside.join("linkweir.1")).unwrap();
    assert!(page.contains(".TH linkweir 1"));
}

#[test]
fn completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).exits(0).stdout;
        for word in [
            "linkweir",
            "http",
            "flows",
            "lab",
            "max-pending",
            "completions",
        ] {
            assert!(script.contains(word), "{word} in {shell}");
        }
    }
    run(&["completions", "cobol"]).exits(2).says("cobol");
}

#[test]
fn metrics_for_people_prometheus_and_grafana() {
    let table = run(&["metrics"]).exits(0).stdout;
    assert!(table.starts_with("# metrics\n\n| metric | of |"), "{table}");
    assert!(table.contains("\n| `linkweir_dropped_total` | all |"));
    let rules = run(&["metrics", "--format", "prometheus-rules"]).exits(0);
    assert!(rules.stdout.contains("\n      - alert: LinkweirDown\n"));
    for command in ["http", "flows", "gateway", "load"] {
        let printed = run(&["metrics", command, "--format", "grafana"]).exits(0);
        let dashboard: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
        assert_eq!(dashboard["title"], format!("linkweir {command}"));
    }
    run(&["metrics", "--format", "grafana"])
        .exits(2)
        .says("http, flows, gateway or load");
    run(&["metrics", "http"]).exits(2).says("--format grafana");
    run(&["schema", "metrics"]).exits(2);
}

#[test]
fn every_flag_is_explained_with_its_default() {
    let help = run(&["http", "--help"]).exits(0).stdout;
    for code in ["0  success", "1  ", "2  ", "3  "] {
        assert!(help.contains(code), "{code}");
    }
    assert_eq!(
        help.matches("\n  linkweir http -").count(),
        2,
        "two examples"
    );
    // Whatever takes a value without being an address for something says what holds without it.
    let valued = help.split("\n      --").skip(1).filter(|part| {
        let name = part.lines().next().unwrap_or_default();
        ["DURATION", "<N>", "SIZE", "LIST", "SUBSTRING"]
            .iter()
            .any(|unit| name.contains(unit))
    });
    for part in valued {
        let end = part.find("\n\nExamples").unwrap_or(part.len());
        assert!(
            part.get(..end)
                .is_some_and(|part| part.contains("[default")),
            "{part}"
        );
    }
}
