//! `linkweir gateway`: keywords and file names end the connection that carries them.

use super::site;

use std::fs;

use linkweir_testkit::gateway::Place;
use linkweir_testkit::peers;
use site::{CURL_RESET, Site, at, ended, noise, same, url};

const KEYWORDS: &str = r#"
[[rule]]
name = "secrets"
application = ["http", "msn", "fasttrack"]
action = "inspect"
keywords = ["secret plan", "Übernahme"]
"#;

/// What a client uploads, cut at every place of the keyword and once in the middle of everything.
#[test]
fn a_keyword_in_two_segments() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(KEYWORDS);
    let body = "all of it: the SECRET Plan is this and that";
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let text = format!("{head}{body}");
    let keyword = text.find("SECRET").unwrap();
    let cuts = [keyword + 1, keyword + 5, keyword + 10];
    for cut in cuts {
        let cut = cut.to_string();
        let words = [
            "fetch",
            "raw",
            "--connect",
            &at(80),
            "--out",
            "out",
            "--say",
            &text,
        ];
        let words = [&words[..], &["--split", &cut, "--pause", "30"]].concat();
        let (code, said) = site.fetch(&words);
        assert_eq!(code, peers::RESET, "cut at {cut}: {said}");
    }
    let harmless = text.replace("SECRET", "S3CRET");
    let words = [
        "fetch",
        "raw",
        "--connect",
        &at(80),
        "--out",
        "out",
        "--say",
        &harmless,
    ];
    let (code, said) = site.fetch(&words);
    assert_eq!(code, peers::COMPLETE, "{said}");
    let events = gateway.end();
    let found = events.of("keyword");
    assert_eq!(found.len(), cuts.len(), "one each: {found:#?}");
    for event in found {
        assert_eq!(event["detail"], "secret plan", "{event:#}");
        assert_eq!(event["action"], "reject", "{event:#}");
        assert_eq!(event["application"], "http", "{event:#}");
    }
}

#[test]
fn keywords_in_files_plain_and_coded() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(KEYWORDS);
    let mut text = b"one line like every other\n".repeat(9000);
    site.nginx.put("harmless", &text).unwrap();
    let middle = text.len() / 2;
    text.splice(middle..middle, "die \u{fc}bernahme ist beschlossen".bytes());
    let file = site.nginx.put("takeover", &text).unwrap();
    for path in ["plain", "chunked", "gzip"] {
        let path = format!("{path}/takeover");
        let (code, out) = site.curl(0, &url(&path), "out", &["--compressed"]);
        assert_eq!(code, CURL_RESET, "{path}");
        let came = fs::read(&out).unwrap_or_default();
        assert!(came.len() <= middle + 12, "{path}: {}", came.len());
    }
    let (code, _) = site.curl(0, &url("gzip/harmless"), "out", &["--compressed"]);
    assert_eq!(code, 0);
    let server = [
        "serve",
        "fasttrack",
        "--listen",
        &at(4100),
        "--file",
        file.to_str().unwrap(),
    ];
    let _server = site.serve(Place::Server, &server);
    let words = ["fetch", "fasttrack", "--connect", &at(4100), "--out", "out"];
    assert_eq!(site.fetch(&words).0, peers::RESET);
    let events = gateway.end();
    assert_eq!(events.of("keyword").len(), 4, "{:#?}", events.of("keyword"));
}

#[test]
fn a_keyword_in_a_conversation() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(KEYWORDS);
    let address = at(1863);
    let _board = site.serve(Place::Server, &["serve", "msn", "--listen", &address]);
    let bob = [
        "chat",
        "--connect",
        &address,
        "--as",
        "bob@example.test",
        "--answer",
        "--hear",
        "2",
    ];
    let mut bob = site.peer(Place::Server, &bob);
    let bob = linkweir_testkit::netns::Running::start(bob.stdout(std::process::Stdio::piped()));
    let words = [
        "chat",
        "--connect",
        &address,
        "--as",
        "alice@example.test",
        "--to",
        "bob@example.test",
        "--say",
        "good morning",
        "--say",
        "here is the secret plan",
        "--hear",
        "1",
        "--chunk",
        "16",
        "--pause",
        "2",
    ];
    let (code, said) = site.fetch(&words);
    assert_eq!(code, peers::RESET, "{said}");
    let bob = bob.unwrap();
    bob.signal("TERM").unwrap();
    let (_, heard) = ended(&bob.output().unwrap());
    assert!(
        heard.contains("heard alice@example.test: good morning"),
        "{heard}"
    );
    assert!(!heard.contains("secret plan"), "{heard}");
    let events = gateway.end();
    let event = events.one("keyword", "application", "msn");
    assert_eq!(event["sender"], "client", "{event:#}");
}

#[test]
fn names_of_files() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = r#"
        [[rule]]
        name = "programs"
        application = ["http", "fasttrack", "gnutella"]
        action = "inspect"
        file-names = ["*.exe", "crack*"]
    "#;
    let gateway = site.gateway(policy);
    let bytes = noise(120_001);
    for name in ["setup.exe", "SETUP.EXE", "setup.txt", "cracked.zip", "exe"] {
        site.nginx.put(name, &bytes).unwrap();
    }
    let refused = [
        "plain/setup.exe",
        "plain/SETUP.EXE",
        "plain/setup%2Eexe?version=2",
        "chunked/cracked.zip",
        // In Content-Disposition it is a program.
        "named/setup.txt",
    ];
    for path in refused {
        let (code, out) = site.curl(0, &url(path), "out", &[]);
        assert_eq!(code, CURL_RESET, "{path}");
        let came = fs::read(out).unwrap_or_default();
        assert!(came.len() < bytes.len(), "{path}");
    }
    for path in [
        "plain/setup.txt",
        "plain/exe",
        "plain/setup.txt?not=setup.exe",
    ] {
        let (code, out) = site.curl(0, &url(path), "out", &[]);
        assert_eq!(code, 0, "{path}");
        same(&out, &bytes);
    }
    for (number, protocol) in ["fasttrack", "gnutella"].into_iter().enumerate() {
        let port = 4200 + 2 * u16::try_from(number).unwrap();
        for (port, name, expected) in [
            (port, "song.mp3", peers::COMPLETE),
            (port + 1, "Song.Exe", peers::RESET),
        ] {
            let file = site.put(name, &bytes);
            let words = [
                "serve",
                protocol,
                "--listen",
                &at(port),
                "--file",
                file.to_str().unwrap(),
            ];
            let _server = site.serve(Place::Server, &words);
            let words = ["fetch", protocol, "--connect", &at(port), "--out", "out"];
            let (code, said) = site.fetch(&words);
            assert_eq!(code, expected, "{protocol} {name}: {said}");
        }
    }
    let events = gateway.end();
    let named = events.of("file_name");
    assert_eq!(named.len(), refused.len() + 2, "{named:#?}");
    events.one("file_name", "file_name", "report.exe");
    events.one("file_name", "file_name", "cracked.zip");
}

/// With `event`, what is found is said and passes.
#[test]
fn a_match_may_be_only_an_event() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = format!("{KEYWORDS}on-match = \"event\"\nfile-names = [\"*.txt\"]\n");
    let gateway = site.gateway(&policy);
    let mut text = noise(200_000);
    text.splice(100_000..100_000, *b"Secret Plan");
    site.nginx.put("note.txt", &text).unwrap();
    let (code, out) = site.curl(0, &url("plain/note.txt"), "out", &[]);
    assert_eq!(code, 0);
    same(&out, &text);
    let events = gateway.end();
    events.one("keyword", "detail", "secret plan");
    events.one("file_name", "file_name", "note.txt");
}
