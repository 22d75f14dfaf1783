//! HTTPS: what is served, and clients that do not speak it, or not to the end.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::*;

/// A PEM file of these bytes.
fn file(directory: &Path, name: &str, label: &str, der: &[u8]) -> Pem {
    let path = directory.join(name);
    let text = format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        STANDARD.encode(der)
    );
    std::fs::write(&path, text).unwrap();
    Pem::read(&path).unwrap()
}

/// Certificate, its file, and the file of its key.
fn identity(directory: &Path, name: &str) -> (CertificateDer<'static>, Pem, Pem) {
    let names = vec!["localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let der = made.cert.der().clone();
    let certificate = file(directory, &format!("{name}.crt"), "CERTIFICATE", &der);
    let key = made.signing_key.serialize_der();
    let key = file(directory, &format!("{name}.key"), "PRIVATE KEY", &key);
    (der, certificate, key)
}

/// A console by HTTPS, and the certificate to trust.
fn secure(token: Option<&str>) -> (Console, CertificateDer<'static>) {
    let directory = tempfile::tempdir().unwrap();
    let (trusted, certificate, key) = identity(directory.path(), "one");
    let options = ConsoleOptions {
        listen: "127.0.0.1:0".into(),
        token: token.map(str::to_owned),
        tls: Some(Tls::new(&certificate, &key).unwrap()),
        ..ConsoleOptions::default()
    };
    let console = Console::start_with(&options, Arc::new(live(3)), QUICK).unwrap();
    (console, trusted)
}

fn client(
    console: &Console,
    trusted: &CertificateDer<'static>,
) -> StreamOwned<ClientConnection, Socket> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, connect(console))
}

fn ask_secure(
    console: &Console,
    trusted: &CertificateDer<'static>,
    target: &str,
) -> (u16, String, String) {
    let mut stream = client(console, trusted);
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    split(&String::from_utf8(answer).unwrap())
}

#[test]
fn page_api_stream_and_metrics_come_by_https() {
    let (console, trusted) = secure(Some("s3cret-token"));
    assert!(console.url().starts_with("https://127.0.0.1:"));
    assert_eq!(ask_secure(&console, &trusted, "/api/snapshot").0, 401);
    let (status, head, _) = ask_secure(&console, &trusted, "/?token=s3cret-token");
    assert_eq!(status, 303);
    assert!(head.contains("; secure\r\n"), "{head}");

    let (console, trusted) = secure(None);
    for (target, has) in [
        ("/", "<!doctype html>"),
        ("/api/snapshot", "veth0"),
        ("/metrics", "linkweir_http_requests_total"),
    ] {
        let (status, _, body) = ask_secure(&console, &trusted, target);
        assert!(status == 200 && body.contains(has), "{target}: {body}");
    }
    let mut stream = client(&console, &trusted);
    write!(
        stream,
        "GET /api/stream?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    .unwrap();
    let events = BufReader::new(stream).lines().map_while(Result::ok);
    let ids: Vec<String> = events
        .filter(|line| line.starts_with("id: "))
        .take(3)
        .collect();
    assert_eq!(ids, ["id: 1", "id: 2", "id: 3"]);
}

#[test]
fn who_does_not_speak_tls_is_told_and_who_stops_in_between_is_closed() {
    let (console, trusted) = secure(None);
    let (status, _, body) = ask(&console, "/api/snapshot", "");
    assert_eq!(status, 400);
    assert_eq!(body, "this console is served by TLS: use https://\r\n");
    // Nothing, the begin of a record, the begin of a hello.
    let silent: Vec<Socket> = [&b""[..], b"\x16\x03", b"\x16\x03\x01\x02\x00\x01\x00"]
        .into_iter()
        .map(|bytes| {
            let mut socket = connect(&console);
            socket.write_all(bytes).unwrap();
            socket
        })
        .collect();
    // They hold up nobody.
    assert_eq!(ask_secure(&console, &trusted, "/healthz").0, 200);
    for mut socket in silent {
        let mut rest = Vec::new();
        // Closed by the console, long before this socket gives up.
        let ended = socket.read_to_end(&mut rest);
        assert!(
            !matches!(&ended, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
            "{ended:?}"
        );
    }
    // Behind the handshake the head has the same time.
    let mut late = client(&console, &trusted);
    late.write_all(b"GET / HTTP/1.1\r\nHost: lo").unwrap();
    let mut answer = Vec::new();
    late.read_to_end(&mut answer).ok();
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 408"),
        "{answer}"
    );
}

#[test]
fn files_that_cannot_serve_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let (_, certificate, key) = identity(directory.path(), "one");
    let (_, _, other) = identity(directory.path(), "two");
    let sealed = file(
        directory.path(),
        "sealed",
        "ENCRYPTED PRIVATE KEY",
        b"secret",
    );
    let broken = file(directory.path(), "broken", "CERTIFICATE", b"no certificate");
    let says = |certificate: &Pem, key: &Pem| Tls::new(certificate, key).unwrap_err().to_string();
    for (certificate, key, why) in [
        (&key, &key, "one.key: no certificate in PEM"),
        (&certificate, &certificate, "one.crt: no private key in PEM"),
        (
            &certificate,
            &sealed,
            "sealed: the private key is encrypted",
        ),
        (&certificate, &other, "is not that of the first certificate"),
        (&broken, &key, "broken with the key in"),
    ] {
        let said = says(certificate, key);
        assert!(said.contains(why), "{said}");
    }
    assert!(!format!("{key:?}").contains("bytes"), "a key is not shown");
    assert!(Pem::read(&directory.path().join("none")).is_err());
    let large = directory.path().join("large");
    std::fs::write(&large, vec![b' '; (1 << 20) + 1]).unwrap();
    assert!(Pem::read(&large).is_err());
}
