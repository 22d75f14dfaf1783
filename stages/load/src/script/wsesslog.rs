//! Scripts in the format of httperf's `--wsesslog`.
//!
//! ```text
//! # A comment begins in column 1.
//! /index.html think=2.0
//!     /style.css
//!     /logo.png
//! /order method=POST contents='item=7&count=1'
//!
//! # A line without text begins the next session.
//! /news.html
//! ```
//!
//! A target in column 1 is a page; indented ones below it are its objects, asked for when its response
//! is complete. Behind a target may stand `method=` (GET, HEAD, POST or PUT), `think=` (seconds from the
//! end of the page to the next; on any line of the page, the last counts) and `contents=`, a body in single
//! or double quotes. In it `\n`, `\r`, `\t`, `\\`, `\'` and `\"` stand for one byte, and a `\` at the end
//! of a line lets it go on in the next.
//!
//! Sessions take turns. A page without `think=` has the think time that the run gives. Unlike
//! httperf, objects are not pipelined: they go over `parallel` connections.

use super::plan::{
    Body, MAX_BODY, Method, PagePlan, Plan, RequestPlan, ScriptError, SessionPlan, target_fault,
};
use super::span::{MAX_SECONDS, Span};
use crate::arrivals::whole_nanos;

type Result<T> = std::result::Result<T, ScriptError>;

/// Reads a script. `like` says what the format does not: parallel connections and keep-alive of each
/// session; `think` is the think time of pages that give none.
///
/// # Errors
/// What cannot be read, with its line and column.
pub fn parse(text: &str, like: &SessionPlan, think: Span) -> Result<Plan> {
    let mut reader = Reader { text, at: 0 };
    let mut plan = Plan::default();
    let mut pages: Vec<PagePlan> = Vec::new();
    let mut end_session = |pages: &mut Vec<PagePlan>| {
        if !pages.is_empty() {
            plan.sessions.push(SessionPlan {
                pages: std::mem::take(pages),
                ..like.clone()
            });
        }
    };
    while !reader.is_at_end() {
        if reader.peek() == Some('#') {
            reader.pass_line();
            continue;
        }
        let is_indented = reader.pass_blanks();
        if reader.is_at_line_end() {
            reader.pass_line();
            end_session(&mut pages);
            continue;
        }
        let start = reader.at;
        let (request, own_think) = reader.request()?;
        if is_indented {
            let Some(page) = pages.last_mut() else {
                return Err(reader.wrong(
                    start,
                    "an object before its page: begin the line of the page in column 1",
                ));
            };
            page.think = own_think.unwrap_or(page.think);
            page.objects.push(request);
        } else {
            pages.push(PagePlan {
                base: request,
                think: own_think.unwrap_or(think),
                ..PagePlan::default()
            });
        }
    }
    end_session(&mut pages);
    if plan.sessions.is_empty() {
        return Err(reader.wrong(0, "no session: write a target like /index.html in column 1"));
    }
    Ok(plan)
}

struct Reader<'t> {
    text: &'t str,
    /// Byte of the next character.
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    const fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    fn is_at_line_end(&self) -> bool {
        self.rest().is_empty() || line_end(self.rest()).is_some()
    }

    /// Passes blanks and tabs; says whether there was one.
    fn pass_blanks(&mut self) -> bool {
        let rest = self.rest();
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        self.at += blanks;
        blanks > 0
    }

    /// Passes the rest of the line.
    fn pass_line(&mut self) {
        let end = self.rest().find('\n').map(|end| end + 1);
        self.at = end.map_or(self.text.len(), |end| self.at + end);
    }

    /// A word without blanks that ends at one of `ends` too.
    fn word(&mut self, ends: &[char]) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_ascii_whitespace() || ends.contains(&c));
        let word = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
        self.at += word.len();
        word
    }

    fn wrong(&self, at: usize, what: impl std::fmt::Display) -> ScriptError {
        ScriptError::at(self.text, at, what)
    }

    /// A whole line: target and what is behind it.
    fn request(&mut self) -> Result<(RequestPlan, Option<Span>)> {
        let start = self.at;
        let target = self.word(&[]);
        if let Some(fault) = target_fault(target) {
            return Err(self.wrong(start, fault));
        }
        let mut request = RequestPlan::get(target);
        let mut think = None;
        loop {
            let has_blank = self.pass_blanks();
            if self.is_at_line_end() {
                self.pass_line();
                return Ok((request, think));
            }
            let start = self.at;
            if !has_blank {
                return Err(self.wrong(start, "write a blank between the words of a line"));
            }
            let key = self.word(&['=']);
            if self.peek() != Some('=') {
                let what = format!(
                    "`{}` is not known: write method=, think= or contents=",
                    key.escape_debug()
                );
                return Err(self.wrong(start, what));
            }
            self.take();
            match key {
                "method" => request.method = self.method()?,
                "think" => think = Some(self.think()?),
                "contents" => request.body = Body::Given(self.contents()?),
                _ => {
                    let what = format!(
                        "`{}=` is not known: there are method=, think= and contents=",
                        key.escape_debug()
                    );
                    return Err(self.wrong(start, what));
                }
            }
        }
    }

    fn method(&mut self) -> Result<Method> {
        let start = self.at;
        let token = self.word(&[]);
        Method::of(token).ok_or_else(|| {
            let what = format!(
                "`{}` is not a method of a script: write GET, HEAD, POST or PUT",
                token.escape_debug()
            );
            self.wrong(start, what)
        })
    }

    fn think(&mut self) -> Result<Span> {
        let start = self.at;
        let word = self.word(&[]);
        let seconds = word.parse::<f64>().ok();
        let seconds = seconds.filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
        let nanos = seconds.map(|seconds| whole_nanos(seconds * 1e9));
        nanos.map(Span::Constant).ok_or_else(|| {
            let what = format!(
                "`{}` is not a valid think time: write seconds, like 2.5",
                word.escape_debug()
            );
            self.wrong(start, what)
        })
    }

    fn contents(&mut self) -> Result<Vec<u8>> {
        let start = self.at;
        let Some(quote @ ('\'' | '"')) = self.take() else {
            return Err(self.wrong(start, "write the contents in quotes: contents='...'"));
        };
        let mut body = Vec::new();
        loop {
            let at = self.at;
            match self.take() {
                Some(end) if end == quote => return Ok(body),
                Some('\\') => body.extend(self.escaped(at)?),
                None | Some('\n') => {
                    return Err(self.wrong(
                        start,
                        "the quote is not closed in its line: close it, or end the line with \\",
                    ));
                }
                Some(other) => {
                    let mut bytes = [0; 4];
                    body.extend_from_slice(other.encode_utf8(&mut bytes).as_bytes());
                }
            }
            if body.len() > MAX_BODY {
                return Err(self.wrong(start, "contents of more than 16 MiB: make them shorter"));
            }
        }
    }

    /// What follows a backslash; `at` is where it stands.
    fn escaped(&mut self, at: usize) -> Result<Option<u8>> {
        if let Some(end) = line_end(self.rest()) {
            self.at += end;
            return Ok(None);
        }
        match self.take() {
            Some('n') => Ok(Some(b'\n')),
            Some('r') => Ok(Some(b'\r')),
            Some('t') => Ok(Some(b'\t')),
            Some('\\') => Ok(Some(b'\\')),
            Some('\'') => Ok(Some(b'\'')),
            Some('"') => Ok(Some(b'"')),
            _ => Err(self.wrong(
                at,
                "a \\ stands before n, r, t, \\, a quote or the end of the line: write \\\\ for itself",
            )),
        }
    }
}

/// Bytes of the line end at the beginning of `rest`.
fn line_end(rest: &str) -> Option<usize> {
    match rest.as_bytes() {
        [b'\n', ..] => Some(1),
        [b'\r', b'\n', ..] => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Plan> {
        parse(text, &SessionPlan::default(), Span::Constant(5))
    }

    #[test]
    fn sessions_pages_and_objects() {
        let text = "# two shoppers\n\
            /shop.html think=1.5\n\
            \t/a.css\r\n\
            \x20 /b.png think=3\n\
            # still the first session\n\
            /order method=POST contents=\"one\\n\\\"two\\\"\\\\\\\n, three\"\n\
            \x20   /done.gif method=HEAD\n\
            \n   \n\n\
            /news.html\n\
            /form method=PUT contents='it\\'s'";
        let plan = read(text).expect("a script");
        assert!(!plan.is_weighted);
        let [first, second] = &plan.sessions[..] else {
            panic!("{} sessions", plan.sessions.len());
        };
        let targets = |page: &PagePlan| -> Vec<String> {
            std::iter::once(&page.base)
                .chain(&page.objects)
                .map(|request| format!("{} {}", request.method.as_str(), request.target))
                .collect()
        };
        assert_eq!(
            targets(&first.pages[0]),
            ["GET /shop.html", "GET /a.css", "GET /b.png"]
        );
        assert_eq!(first.pages[0].think, Span::Constant(3_000_000_000));
        assert_eq!(targets(&first.pages[1]), ["POST /order", "HEAD /done.gif"]);
        assert_eq!(first.pages[1].think, Span::Constant(5), "that of the run");
        let body = Body::Given(b"one\n\"two\"\\, three".to_vec());
        assert_eq!(first.pages[1].base.body, body);
        assert_eq!(targets(&second.pages[0]), ["GET /news.html"]);
        assert_eq!(second.pages[1].base.body, Body::Given(b"it's".to_vec()));
        assert_eq!(second.pages.len(), 2);
    }

    #[test]
    fn faults_have_a_place_and_an_advice() {
        for (text, line, column, advice) in [
            ("", 1, 1, "write a target"),
            ("# only this\n", 1, 1, "write a target"),
            ("  /a.css\n", 1, 3, "begin the line of the page in column 1"),
            ("/a\n\n /b\n", 3, 2, "column 1"),
            ("index.html\n", 1, 1, "begin with `/`"),
            ("/a\nhttp://other.test/x\n", 2, 1, "path only"),
            ("/a#top\n", 1, 1, "hexadecimal"),
            ("/a method=DELETE\n", 1, 11, "GET, HEAD, POST or PUT"),
            ("/a think=soon\n", 1, 10, "write seconds"),
            ("/a think=-1\n", 1, 10, "write seconds"),
            ("/a think=1e99\n", 1, 10, "write seconds"),
            ("/a colour=red\n", 1, 4, "there are method="),
            ("/a /b\n", 1, 4, "write method="),
            ("/a contents=x\n", 1, 13, "in quotes"),
            ("/a contents='x\n/b\n", 1, 13, "not closed"),
            ("/ä method=GET\n", 1, 1, "hexadecimal"),
            ("/a contents='ä\\q'\n", 1, 15, "before n, r, t"),
            ("/a contents='x'think=2\n", 1, 16, "blank between"),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(
                (error.line, error.column),
                (line, column),
                "{text:?}: {error}"
            );
            assert!(error.what.contains(advice), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_script_or_a_fault_in_it(text in "([/#a-c= \t\n\r'\"\\\\]|method=|think=1|contents='){0,60}") {
            match read(&text) {
                Ok(plan) => prop_assert!(plan.sessions.iter().all(|session| !session.pages.is_empty())),
                Err(error) => {
                    prop_assert!((1..=text.split('\n').count()).contains(&error.line));
                    prop_assert!(error.column >= 1);
                }
            }
        }
    }
}
