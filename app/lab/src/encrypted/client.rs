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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Its number.
    pub id: u64,
    /// Nanoseconds from the first byte of the request to the first of its response, where the clock says that.
    pub first_ns: Option<u64>,
    /// To the last.
    pub last_ns: u64,
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
    let readings: Vec<io::Result<Vec<Reading>>> = thread::scope(|scope| {
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

fn one_lane(asks: &[(&str, Option<usize>)], number: usize) -> io::Result<Vec<Reading>> {
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
fn exchange(stream: &mut Stream, path: &str, body: Option<usize>) -> io::Result<Reading> {
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
    let mut head = Vec::new();
    let mut first_ns = None;
    let mut left = loop {
        let count = some(stream.read(&mut buffer)?)?;
        first_ns.get_or_insert_with(|| wall_clock_ns() - began);
        head.extend(buffer.iter().take(count));
        if let Some(left) = behind_head(&head)? {
            break left;
        }
    };
    while left > 0 {
        let count = some(stream.read(&mut buffer)?)?;
        left = left.saturating_sub(count);
    }
    Ok(Reading {
        id: super::plan::number(path).unwrap_or(0),
        first_ns,
        last_ns: wall_clock_ns() - began,
    })
}

fn some(count: usize) -> io::Result<usize> {
    match count {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

/// Bytes of the body that are still to come, once the whole head is there.
fn behind_head(bytes: &[u8]) -> io::Result<Option<usize>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        return match bytes.len() > LONGEST_HEAD {
            true => Err(io::Error::other("a response head without end")),
            false => Ok(None),
        };
    };
    let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|value| value.trim().parse::<usize>().ok());
    let length = length.ok_or_else(|| io::Error::other("a response without a length"))?;
    Ok(Some(length.saturating_sub(bytes.len() - end - 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_what_is_to_come() {
        let left = |text: &str| behind_head(text.as_bytes()).unwrap();
        assert_eq!(left("HTTP/1.1 200 OK\r\nContent-Le"), None);
        assert_eq!(
            left("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
            Some(3)
        );
        assert!(behind_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert_eq!(ask("/d/1/2/3 40"), Some(("/d/1/2/3", Some(40))));
        assert_eq!(ask("/d/1/2/3"), Some(("/d/1/2/3", None)));
        assert_eq!(ask(""), None);
    }
}
