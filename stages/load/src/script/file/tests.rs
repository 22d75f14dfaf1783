//! Scripts in TOML: what is read, and faults with their places.

use proptest::prelude::*;

use super::*;

#[test]
fn defaults_go_down_and_inner_ones_count() {
    let text = r#"
order = "weighted"
[defaults]
parallel = 2
timeout = "1.5s"
think = 3
headers = { Accept-Language = "pl", "X-Run" = "1" }

[[session]]
weight = 3
think = { distribution = "pareto", scale = "1s", shape = 1.5, cap = "1m" }
[[session.page]]
target = "/index.html?a=b"
objects = ["/style.css", { target = "/count", method = "HEAD", timeout = 4 }]
parse = true
pause = { distribution = "exponential", mean = "20ms" }
[[session.page]]
method = "POST"
target = "/order"
body = "item=7"
headers = { x-run = "2" }

[[session]]
keep_alive = false
page = [{ target = "/put", method = "PUT", body_bytes = 1000 }]
"#;
    let plan = parse(text).expect("a script");
    assert!(plan.is_weighted);
    let [first, second] = &plan.sessions[..] else {
        panic!("{} sessions", plan.sessions.len());
    };
    assert_eq!(
        (first.weight, first.parallel, first.keep_alive),
        (3, 2, true)
    );
    assert_eq!(
        (second.weight, second.parallel, second.keep_alive),
        (1, 2, false)
    );
    let [index, order] = &first.pages[..] else {
        panic!("{} pages", first.pages.len());
    };
    let pareto = Span::Pareto {
        scale: 1.0,
        shape: 1.5,
        cap: 60.0,
    };
    assert_eq!((index.think, order.think), (pareto, pareto));
    assert_eq!(
        index.pause,
        Span::Exponential {
            mean: 0.02,
            cap: 0.4
        }
    );
    assert!(index.is_parsed && !order.is_parsed);
    assert_eq!(index.objects[0].target, "/style.css");
    assert_eq!(index.objects[0].timeout_ns, Some(1_500_000_000));
    assert_eq!(index.objects[1].timeout_ns, Some(4_000_000_000));
    assert_eq!(index.objects[1].method, Method::Head);
    assert_eq!(index.objects[1].headers.len(), 2);
    assert_eq!(order.base.body, Body::Given(b"item=7".to_vec()));
    let header = |name: &str| {
        let found = order
            .base
            .headers
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        (header("X-Run"), header("accept-language")),
        (vec!["2"], vec!["pl"])
    );
    assert_eq!(second.pages[0].base.body, Body::Filled(1000));
    assert_eq!(second.pages[0].think, Span::Constant(3_000_000_000));
}

#[test]
fn faults_have_a_place_and_an_advice() {
    let page = |more: &str| format!("[[session]]\n[[session.page]]\ntarget = \"/\"\n{more}\n");
    for (text, line, column, advice) in [
        (String::new(), 1, 1, "[[session]]"),
        ("order = \"up\"\n".to_owned(), 1, 9, "turns"),
        ("[[session]]\n".to_owned(), 1, 1, "[[session.page]]"),
        ("session = 3\n".to_owned(), 1, 11, "[[ ... ]]"),
        ("[defaults]\nparalel = 3\n".to_owned(), 2, 1, "parallel"),
        ("[defaults]\nparallel = 0\n".to_owned(), 2, 12, "1 to 64"),
        ("[defaults]\nparallel = 65\n".to_owned(), 2, 12, "1 to 64"),
        (
            "[defaults]\nthink = \"3 weeks\"\n".to_owned(),
            2,
            9,
            "250ms",
        ),
        ("[defaults]\ntimeout = 0\n".to_owned(), 2, 11, "above 0"),
        (
            "[[session]]\n[[session.page]]\n".to_owned(),
            2,
            1,
            "missing key `target`",
        ),
        (
            "[[session]]\n[[session.page]]\ntarget = \"x\"\n".to_owned(),
            3,
            10,
            "begin with",
        ),
        (page("method = \"DELETE\""), 4, 10, "`GET`, `HEAD`"),
        (page("body = \"a\"\nbody_bytes = 3"), 4, 8, "leave one"),
        (page("body_bytes = -3"), 4, 14, "whole number"),
        (page("objects = [\"/a\", 7]"), 4, 18, "in quotes"),
        (page("objects = [\"/a b\"]"), 4, 12, "hexadecimal"),
        (
            page("headers = { Content-Length = \"3\" }"),
            4,
            13,
            "written by the generator",
        ),
        (
            page("headers = { A = \"b\\r\\nC: d\" }"),
            4,
            13,
            "leave it out",
        ),
        (
            page("headers = { \"A b\" = \"c\" }"),
            4,
            13,
            "header field name",
        ),
        (page("think = { mean = 3 }"), 4, 9, "distribution"),
        (page("think = { distribution = \"zipf\" }"), 4, 26, "pareto"),
        (
            page("think = { distribution = \"pareto\", scale = 1, shape = 1 }"),
            4,
            9,
            "`cap`",
        ),
        (
            page("think = { distribution = \"pareto\", scale = 2, shape = 1, cap = 1 }"),
            4,
            9,
            "cap",
        ),
        (
            page("think = { distribution = \"exponential\", mean = 1, shape = 2 }"),
            4,
            9,
            "unknown key `shape` for this distribution",
        ),
        (page("weight = 2"), 4, 1, "unknown key"),
        (page("parse = 1"), 4, 9, "true or false"),
        ("[[session]\n".to_owned(), 1, 11, ""),
        (
            "[[session]]\nweight = 0\npage = [{target = \"/\"}]\n[defaults]\n"
                .replace("[[", "order = \"weighted\"\n[["),
            1,
            1,
            "weights",
        ),
    ] {
        let error = parse(&text).expect_err(&text);
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{text:?}: {error}"
        );
        assert!(error.what.contains(advice), "{text:?}: {error}");
    }
}

/// The example of the documentation is a script.
#[test]
fn the_documented_example_can_be_read() {
    let text: String = include_str!("mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .skip_while(|line| !line.contains("```toml"))
        .skip(1)
        .take_while(|line| !line.contains("```"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let plan = parse(&text).expect("a script");
    assert_eq!(plan.sessions[0].pages.len(), 2);
}

proptest! {
    #[test]
    fn any_text_is_a_script_or_a_fault_in_it(text in "(\\[\\[session\\]\\]\n|\\[\\[session.page\\]\\]\n|target|objects|think|[=\"/a0{}\\[\\]\n, ]){0,30}") {
        if let Err(error) = parse(&text) {
            prop_assert!((1..=text.split('\n').count()).contains(&error.line), "{:?}", error);
        }
    }
}
