//! The honest ends: programs on the TCP of the kernel, which write down what they read.
//!
//! The first message of a TLS client, with a server name that a policy may be about.
//!
//! Source: RFC 8446 sec. 4.1.2 and 5.1, RFC 6066 sec. 3.

use super::Part;
use linkweir_sys::wait::{monotonic_ns, readable};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a client waits for an answer to its SYN, and a server for a client.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Longest that an end reads altogether.
const LONGEST: Duration = Duration::from_secs(10);
const REQUEST: &[u8] = b"GET /file HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Clients that ask hostile servers.
pub(super) fn ask(parts: &[Part], is_ready: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    is_ready()?;
    thread::scope(|scope| {
        for part in parts {
            scope.spawn(move || {
                // What breaks a connection is what the rows are about.
                let asked = TcpStream::connect_timeout(&part.server, TIMEOUT)
                    .and_then(|mut stream| stream.write_all(REQUEST).map(|()| stream))
                    .and_then(|stream| read(stream, part, false));
                drop(asked);
            });
        }
    });
    Ok(())
}

/// Servers that hostile clients ask.
pub(super) fn serve(parts: &[Part], is_ready: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let (by_udp, by_tcp): (Vec<&Part>, Vec<&Part>) =
        parts.iter().partition(|part| part.row.has_datagrams());
    let addresses: BTreeSet<SocketAddr> = by_udp.iter().map(|part| part.server).collect();
    let sockets: io::Result<Vec<_>> = addresses.into_iter().map(UdpSocket::bind).collect();
    let sockets = sockets?;
    let listeners: io::Result<Vec<_>> = by_tcp
        .into_iter()
        .map(|part| TcpListener::bind(part.server).map(|listener| (part, listener)))
        .collect();
    let listeners = listeners?;
    is_ready()?;
    thread::scope(|scope| {
        for socket in &sockets {
            // One that fails has read less.
            scope.spawn(|| drop(read_datagrams(socket, &by_udp)));
        }
        for (part, listener) in listeners {
            scope.spawn(move || {
                // A client that never came is what a row may be about.
                if readable(&listener, TIMEOUT).is_ok_and(|came| came) {
                    let served = listener
                        .accept()
                        .and_then(|(stream, _)| read(stream, part, true));
                    drop(served);
                }
            });
        }
    });
    Ok(())
}

/// Writes each datagram to what is of its client, until silence.
fn read_datagrams(socket: &UdpSocket, parts: &[&Part]) -> io::Result<()> {
    socket.set_read_timeout(Some(SILENCE))?;
    let local = socket.local_addr()?;
    let mut buffer = [0; 65_536];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        let is_of = |part: &&&Part| part.server == local && part.client_port == from.port();
        if let Some(part) = parts.iter().find(is_of) {
            let mut out = File::options().create(true).append(true).open(&part.out)?;
            out.write_all(buffer.get(..length).unwrap_or_default())?;
        }
    }
}

/// Reads until the end, a reset or silence; answers a head.
fn read(mut stream: TcpStream, part: &Part, answers: bool) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut out = File::create(&part.out)?;
    let end = monotonic_ns().saturating_add(linkweir_wire::nanos(LONGEST));
    let mut buffer = [0; 65_536];
    let mut last = Vec::new();
    while monotonic_ns() < end {
        let length = stream.read(&mut buffer)?;
        let came = buffer.get(..length).unwrap_or_default();
        if came.is_empty() {
            break;
        }
        out.write_all(came)?;
        last.extend(came);
        if answers && last.ends_with(b"\r\n\r\n") {
            stream.write_all(ANSWER)?;
        }
        last.drain(..last.len().saturating_sub(3));
    }
    Ok(())
}

/// How it is put on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Bytes of a record at most.
    pub record: usize,
    /// Bytes of an unknown extension before the name.
    pub before: usize,
    /// The lower byte of the version of its records.
    pub minor: u8,
    /// Whether a record without bytes comes before each.
    pub has_empty: bool,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            record: 1 << 14,
            before: 0,
            minor: 1,
            has_empty: false,
        }
    }
}

/// A `ClientHello` in records.
pub(super) fn hello(name: &[u8], form: Form) -> Vec<u8> {
    let host = [&[0][..], &vector(name)].concat();
    let names = [&[0, 0][..], &vector(&vector(&host))].concat();
    let before = [&[0xfa, 0xfa][..], &vector(&vec![0; form.before])].concat();
    // Behind the name, so that who has it all has the name too.
    let behind = [&[0xfb, 0xfb][..], &vector(&[0; 32])].concat();
    let extensions = vector(&[before, names, behind].concat());
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &vector(&[0x13, 1]),
        &[1, 0],
        &extensions,
    ]
    .concat();
    let message = [&[1, 0][..], &vector(&body)].concat();
    let record = |bytes: &[u8]| [&[22, 3, form.minor][..], &vector(bytes)].concat();
    let mut all = Vec::new();
    for part in message.chunks(form.record.max(1)) {
        if form.has_empty {
            all.extend(record(&[]));
        }
        all.extend(record(part));
    }
    all
}

/// Bytes behind their length in two bytes.
fn vector(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}
