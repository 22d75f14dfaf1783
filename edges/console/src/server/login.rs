//! Where a browser gets in without a token in its address, and out again: `GET /login`, `POST /login`, `POST /logout`.
//!
//! A browser that comes without a token gets the form instead of what it asked for, and after it what it asked for: only
//! paths of this console, never another site (no open redirect). Programs still get 401 in one line. As with orders,
//! forms of other sites are refused.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request};

use crate::served::{decode, parameter};

/// Largest form: a token has 128 bytes, the rest is where to go.
const MAX_FORM_BYTES: usize = 4096;
/// Longest path with query and fragment to go to.
const MAX_PATH_BYTES: usize = 2048;
/// Content type of a form (URL standard, sec. 5).
const FORM: &str = "application/x-www-form-urlencoded";

/// What the form may do beyond the other pages: be sent.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'";
/// A browser that must not say where a form comes from would say `Origin: null`.
pub(super) const REFERRER: &str = "same-origin";

/// Keeps the part of the address that no server sees: the page has its view in it.
pub(super) const SCRIPT: &str = "\
const form = document.forms[0];
if (location.hash !== \"\" && !form.to.value.includes(\"#\")) form.to.value += location.hash;
";

pub(super) const STYLE: &str = "\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { display: grid; min-height: 90vh; place-items: center; margin: 0; }
form { display: grid; gap: .75rem; width: min(20rem, 90vw); }
h1 { font-size: 1.25rem; margin: 0; }
p { margin: 0; }
input, button { font: inherit; padding: .4rem .6rem; }
";

/// What a request has to do with getting in and out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The form.
    Page,
    /// Its rules of style.
    Style,
    /// Its script.
    Script,
    /// A form that was filled in.
    In,
    /// The cookie is to go.
    Out,
}

impl Step {
    pub(super) fn of(method: &Method, path: &str) -> Option<Self> {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        match path {
            "/login" if is_read => Some(Self::Page),
            "/login.css" if is_read => Some(Self::Style),
            "/login.js" if is_read => Some(Self::Script),
            "/login" if *method == Method::POST => Some(Self::In),
            "/logout" if *method == Method::POST => Some(Self::Out),
            _ => None,
        }
    }
}

/// Whether a request without a token is that of somebody who can fill in a form.
pub(super) fn is_by_browser(method: &Method, fields: &HeaderMap) -> bool {
    let accepts = fields.get(header::ACCEPT).and_then(|of| of.to_str().ok());
    matches!(*method, Method::GET | Method::HEAD)
        && !fields.contains_key(header::AUTHORIZATION)
        && accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

/// Where to go after the form: to a path of this console.
pub(super) fn destination(to: &str) -> &str {
    // A browser takes `//host`, and `/\host`, for another site.
    let is_path = to.starts_with('/') && !to.starts_with("//");
    let is_plain = to
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    // Back to the form would be no way in.
    let is_form = to.starts_with("/login") || to.starts_with("/logout");
    if is_path && is_plain && !is_form && to.len() <= MAX_PATH_BYTES {
        to
    } else {
        "/"
    }
}

/// A path and its query without a token that was wrong.
pub(super) fn wanted(path: &str, query: &str) -> String {
    let kept = query.split('&').filter(|pair| !pair.starts_with("token="));
    let kept: Vec<&str> = kept.filter(|pair| !pair.is_empty()).collect();
    if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", kept.join("&"))
    }
}

/// The form; it leads to `to`.
pub(super) fn page(to: &str, is_wrong: bool) -> String {
    let mut value = String::with_capacity(to.len());
    for c in destination(to).chars() {
        match c {
            '&' => value.push_str("&amp;"),
            '<' => value.push_str("&lt;"),
            '"' => value.push_str("&quot;"),
            c => value.push(c),
        }
    }
    let wrong = if is_wrong {
        "<p role=\"alert\">This is not the token.</p>\n"
    } else {
        ""
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>linkweir: log in</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><link rel=\"stylesheet\" href=\"/login.css\"></head>\n\
         <body><form method=\"post\" action=\"/login\"><h1>linkweir</h1>\n{wrong}\
         <label for=\"token\">Token, as printed at the start or set by --console-token</label>\n\
         <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\n\
         <input type=\"hidden\" name=\"to\" value=\"{value}\">\n\
         <button type=\"submit\">Log in</button></form>\n<script src=\"/login.js\"></script></body></html>\n"
    )
}

/// A form that was filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) token: String,
    pub(super) to: String,
}

impl Form {
    /// Reads the form of a request; `None` where it has none, or one that is too large.
    pub(super) async fn read(request: Request<Incoming>) -> Option<Self> {
        let of = request.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
        if !of.split(';').next()?.trim().eq_ignore_ascii_case(FORM) {
            return None;
        }
        let mut body = request.into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(data) = frame.ok()?.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > MAX_FORM_BYTES {
                return None;
            }
            bytes.extend_from_slice(&data);
        }
        let text = String::from_utf8(bytes).ok()?;
        let field = |name| parameter(&text, name).map(decode);
        Some(Self {
            token: field("token")?,
            to: field("to").unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_paths_of_this_console_are_gone_to() {
        for (to, goes) in [
            ("/", "/"),
            ("/archive?series=a&span=week", "/archive?series=a&span=week"),
            ("/#by=url&sort=p95", "/#by=url&sort=p95"),
            ("/api/top?url=http://other/", "/api/top?url=http://other/"),
            ("", "/"),
            ("archive", "/"),
            ("//evil.example/", "/"),
            ("/\\evil.example", "/"),
            ("/a\\b", "/"),
            ("/\t/evil.example", "/"),
            ("/a\r\nSet-Cookie: x=y", "/"),
            ("https://evil.example/", "/"),
            ("javascript:alert(1)", "/"),
            ("/login", "/"),
            ("/logout", "/"),
            ("/\u{e9}", "/"),
        ] {
            assert_eq!(destination(to), goes, "{to}");
        }
        assert_eq!(destination(&format!("/{}", "a".repeat(2048))), "/");
        assert_eq!(wanted("/", "token=x"), "/");
        assert_eq!(wanted("/a", "b=1&token=x&c=2"), "/a?b=1&c=2");
    }

    proptest! {
        #[test]
        fn the_form_is_one_form_whatever_it_leads_to(to in "/.{0,60}") {
            let page = page(&to, false);
            let (_, rest) = page.split_once("name=\"to\" value=\"").unwrap();
            let (value, rest) = rest.split_once('"').unwrap();
            prop_assert!(value.starts_with('/') && !value.contains('<'));
            prop_assert!(rest.starts_with(">\n<button"));
        }
    }
}
