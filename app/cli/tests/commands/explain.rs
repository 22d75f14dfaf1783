//! `gateway explain`: the rule that decided, by which value, at which packet of the capture.

use serde_json::Value;

use crate::common::{demo, demo_frames, run};

#[test]
fn each_decision_names_its_packet_and_the_value_that_matched() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("gateway.toml");
    let text =
        "[[rule]]\nname = \"posts\"\nmethods = \"POST\"\naction = \"reject\"\npage = \"No.\"\n";
    std::fs::write(&policy, text).unwrap();
    let (policy, demo) = (policy.to_str().unwrap(), demo());
    let words = [
        "gateway",
        "explain",
        "-c",
        policy,
        "-r",
        demo.to_str().unwrap(),
    ];
    let said = run(&words).exits(0).stdout;
    let decisions: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let frames = demo_frames();
    let (mut posts, mut others) = (0, 0);
    for decision in &decisions {
        if decision["rule"] == "posts" {
            assert_eq!(decision["why"], "methods=POST (post)");
            let number = usize::try_from(decision["packet"].as_u64().unwrap()).unwrap();
            let frame = &frames[number - 1].bytes;
            assert!(
                frame.windows(5).any(|bytes| bytes == b"POST "),
                "{decision}"
            );
            posts += 1;
        } else if decision["event"] == "decided" {
            assert_eq!(
                (&decision["rule"], &decision["why"]),
                (&"default".into(), &"no rule matches".into())
            );
            others += 1;
        }
    }
    assert!(posts > 10 && others > 10, "{posts} {others}");
    let table = run(&[&words[..], &["--format", "table"]].concat())
        .exits(0)
        .stdout;
    assert!(
        table
            .lines()
            .next()
            .unwrap()
            .trim_start()
            .starts_with("packet"),
        "{table}"
    );
    assert!(
        table.lines().last().unwrap().contains(" undecided"),
        "{table}"
    );
}
