//! `linkweir gateway`: rules by what a handshake of TLS shows, with nginx, curl and `openssl s_client`.

use super::site;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use linkweir_testkit::gateway::{Place, SERVER, client};
use linkweir_testkit::netns::Running;
use linkweir_testkit::web;
use site::{Site, at};

/// The second part of the JA4 is the hash of the sorted ciphers, of `00ff,c02f`.
const RULES: &str = r#"
[[rule]]
name = "hidden name"
ech = true
action = "reject"

[[rule]]
name = "one program"
ja4 = ["t12d02*_CIPHERS_*"]
action = "reject"

[[rule]]
name = "http2"
alpn = ["h2"]
action = "reject"

[[rule]]
name = "video"
certificate = ["*.video.example"]
action = "reject"

[[rule]]
name = "visible names"
ech = false
clients = ["10.88.1.14"]
action = "reject"
"#;
const CIPHER: &str = "ECDHE-RSA-AES128-GCM-SHA256";
/// curl's code for a handshake that was cut.
const CURL_TLS: i32 = 35;

/// nginx at port 443 with a certificate for each of two names.
fn server(site: &Site) -> Running {
    let directory = site.empty("tls");
    let mut servers = String::new();
    for (name, default) in [
        ("plain.example", " default_server"),
        ("www.video.example", ""),
    ] {
        let [key, certificate] = ["key", "pem"].map(|kind| {
            directory
                .join(format!("{name}.{kind}"))
                .display()
                .to_string()
        });
        let made = Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args(["-keyout", &key, "-out", &certificate])
            .args(["-subj", &format!("/CN={name}")])
            .args(["-addext", &format!("subjectAltName=DNS:{name}")])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success(), "{name}");
        servers += &format!(
            "server {{ listen {SERVER}:443 ssl http2{default}; server_name {name};
             ssl_certificate {certificate}; ssl_certificate_key {key};
             return 200 \"{name}\"; }}\n"
        );
    }
    let path = directory.display();
    let text = format!(
        "user root root; daemon off; master_process off; pid {path}/nginx.pid; events {{}}
         http {{ access_log off; {} ssl_protocols TLSv1.2 TLSv1.3; {servers} }}",
        web::temporary_paths(&directory)
    );
    let mut nginx = site.net.command(Place::Server, "nginx");
    web::nginx(&mut nginx, Path::new(&directory), &text).unwrap()
}

/// curl for one of the names: its code, and what came.
fn curl(site: &Site, number: u8, name: &str, words: &[&str]) -> (i32, String) {
    let out = site.path("out");
    drop(fs::remove_file(&out));
    let mut curl = site.net.command(Place::Client, "curl");
    curl.args([
        "-s",
        "-k",
        "-m",
        "15",
        "--interface",
        &client(number).to_string(),
    ])
    .args(["--resolve", &format!("{name}:443:{SERVER}"), "-o"])
    .arg(&out)
    .arg(format!("https://{name}/"));
    let code = curl.args(words).status().unwrap().code().unwrap();
    (code, fs::read_to_string(&out).unwrap_or_default())
}

/// Whether `openssl s_client` comes to the end of its handshake.
fn handshake(site: &Site, words: &[&str]) -> bool {
    let mut openssl = site.net.command(Place::Client, "openssl");
    openssl
        .args([
            "s_client",
            "-brief",
            "-connect",
            &at(443),
            "-servername",
            "plain.example",
        ])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    openssl.status().unwrap().success()
}

#[test]
fn handshakes_are_judged_by_what_they_show() {
    let Some(site) = Site::open(&["openssl"]) else {
        return;
    };
    let _server = server(&site);
    let gateway = site.gateway(&RULES.replace("CIPHERS", "b06afd972a5c"));
    let (old, new) = ("--tls-max 1.2 --http1.1", "--tlsv1.3 --http1.1");
    let words = |text: &'static str| -> Vec<&str> { text.split(' ').collect() };

    // What no rule is for: HTTP/1.1 by both versions, and extensions and ciphers of others.
    for version in [old, new] {
        let (code, came) = curl(&site, 0, "plain.example", &words(version));
        assert_eq!((code, came.as_str()), (0, "plain.example"), "{version}");
    }
    assert!(handshake(&site, &["-serverinfo", "65036"]));
    assert!(handshake(
        &site,
        &["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"]
    ));

    // An extension of this number with nothing in it: OpenSSL has no other.
    assert!(!handshake(&site, &["-serverinfo", "65037"]));
    assert!(!handshake(&site, &["-tls1_2", "-cipher", CIPHER]));
    assert_eq!(curl(&site, 0, "plain.example", &["--http2"]).0, CURL_TLS);
    assert_eq!(curl(&site, 0, "www.video.example", &words(old)).0, CURL_TLS);
    // TLS 1.3 encrypts the certificate.
    let (code, came) = curl(&site, 0, "www.video.example", &words(new));
    assert_eq!((code, came.as_str()), (0, "www.video.example"));
    assert_eq!(curl(&site, 3, "plain.example", &words(new)).0, CURL_TLS);

    let events = gateway.end();
    let why = |rule: &str| {
        let event = events.one("decided", "rule", rule);
        assert_eq!(
            (&event["application"], &event["action"]),
            (&"tls".into(), &"reject".into())
        );
        event["why"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(why("hidden name"), "ech=true");
    let ja4 = why("one program");
    assert!(ja4.starts_with("ja4=t12d02"), "{ja4}");
    assert!(ja4.ends_with("(t12d02*_b06afd972a5c_*)"), "{ja4}");
    assert_eq!(why("http2"), "alpn=h2");
    assert_eq!(
        why("video"),
        "certificate=www.video.example (*.video.example)"
    );
    let visible = why("visible names");
    assert!(visible.contains("ech=false"), "{visible}");
    let ech = &events.one("decided", "rule", "hidden name")["ech"];
    assert_eq!(ech, "true");
    assert_eq!(events.of("decided").len(), 10);
}
