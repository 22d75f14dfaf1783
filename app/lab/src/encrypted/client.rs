//! A client of HTTP/1.1 over TLS with a clock of its own: a process in the clients' namespace.
//!
//! It trusts the certificate in the directory where it is started. Each connection asks one thing after the other. It notes when the first byte of a request is written, and when the
//! first and the last byte of its response have been read and decrypted.

use super::HOST;
use super::server::CERTIFICATE;
use linkweir_sys::wait::wall_clock_ns;
use linkweir_testkit::gateway::SERVER;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, KeyLogFile, RootCertStore, StreamOwned, version};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Connections at a time. Every second one speaks TLS 1.2.
const CONNECTIONS: usize = 8;
/// Requests of a connection before the next begins.
const PER_CONNECTION: usize = 25;
/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest head of a response, bytes.
const LONGEST_HEAD: usize = 64 << 10;

/// What the clock says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Its number.
    pub id: u64,
    /// Nanoseconds from the first byte of the request to the first of its response, where the clock says that.
    pub first_ns: Option<u64>,
    /// To the last.
    pub last_ns: u64,
}

/// The same, and of a stream the events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Heard {
    /// The times of request and response.
    #[serde(flatten)]
    pub reading: Reading,
    /// Nanoseconds from the first byte of the request to the end of each event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events_ns: Vec<u64>,
}

/// Asks for what the plan says, a line for each request: its path, and the bytes of its body, if it has one. Writes the
/// readings as JSON lines; secrets go to the file that `SSLKEYLOGFILE` names.
///
/// # Errors
/// The server does not answer, or the file cannot be written.
pub fn run(plan: &str, out: &Path) -> io::Result<()> {
    let asks: Vec<(&str, Option<usize>)> = plan.lines().filter_map(ask).collect();
    let lanes: Vec<Vec<_>> = (0..CONNECTIONS)
        .map(|lane| {
            asks.iter()
                .copied()
                .skip(lane)
                .step_by(CONNECTIONS)
                .collect()
        })
        .collect();
    let readings: Vec<io::Result<Vec<Heard>>> = thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter()
            .enumerate()
            .map(|(number, lane)| scope.spawn(move || one_lane(lane, number)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
        });
        ended.collect()
    });
    let mut file = BufWriter::new(File::create(out)?);
    for lane in readings {
        for reading in lane? {
            serde_json::to_writer(&mut file, &reading)?;
            file.write_all(b"\n")?;
        }
    }
    file.flush()
}

fn ask(line: &str) -> Option<(&str, Option<usize>)> {
    let mut words = line.split(' ');
    let path = words.next().filter(|path| !path.is_empty())?;
    Some((path, words.next().and_then(|bytes| bytes.parse().ok())))
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn one_lane(asks: &[(&str, Option<usize>)], number: usize) -> io::Result<Vec<Heard>> {
    let config = Arc::new(config(number)?);
    let mut readings = Vec::new();
    for asks in asks.chunks(PER_CONNECTION) {
        let mut stream = connect(&config)?;
        for (path, body) in asks {
            readings.push(exchange(&mut stream, path, *body)?);
        }
        // A server may have said so before; what was asked for is there.
        stream.conn.send_close_notify();
        drop(stream.flush());
    }
    Ok(readings)
}

fn config(number: usize) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(CERTIFICATE).map_err(io::Error::other)?;
    roots.add(certificate).map_err(io::Error::other)?;
    let versions: &[_] = match number % 2 {
        0 => &[&version::TLS13],
        _ => &[&version::TLS12],
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(versions);
    let builder = builder.map_err(io::Error::other)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(config)
}

fn connect(config: &Arc<ClientConfig>) -> io::Result<Stream> {
    let mut socket = TcpStream::connect((SERVER, 443))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let name = ServerName::try_from(HOST).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::clone(config), name);
    let mut connection = connection.map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(connection, socket))
}

/// One request and its response.
fn exchange(stream: &mut Stream, path: &str, body: Option<usize>) -> io::Result<Heard> {
    let head = match body {
        None => format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"),
        Some(bytes) => {
            format!("POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {bytes}\r\n\r\n")
        }
    };
    let mut request = head.into_bytes();
    request.resize(request.len() + body.unwrap_or(0), b'b');
    let began = wall_clock_ns();
    stream.write_all(&request)?;
    stream.flush()?;
    let mut buffer = vec![0; 64 << 10];
    let mut reading = Reading::default();
    let mut events_ns = Vec::new();
    let mut head = Vec::new();
    let (body, mut rest) = loop {
        let count = some(stream.read(&mut buffer)?)?;
        reading
            .first_ns
            .get_or_insert_with(|| wall_clock_ns() - began);
        head.extend(buffer.iter().take(count));
        if let Some(found) = body_of(&head)? {
            break found;
        }
    };
    match body {
        Body::Bytes(bytes) => {
            let mut left = bytes.saturating_sub(rest.len());
            while left > 0 {
                left = left.saturating_sub(some(stream.read(&mut buffer)?)?);
            }
        }
        Body::Events => loop {
            // Two line ends are the end of an event, and one chunk is one event, whatever is cut where.
            let ends = rest.windows(2).filter(|two| two == b"\n\n").count();
            let now = wall_clock_ns() - began;
            events_ns.resize(ends, now);
            if rest.ends_with(b"\r\n0\r\n\r\n") {
                break;
            }
            let count = some(stream.read(&mut buffer)?)?;
            rest.extend(buffer.iter().take(count));
        },
    }
    reading.id = super::plan::number(path)
        .or_else(|| super::events::number(path))
        .unwrap_or(0);
    reading.last_ns = wall_clock_ns() - began;
    Ok(Heard { reading, events_ns })
}

fn some(count: usize) -> io::Result<usize> {
    match count {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

/// How the body of a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Bytes(usize),
    /// With the last chunk of a stream of events.
    Events,
}

/// What the body is, and what of it is there already, once the whole head is.
fn body_of(bytes: &[u8]) -> io::Result<Option<(Body, Vec<u8>)>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some((head, rest)) = end.and_then(|end| bytes.split_at_checked(end + 4)) else {
        return match bytes.len() > LONGEST_HEAD {
            true => Err(io::Error::other("a response head without end")),
            false => Ok(None),
        };
    };
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let length = value("content-length:").and_then(|value| value.parse().ok());
    let body = match (length, value("content-type:")) {
        (Some(bytes), _) => Body::Bytes(bytes),
        (None, Some("text/event-stream")) => Body::Events,
        _ => return Err(io::Error::other("a response without a length")),
    };
    Ok(Some((body, rest.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_what_comes() {
        let body = |text: &str| body_of(text.as_bytes()).unwrap();
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Le"), None);
        let found = body("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").unwrap();
        assert_eq!(found, (Body::Bytes(5), b"ab".to_vec()));
        let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        assert_eq!(body(stream).unwrap().0, Body::Events);
        assert!(body_of(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert_eq!(ask("/d/1/2/3 40"), Some(("/d/1/2/3", Some(40))));
        assert_eq!(ask("/d/1/2/3"), Some(("/d/1/2/3", None)));
        assert_eq!(ask(""), None);
    }
}
