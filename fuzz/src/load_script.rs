//! Reads arbitrary text as a script of load sessions in both formats, and as a list of times: a fault lies in
//! the text, and what is read can be made ready to be sent.

use linkweir_load::arrivals::Replay;
use linkweir_load::script::{
    CompileError, Plan, Script, ScriptError, SessionPlan, Site, Span, file, wsesslog,
};

fn check(text: &str, result: Result<Plan, ScriptError>) {
    match result {
        Ok(plan) => match Script::new(&plan, &Site::new("www.test")) {
            Ok(script) => {
                assert_eq!(script.sessions(), plan.sessions.len());
                let page = script.page(0, 0).expect("a session has a page");
                let request = script.request(page.base).expect("a page has a base");
                let bytes = script.bytes(request);
                assert!(bytes.windows(4).any(|end| end == b"\r\n\r\n"));
                assert_eq!(
                    script.target(request),
                    plan.sessions[0].pages[0].base.target.as_bytes()
                );
            }
            Err(error) => assert_eq!(error, CompileError::TooLarge, "the reader has checked it"),
        },
        Err(error) => {
            assert!((1..=text.split('\n').count()).contains(&error.line));
            assert!(error.column >= 1 && !error.what.is_empty());
        }
    }
}

pub(crate) fn target(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    check(
        &text,
        wsesslog::parse(&text, &SessionPlan::default(), Span::ZERO),
    );
    check(&text, file::parse(&text));
    if let Ok(times) = Replay::parse(&text) {
        assert!(!times.is_empty());
    }
}
