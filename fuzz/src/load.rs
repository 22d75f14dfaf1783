//! Responses and scripts of load sessions.

use linkweir_load::arrivals::Replay;
use linkweir_load::outcome::Failure;
use linkweir_load::script::{
    CompileError, Plan, Script, ScriptError, SessionPlan, Site, Span, file, wsesslog,
};
use linkweir_load::session::Heads;
use linkweir_load::session::html::{Found, MAX_OBJECTS};
use linkweir_load::session::response::{Progress, ResponseReader};

const MAX_HEAD: usize = 8192;
const MAX_FOUND: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
struct Read {
    body: Vec<u8>,
    received: u64,
    status: u16,
    interim: u32,
    is_done: bool,
    left: usize,
    targets: Vec<Vec<u8>>,
}

fn read(input: &[u8], is_to_head: bool, cut: usize) -> Result<Read, Failure> {
    let mut heads = Heads::new(MAX_HEAD, MAX_HEAD);
    let mut reader = ResponseReader::new(is_to_head);
    let mut found = Found::default();
    found.begin(b"/dir/page?query");
    let (mut body, mut interim, mut is_done, mut left) = (Vec::new(), 0, false, 0);
    for piece in input.chunks(cut) {
        let mut rest = piece;
        while !is_done && !rest.is_empty() {
            let progress = reader.read(&mut rest, &mut heads, |bytes| {
                body.extend_from_slice(bytes);
                found.feed(bytes, b"www.test", MAX_FOUND);
            })?;
            match progress {
                Progress::More => assert!(rest.is_empty()),
                Progress::Interim => interim += 1,
                Progress::Head => {}
                Progress::Done => is_done = true,
            }
        }
        left += rest.len();
        assert!(heads.held_bytes() <= MAX_HEAD);
    }
    assert_eq!(reader.received() + left as u64, input.len() as u64);
    assert!(found.len() <= MAX_OBJECTS && found.bytes() <= MAX_FOUND);
    let targets: Vec<Vec<u8>> = (0..found.len()).map(|n| found.target(n).to_vec()).collect();
    for target in &targets {
        assert!(target.starts_with(b"/"));
        assert!(
            target
                .iter()
                .all(|byte| byte.is_ascii_graphic() && *byte != b'#')
        );
    }
    reader.release(&mut heads);
    assert_eq!(heads.held_bytes(), 0);
    Ok(Read {
        body,
        received: reader.received(),
        status: reader.status(),
        interim,
        is_done,
        left,
        targets,
    })
}

/// Reads arbitrary bytes as a response of a load session, and its body as a page: what is read and what is
/// found do not depend on how the bytes are cut, and memory is bounded.
///
/// Input: a byte whose lowest bit says that the request was HEAD, and the bytes of the response.
pub(crate) fn response(input: &[u8]) {
    let Some((flags, response)) = input.split_first() else {
        return;
    };
    let is_to_head = flags & 1 != 0;
    let whole = read(response, is_to_head, usize::MAX);
    assert_eq!(read(response, is_to_head, 1), whole);
    assert_eq!(read(response, is_to_head, 13), whole);
}

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

/// Reads arbitrary text as a script of load sessions in both formats, and as a list of times: a fault lies in
/// the text, and what is read can be made ready to be sent.
pub(crate) fn script(input: &[u8]) {
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
