//! The form for the token: who gets it, where it leads, and the way out.

use super::*;

const TOKEN: &str = "s3cret-token";
const BROWSER: &str = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn post(console: &Console, target: &str, fields: &str, body: &str) -> (u16, String, String) {
    let host = console.local_addr();
    let length = body.len();
    split(&raw(
        console,
        &format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ),
    ))
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name))
}

#[test]
fn a_browser_gets_a_form_that_leads_where_it_wanted_and_a_way_out() {
    let console = console(&live(1), Some(TOKEN));
    let (status, head, body) = ask(
        &console,
        "/archive?series=a&span=week&token=nonsense",
        BROWSER,
    );
    assert_eq!(status, 401);
    assert!(head.contains("content-type: text/html"), "{head}");
    assert!(head.contains("form-action 'self'") && head.contains("script-src 'self'"));
    assert!(body.contains("name=\"to\" value=\"/archive?series=a&amp;span=week\""));
    assert!(body.contains("This is not the token.") && !body.contains("veth0"));
    // What the form needs is there for everybody.
    for target in ["/login.css", "/login.js"] {
        assert_eq!(ask(&console, target, "").0, 200, "{target}");
    }
    // Programs get a line, whatever they ask for.
    for fields in [
        "",
        "Accept: */*\r\n",
        "Authorization: Bearer x\r\nAccept: text/html\r\n",
    ] {
        let (status, head, _) = ask(&console, "/", fields);
        assert!(
            status == 401 && head.contains("www-authenticate: bearer"),
            "{head}"
        );
        assert!(head.contains("content-type: text/plain"), "{fields}");
    }
    let body = format!("token={TOKEN}&to=%2Farchive%3Fseries%3Da%26span%3Dweek%23by%3Durl");
    let (status, head, _) = post(&console, "/login", FORM, &body);
    assert_eq!(status, 303);
    assert_eq!(
        field(&head, "location: "),
        Some("/archive?series=a&span=week#by=url")
    );
    let cookie = field(&head, "set-cookie: ").unwrap();
    assert!(cookie.contains("httponly; samesite=strict") && !cookie.contains("secure"));
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let (status, head, _) = ask(&console, "/api/snapshot", &cookie);
    assert!(
        status == 200 && head.contains("x-linkweir-login: cookie"),
        "{head}"
    );
    let (status, head, _) = ask(&console, "/login", &format!("{BROWSER}{cookie}"));
    assert_eq!((status, field(&head, "location: ")), (303, Some("/")));
    let (status, head, _) = post(&console, "/logout", &cookie, "");
    assert_eq!((status, field(&head, "location: ")), (303, Some("/login")));
    let gone = field(&head, "set-cookie: ").unwrap();
    assert!(gone.contains("linkweir_token_") && gone.contains("=; ") && gone.contains("max-age=0"));
    assert_eq!(ask(&console, "/login", BROWSER).0, 200);
}

#[test]
fn the_form_leads_to_no_other_site_and_is_not_filled_in_by_one() {
    let console = console(&live(1), Some(TOKEN));
    for to in [
        "//evil.example/",
        "https://evil.example/",
        "%5C%5Cevil.example",
        "/%0d%0aX-Evil:%201",
    ] {
        let (status, head, _) = post(&console, "/login", FORM, &format!("token={TOKEN}&to={to}"));
        assert_eq!(
            (status, field(&head, "location: ")),
            (303, Some("/")),
            "{to}"
        );
        assert!(!head.contains("evil"), "{head}");
    }
    let body = format!("token={TOKEN}");
    for foreign in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        for target in ["/login", "/logout"] {
            let (status, head, _) = post(&console, target, &format!("{FORM}{foreign}"), &body);
            assert!(status == 403 && !head.contains("set-cookie"), "{foreign}");
        }
    }
    let own = format!(
        "{FORM}Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
        console.local_addr()
    );
    assert_eq!(post(&console, "/login", &own, &body).0, 303);
    let foreign = format!("GET /login HTTP/1.1\r\nHost: evil.example\r\n{BROWSER}\r\n");
    assert_eq!(split(&raw(&console, &foreign)).0, 421);
    // Not a form, too large, and one that never comes to its end.
    assert_eq!(
        post(&console, "/login", "Content-Type: text/plain\r\n", &body).0,
        400
    );
    assert_eq!(post(&console, "/login", FORM, "to=/").0, 400);
    assert_eq!(
        post(
            &console,
            "/login",
            FORM,
            &format!("{body}&to=/{}", "a".repeat(5000))
        )
        .0,
        400
    );
    let half = format!(
        "POST /login HTTP/1.1\r\nHost: localhost\r\n{FORM}Content-Length: 100\r\n\r\ntoken="
    );
    assert_eq!(split(&raw(&console, &half)).0, 400);
    // Where no token is needed there is nothing to log in to.
    let open = super::console(&live(1), None);
    assert_eq!(ask(&open, "/login", BROWSER).0, 404);
    assert_eq!(post(&open, "/login", FORM, &body).0, 405);
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "how long an answer takes is what is tested"
)]
fn wrong_tokens_of_forms_are_slowed_like_all_others() {
    let console = console(&live(1), Some(TOKEN));
    let start = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let (status, head, body) =
                    post(&console, "/login", FORM, "token=guess&to=/x%22%3E");
                assert!(status == 401 && !head.contains("set-cookie"));
                assert!(body.contains("This is not the token."));
                assert!(body.contains("value=\"/x&quot;>\""), "{body}");
            });
        }
    });
    assert!(
        start.elapsed() >= 3 * QUICK.wrong_token,
        "{:?}",
        start.elapsed()
    );
}
