use super::routes::MAX_WAITING;
use super::*;
use linkweir_engine::RunReport;
use linkweir_live::Live;
use linkweir_live::LiveOptions;
use linkweir_record::{HttpBatch, HttpRow, HttpState, Text};
use linkweir_wire::Timestamp;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream as Socket;

mod login;
mod stream;
mod tls;

use stream::open_stream;

const S: u64 = 1_000_000_000;
const T0: u64 = 1_700_000_000 * S;

/// A run of `seconds` intervals with a transaction each.
fn live(seconds: u64) -> Live {
    let live = Live::new(LiveOptions {
        source: "veth0".into(),
        alerts: vec!["drops > 0".parse().unwrap()],
        ..LiveOptions::default()
    });
    advance(&live, 0, seconds);
    live
}

fn advance(live: &Live, from: u64, to: u64) {
    let mut sink = live.sink();
    if from == 0 {
        live.tick(&RunReport::default(), Timestamp::from_nanos(T0));
    }
    for second in from..to {
        let mut batch = HttpBatch::default();
        let row = HttpRow {
            request_ts_ns: Some(T0 + second * S),
            response_ts_ns: Some(T0 + second * S + 1_000_000),
            status_code: Some(200),
            server_port: 80,
            state: HttpState::Complete,
            ..HttpRow::default()
        };
        let text = Text {
            method: b"GET",
            host: b"=evil\",\n</script>",
            uri: b"/\n\nevent: end\r\n\r\n",
            ..Text::default()
        };
        batch.push(row, &text);
        sink.write(&batch).unwrap();
        let report = RunReport {
            packets: second + 1,
            ..RunReport::default()
        };
        live.tick(
            &report,
            Timestamp::from_nanos(T0 + (second + 1) * S + S / 4),
        );
    }
}

const QUICK: Limits = Limits {
    connections: 48,
    streams: 2,
    head: Duration::from_millis(300),
    write: Duration::from_millis(500),
    heartbeat: Duration::from_millis(200),
    wrong_token: Duration::from_millis(100),
};

fn console<K: Kind>(live: &LiveOf<K>, token: Option<&str>) -> Console {
    let options = ConsoleOptions {
        listen: "127.0.0.1:0".into(),
        token: token.map(str::to_owned),
        names: vec!["mon.example".into()],
        ..ConsoleOptions::default()
    };
    Console::start_with(&options, Arc::new(live.clone()), QUICK).unwrap()
}

fn connect(console: &Console) -> Socket {
    let socket = Socket::connect(console.local_addr()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    socket
}

/// Sends bytes, gives everything that comes until the connection closes.
fn raw(console: &Console, request: &str) -> String {
    let mut socket = connect(console);
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).ok();
    String::from_utf8(answer).unwrap()
}

fn ask(console: &Console, target: &str, fields: &str) -> (u16, String, String) {
    let host = console.local_addr();
    let answer = raw(
        console,
        &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n"),
    );
    split(&answer)
}

fn split(answer: &str) -> (u16, String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn every_answer_carries_the_same_policy() {
    let console = console(&live(1), None);
    for target in [
        "/",
        "/nothing",
        "/api/snapshot",
        "/metrics",
        "/healthz",
        "/api/top?by=x",
    ] {
        let (_, head, _) = ask(&console, target, "");
        for field in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(field), "{target}: {field}\n{head}");
        }
        assert!(!head.contains("access-control"), "{head}");
    }
    let (status, head, body) = ask(&console, "/", "");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html; charset=utf-8"));
    assert!(body.starts_with("<!doctype html>"));
    assert_eq!(ask(&console, "/assets/../Cargo.toml", "").0, 404);
    assert_eq!(ask(&console, "/healthz", "").2, "ok\n");
}

#[test]
fn a_rebound_name_gets_nothing() {
    let console = console(&live(1), None);
    let get = |host: &str| {
        let answer = raw(
            &console,
            &format!("GET /api/snapshot HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
        );
        split(&answer)
    };
    for host in [
        "Host: evil.example\r\n",
        "Host: evil.example:8080\r\n",
        "",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: localhost@evil.example\r\n",
    ] {
        let (status, _, body) = get(host);
        assert!(status == 421 || status == 400, "{host} {status}");
        assert!(!body.contains("veth0"), "{host}");
    }
    // An authority in the target goes before the field (RFC 9112 sec. 3.2.2): not for us.
    let answer = raw(
        &console,
        "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(split(&answer).0, 421);
    for host in [
        "Host: localhost\r\n",
        "Host: 127.0.0.1:9\r\n",
        "Host: MON.example:443\r\n",
    ] {
        assert_eq!(get(host).0, 200, "{host}");
    }
}

#[test]
fn only_reading() {
    let console = console(&live(1), None);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let answer = raw(
            &console,
            &format!(
                "{method} /api/snapshot HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
            ),
        );
        let (status, head, _) = split(&answer);
        assert_eq!(status, 405, "{method}");
        assert!(head.contains("allow: get, head"));
    }
    for target in ["/", "/api/stream", "/metrics"] {
        let answer = raw(
            &console,
            &format!("HEAD {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        );
        let (status, _, body) = split(&answer);
        assert_eq!((status, body.as_str()), (200, ""), "{target}");
    }
}

#[test]
fn a_token_opens_and_becomes_a_cookie() {
    let console = console(&live(1), Some("s3cret-token"));
    assert!(console.url().ends_with("/?token=s3cret-token"));
    for target in [
        "/",
        "/api/snapshot",
        "/metrics",
        "/healthz",
        "/assets/app.js",
    ] {
        let (status, head, body) = ask(&console, target, "");
        assert_eq!(status, 401, "{target}");
        assert!(head.contains("www-authenticate: bearer") && !body.contains("veth0"));
    }
    assert_eq!(
        ask(
            &console,
            "/api/snapshot",
            "Authorization: Bearer s3cret-token\r\n"
        )
        .0,
        200
    );
    assert_eq!(
        ask(
            &console,
            "/api/snapshot",
            "Authorization: Bearer s3cret-tokem\r\n"
        )
        .0,
        401
    );
    let (status, head, _) = ask(&console, "/?token=s3cret-token", "");
    assert_eq!(status, 303);
    assert!(head.contains("location: /\r\n"));
    let cookie = head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"));
    let pair = cookie.split(';').next().unwrap();
    let (status, head, _) = ask(
        &console,
        "/api/snapshot",
        &format!("Cookie: a=b; {pair}\r\n"),
    );
    assert_eq!(status, 200);
    assert!(!head.contains("set-cookie"));
}

#[test]
fn an_address_that_others_reach_makes_its_own_token() {
    let start = |listen: &str, token: Option<&str>| {
        let options = ConsoleOptions {
            listen: listen.into(),
            token: token.map(str::to_owned),
            ..ConsoleOptions::default()
        };
        Console::start(&options, live(0))
    };
    let open = start("0.0.0.0:0", None).unwrap();
    let token = open.token().unwrap().to_owned();
    assert_eq!(token.len(), 40);
    assert_ne!(
        start("0.0.0.0:0", None).unwrap().token(),
        Some(token.as_str())
    );
    assert_eq!(start("127.0.0.1:0", None).unwrap().token(), None);
    assert!(matches!(
        start("127.0.0.1:0", Some("a b; c=d")),
        Err(ConsoleError::Token)
    ));
    assert!(matches!(
        start("127.0.0.1", None),
        Err(ConsoleError::Address { .. })
    ));
    let taken = format!("0.0.0.0:{}", open.local_addr().port());
    assert!(matches!(
        start(&taken, None),
        Err(ConsoleError::Listen { .. })
    ));
}

#[test]
fn a_gateway_has_a_status_and_others_have_none() {
    let none = console(&live(1), None);
    let (code, _, body) = ask(&none, "/api/status", "");
    assert_eq!((code, body.as_str()), (404, "this run has no status\n"));
    let gateway = linkweir_live::GatewayLive::new(LiveOptions::default());
    let console = console(&gateway, None);
    let json = |target: &str| -> serde_json::Value {
        let (code, _, body) = ask(&console, target, "");
        assert_eq!(code, 200, "{target}: {body}");
        serde_json::from_str(&body).unwrap()
    };
    assert!(json("/api/status")["status"].is_null());
    let status = linkweir_live::gateway::GatewayStatus {
        packets: 12,
        fail: "open".into(),
        ..Default::default()
    };
    let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
    linkweir_live::gateway::StatusBoard::new(gateway).show(status, now);
    let said = json("/api/status");
    assert_eq!(said["status"]["packets"], 12);
    assert_eq!(said["status_ms"], 1_700_000_000_000_u64);
    assert_eq!(json("/api/snapshot")["meta"]["kind"], "gateway");
    assert_eq!(json("/api/top?by=finding")["by"], "finding");
    assert_eq!(json("/api/ccdf?of=file_size")["count"], 0);
    assert_eq!(ask(&console, "/api/top?by=host", "").0, 400);
}

#[test]
fn the_api_speaks_json() {
    let live = live(3);
    let console = console(&live, None);
    let json = |target: &str| -> serde_json::Value {
        let (status, head, body) = ask(&console, target, "");
        assert_eq!(status, 200, "{target}");
        assert!(
            head.contains("content-type: application/json")
                && head.contains("cache-control: no-store")
        );
        serde_json::from_str(&body).unwrap()
    };
    let snapshot = json("/api/snapshot");
    assert_eq!(snapshot["meta"]["source"], "veth0");
    assert_eq!(snapshot["meta"]["live"], true);
    assert_eq!(snapshot["meta"]["interval_s"], 1.0);
    assert_eq!(snapshot["ticks"].as_array().unwrap().len(), 3);
    let tick = &snapshot["ticks"][2];
    assert_eq!(tick["id"], 3);
    assert_eq!(tick["codes"]["200"], 1);
    assert_eq!(tick["methods"]["GET"], 1);
    assert_eq!(tick["response_time_ns"]["p95"], 1_000_000);
    assert_eq!(tick["dropped"]["kernel"], 0);
    assert_eq!(tick["alerts"][0]["state"], "ok");
    assert_eq!(snapshot["totals"]["requests"], 3);
    live.finish(&RunReport::default());
    let top = json("/api/top?by=host&sort=p95&window=all&n=5");
    assert_eq!(top["rows"][0]["key"], "=evil\",\\x0a</script>");
    assert_eq!(top["rows"][0]["requests"], 3);
    assert_eq!(top["floor"], 0);
    assert_eq!(json("/api/ccdf?window=300")["count"], 3);
    assert_eq!(
        json("/api/download.json?what=urls")["rows"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let (_, head, csv) = ask(&console, "/api/download.csv?what=hosts", "");
    assert!(head.contains("content-disposition: attachment"));
    assert!(
        csv.contains("\r\n\"'=evil\"\",\\x0a</script>\",3,"),
        "{csv}"
    );
    let (_, _, csv) = ask(&console, "/api/download.csv?what=series", "");
    // The last interval was closed by the end of the run.
    assert_eq!(csv.lines().count(), 1 + 3 + 1);
    for target in [
        "/api/top?by=nobody",
        "/api/top?n=many",
        "/api/ccdf?window=7",
        "/api/download.csv?what=all",
    ] {
        assert_eq!(ask(&console, target, "").0, 400, "{target}");
    }
    for (target, why) in [
        ("/api/records", "by=COLUMN&key=KEY, rule=RULE or where=EXPR"),
        ("/api/records?order=newest", "say which records"),
        ("/api/records?host=a", "takes by, key, rule, where, order"),
        ("/api/top?sorted=p95", "takes by, sort, window, n"),
        ("/api/snapshot?x=1", "takes no parameters"),
    ] {
        let (status, _, body) = ask(&console, target, "");
        assert!(status == 400 && body.contains(why), "{target}: {body}");
    }
    let list = json("/api");
    for address in list["addresses"].as_array().unwrap() {
        let path = address["path"].as_str().unwrap();
        if !["/api/stream", "/api/download.csv"].contains(&path) {
            let (_, _, body) = ask(&console, path, "");
            assert!(!body.contains("nothing here"), "{path}: {body}");
        }
    }
}

#[test]
fn heads_are_bounded_in_size_and_time() {
    let console = console(&live(1), None);
    let long = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a".repeat(40_000)
    );
    assert!(matches!(
        split(&raw(&console, &long)).0,
        0 | 400 | 414 | 431
    ));
    let wide = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X-A: b\r\n".repeat(200)
    );
    assert!(matches!(split(&raw(&console, &wide)).0, 0 | 400 | 431));
    assert!(matches!(
        split(&raw(&console, "\x16\x03\x01\0garbage\r\n\r\n")).0,
        0 | 400
    ));
    // Half a head, then silence: the server hangs up by itself.
    let answer = raw(&console, "GET / HTTP/1.1\r\nHost: loc");
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 408"),
        "{answer}"
    );
    // A connection that says nothing.
    assert!(raw(&console, "").len() < 200);
    assert_eq!(ask(&console, "/healthz", "").0, 200);
}

#[test]
fn connections_are_bounded() {
    let console = console(&live(1), None);
    let held: Vec<Socket> = (0..QUICK.connections).map(|_| connect(&console)).collect();
    let (status, _, _) = ask(&console, "/healthz", "");
    assert!(status == 503 || status == 0, "{status}");
    drop(held);
    let is_back = (0..100).any(|_| ask(&console, "/healthz", "").0 == 200);
    assert!(is_back);
}

#[test]
fn where_a_token_is_needed_one_address_has_a_part_of_the_connections() {
    let console = console(&live(1), Some("right-token"));
    let held: Vec<Socket> = (0..QUICK.connections / 4)
        .map(|_| connect(&console))
        .collect();
    let bearer = "Authorization: Bearer right-token\r\n";
    let (status, _, _) = ask(&console, "/healthz", bearer);
    assert!(status == 503 || status == 0, "{status}");
    drop(held);
    let is_back = (0..100).any(|_| ask(&console, "/healthz", bearer).0 == 200);
    assert!(is_back);
}

#[test]
fn dropping_it_closes_it() {
    let console = console(&live(1), None);
    let address = console.local_addr();
    let _stream = open_stream(&console, "");
    drop(console);
    assert!(Socket::connect(address).is_err());
}

#[test]
fn orders_need_permission_a_token_and_our_own_page() {
    let (orders, given) = std::sync::mpsc::channel();
    let options = ConsoleOptions {
        listen: "127.0.0.1:0".into(),
        orders: Some(orders),
        ..ConsoleOptions::default()
    };
    let console = Console::start_with(&options, Arc::new(live(1)), QUICK).unwrap();
    // On loopback too.
    let token = console.token().unwrap().to_owned();
    let host = console.local_addr();
    let post = |console: &Console, target: &str, fields: &str| {
        let request =
            format!("POST {target} HTTP/1.1\r\nHost: {host}\r\n{fields}Content-Length: 0\r\n\r\n");
        split(&raw(console, &request)).0
    };
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let cookie = format!("Cookie: linkweir_token_{}={token}\r\n", host.port());
    let start = "X-Linkweir-Order: start\r\n";
    for (target, fields, status) in [
        ("/api/start".to_owned(), start.to_owned(), 401),
        ("/api/start".to_owned(), cookie.clone(), 403),
        (
            "/api/start".to_owned(),
            format!("{cookie}{start}Origin: http://evil.example\r\n"),
            403,
        ),
        (format!("/api/start?token={token}"), start.to_owned(), 403),
        ("/api/shutdown".to_owned(), format!("{bearer}{start}"), 404),
    ] {
        assert_eq!(
            post(&console, &target, &fields),
            status,
            "{target} {fields}"
        );
    }
    assert!(given.try_recv().is_err());
    assert_eq!(
        post(&console, "/api/start", &format!("{bearer}{start}")),
        202
    );
    let stop = format!(
        "{cookie}X-Linkweir-Order: stop\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n"
    );
    assert_eq!(post(&console, "/api/stop", &stop), 202);
    assert_eq!(
        given.try_iter().collect::<Vec<_>>(),
        [Order::Start, Order::Stop]
    );
    // A GET orders nothing, whatever it says.
    let (status, ..) = ask(&console, "/api/start", &format!("{bearer}{start}"));
    assert_eq!(status, 404);
    assert!(given.try_recv().is_err());
    // Nobody takes them any more.
    drop(given);
    assert_eq!(
        post(&console, "/api/start", &format!("{bearer}{start}")),
        409
    );
    // Without permission there is no POST at all.
    let silent = self::console(&live(1), Some("a-long-token"));
    let fields = format!("Authorization: Bearer a-long-token\r\n{start}");
    let request = format!(
        "POST /api/start HTTP/1.1\r\nHost: {}\r\n{fields}\r\n",
        silent.local_addr()
    );
    assert_eq!(split(&raw(&silent, &request)).0, 405);
}

#[test]
fn further_pages_are_guarded_like_the_others_and_pictures_may_have_styles() {
    #[derive(Debug)]
    struct Two(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);
    impl Pages for Two {
        fn has(&self, path: &str) -> bool {
            path.starts_with("/archive")
        }
        fn page(&self, path: &str, query: &str) -> Page {
            match (path, query) {
                ("/archive", "") => Page::Html("<p>years</p>".into()),
                ("/archive", _) => Page::Refused("no such year".into()),
                (_, "slow") => {
                    self.0.lock().unwrap().recv().unwrap();
                    Page::Svg("<svg/>".into())
                }
                _ => Page::Svg("<svg/>".into()),
            }
        }
    }
    let (open, gate) = std::sync::mpsc::channel();
    let options = ConsoleOptions {
        listen: "127.0.0.1:0".into(),
        token: Some("token-of-a-test".into()),
        pages: Some(Arc::new(Two(gate.into()))),
        ..ConsoleOptions::default()
    };
    let console = Console::start_with(&options, Arc::new(live(1)), QUICK).unwrap();
    assert_eq!(ask(&console, "/archive", "").0, 401);
    let token = "Authorization: Bearer token-of-a-test\r\n";
    let (status, head, body) = ask(&console, "/archive", token);
    assert_eq!((status, body.as_str()), (200, "<p>years</p>"));
    assert!(
        head.contains("style-src 'self'") && head.contains("text/html"),
        "{head}"
    );
    let (status, _, body) = ask(&console, "/archive?year=0", token);
    assert_eq!((status, body.trim()), (400, "no such year"));
    let (status, head, _) = ask(&console, "/archive.svg", token);
    assert!(
        status == 200 && head.contains("sandbox") && !head.contains("script-src"),
        "{head}"
    );
    assert_eq!(ask(&console, "/api/snapshot", token).0, 200);
    let foreign = format!("{token}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n");
    assert_eq!(ask(&console, "/archive.svg", &foreign).0, 403);
    // Who waits for a picture holds up nobody else, and not everybody may wait.
    let (answer, answers) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..MAX_WAITING + 2 {
            let (answer, console) = (answer.clone(), &console);
            scope.spawn(move || answer.send(ask(console, "/archive.svg?slow", token).0));
        }
        assert_eq!([answers.recv().unwrap(), answers.recv().unwrap()], [503; 2]);
        assert_eq!(ask(&console, "/api/snapshot", token).0, 200);
        for _ in 0..MAX_WAITING {
            open.send(()).unwrap();
            assert_eq!(answers.recv().unwrap(), 200);
        }
    });
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "how long an answer takes is what is tested"
)]
fn wrong_tokens_are_slowed_one_after_the_other_and_right_ones_are_not() {
    let console = console(&live(1), Some("right-token"));
    let bearer = |token: &str| {
        let field = format!("Authorization: Bearer {token}\r\n");
        ask(&console, "/api/snapshot", &field).0
    };
    let start = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| assert_eq!(bearer("wrong-token"), 401));
        }
        // Where others guess, whoever knows it is not held up.
        std::thread::sleep(QUICK.wrong_token / 2);
        assert_eq!(bearer("right-token"), 200);
        let right = start.elapsed();
        assert!(right < 4 * QUICK.wrong_token, "{right:?}");
    });
    let all = start.elapsed();
    assert!(all >= 5 * QUICK.wrong_token, "{all:?}");
}
