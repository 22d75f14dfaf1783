//! A server that does everything wrong, each wrong on a port of its own.
//!
//! What happens to segments on their way is done to the server from outside: see
//! [`Net::lose`](super::Net::lose) and [`Net::swallow`](super::Net::swallow).

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// A port where nothing listens: connections are refused.
pub const REFUSED: u16 = 7000;
/// Longest request that is read.
const LONGEST_REQUEST: u64 = 64 * 1024;
/// Between the bytes of [`Hostile::Drip`].
const BETWEEN_BYTES: Duration = Duration::from_millis(100);

/// What the server does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hostile {
    /// Resets the connection when the request has come.
    Reset,
    /// Resets it after a part of the body.
    ResetAmid,
    /// Takes the request and says nothing.
    Silent,
    /// Stops after a part of the body, with the connection open.
    Stall,
    /// Answers with bytes that are no HTTP.
    Garbage,
    /// Closes without an answer.
    Early,
    /// Closes before all of the body that `Content-Length` promised (RFC 9112 sec. 8).
    Short,
    /// Sends more than `Content-Length` promised.
    Long,
    /// Sends fields of a head without end.
    EndlessHead,
    /// Sends a body without end and without a length.
    EndlessBody,
    /// Sends interim responses (1xx) without end.
    EndlessInterim,
    /// Sends a byte of its answer now and then.
    Drip,
    /// Says a size of a chunk that is not a number (RFC 9112 sec. 7.1).
    BadChunk,
    /// Says two different lengths (RFC 9112 sec. 6.3).
    TwoLengths,
    /// Says a length that no computer has.
    HugeLength,
    /// Answers well and ends its stream, but never closes the connection: that is not a fault.
    HalfClose,
}

impl Hostile {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Reset,
        Self::ResetAmid,
        Self::Silent,
        Self::Stall,
        Self::Garbage,
        Self::Early,
        Self::Short,
        Self::Long,
        Self::EndlessHead,
        Self::EndlessBody,
        Self::EndlessInterim,
        Self::Drip,
        Self::BadChunk,
        Self::TwoLengths,
        Self::HugeLength,
        Self::HalfClose,
    ];

    /// Its port.
    #[must_use]
    pub fn port(self) -> u16 {
        let before = Self::ALL.iter().take_while(|other| **other != self).count();
        REFUSED + 1 + u16::try_from(before).unwrap_or(0)
    }

    /// Serves one connection until one of both has had enough.
    fn serve(self, stream: &mut TcpStream) -> io::Result<()> {
        if matches!(self, Self::Reset | Self::ResetAmid) {
            // What was received and never read makes the kernel reset the connection (RFC 2525 sec.
            // 2.17), so it is looked at and left.
            stream.peek(&mut [0])?;
            if self == Self::ResetAmid {
                stream.write_all(&answer("Content-Length: 1000\r\n", 100))?;
            }
            return Ok(());
        }
        read_request(stream)?;
        match self {
            Self::Reset | Self::ResetAmid | Self::Early => return Ok(()),
            Self::Silent => {}
            Self::Stall => stream.write_all(&answer("Content-Length: 1000\r\n", 100))?,
            Self::Garbage => return stream.write_all(&noise(300)),
            Self::Short => return stream.write_all(&answer("Content-Length: 1000\r\n", 100)),
            Self::Long => stream.write_all(&answer("Content-Length: 10\r\n", 200))?,
            Self::EndlessHead => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
                return repeat(stream, b"X-Field: and there will be another one\r\n");
            }
            Self::EndlessBody => {
                stream.write_all(&answer("Connection: close\r\n", 0))?;
                return repeat(stream, &[b'b'; 1000]);
            }
            Self::EndlessInterim => return repeat(stream, b"HTTP/1.1 102 Processing\r\n\r\n"),
            Self::Drip => {
                for byte in answer("Content-Length: 1000000\r\n", 1_000_000) {
                    stream.write_all(&[byte])?;
                    pause(BETWEEN_BYTES);
                }
            }
            Self::BadChunk => {
                let mut bytes = answer("Transfer-Encoding: chunked\r\n", 0);
                bytes.extend(b"5\r\nhello\r\nno number\r\n");
                stream.write_all(&bytes)?;
            }
            Self::TwoLengths => {
                stream.write_all(&answer("Content-Length: 5\r\nContent-Length: 7\r\n", 7))?;
            }
            Self::HugeLength => {
                let length = "Content-Length: 99999999999999999999999999\r\n";
                stream.write_all(&answer(length, 10))?;
            }
            Self::HalfClose => {
                stream.write_all(&answer("Content-Length: 10\r\n", 10))?;
                stream.shutdown(Shutdown::Write)?;
            }
        }
        // Until the other side goes.
        io::copy(stream, &mut io::sink()).map(|_| ())
    }
}

/// Listens on the ports of all of them, and serves for ever.
///
/// # Errors
/// An address is in use.
pub fn serve(address: IpAddr) -> io::Result<()> {
    let listen = |hostile: Hostile| TcpListener::bind((address, hostile.port()));
    let listeners: io::Result<Vec<_>> = Hostile::ALL.into_iter().map(listen).collect();
    let listeners = listeners?;
    std::thread::scope(|scope| {
        for (hostile, listener) in Hostile::ALL.into_iter().zip(&listeners) {
            scope.spawn(move || {
                for stream in listener.incoming() {
                    let Ok(mut stream) = stream else { continue };
                    // What the other side says to it is of no interest here.
                    std::thread::spawn(move || drop(hostile.serve(&mut stream)));
                }
            });
        }
    });
    Ok(())
}

/// Takes a request up to the end of its head.
fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    let mut left = stream.take(LONGEST_REQUEST);
    while !head.ends_with(b"\r\n\r\n") {
        let length = left.read(&mut piece)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend(piece.iter().take(length));
    }
    Ok(())
}

/// A head with these lines, and so many bytes behind it.
fn answer(lines: &str, body: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nServer: hostile\r\n{lines}\r\n");
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + body, b'b');
    bytes
}

/// Bytes in which nothing is a line of HTTP.
fn noise(length: usize) -> Vec<u8> {
    let bytes = (0..=u8::MAX).map(|index| index.wrapping_mul(37) | 0x80);
    bytes.cycle().take(length).collect()
}

/// Sends the same until nobody takes it any more.
fn repeat(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    let many = piece.repeat(16);
    loop {
        stream.write_all(&many)?;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a slow sender is what is asked for"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// What a client that sends a request and closes its side sees until the end.
    fn seen(hostile: Hostile) -> (Vec<u8>, io::Result<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            drop(hostile.serve(&mut stream));
        });
        let client = TcpStream::connect(address).unwrap();
        (&client)
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        // One that resets may have done so by now.
        drop(client.shutdown(Shutdown::Write));
        let mut bytes = Vec::new();
        let end = (&client).take(100_000).read_to_end(&mut bytes);
        drop(client);
        server.join().unwrap();
        (bytes, end.map(|_| ()))
    }

    #[test]
    fn every_one_has_a_port_of_its_own() {
        let ports: std::collections::BTreeSet<u16> =
            Hostile::ALL.into_iter().map(Hostile::port).collect();
        assert_eq!(ports.len(), Hostile::ALL.len());
        assert!(!ports.contains(&REFUSED));
    }

    #[test]
    fn resets_are_resets_and_ends_are_ends() {
        for hostile in [Hostile::Reset, Hostile::ResetAmid] {
            let error = seen(hostile).1.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{hostile:?}");
        }
        for hostile in [Hostile::Early, Hostile::Silent] {
            let (bytes, end) = seen(hostile);
            assert!(bytes.is_empty() && end.is_ok(), "{hostile:?}");
        }
    }

    #[test]
    fn lengths_are_as_wrong_as_they_are_called() {
        let body = |hostile| {
            let (bytes, end) = seen(hostile);
            end.unwrap();
            let text = String::from_utf8(bytes).unwrap();
            text.split_once("\r\n\r\n").unwrap().1.len()
        };
        assert_eq!(body(Hostile::Short), 100);
        assert_eq!(body(Hostile::Stall), 100);
        assert_eq!(body(Hostile::Long), 200);
        assert_eq!(body(Hostile::HalfClose), 10);
    }

    #[test]
    fn what_has_no_end_goes_on() {
        for hostile in [
            Hostile::EndlessHead,
            Hostile::EndlessBody,
            Hostile::EndlessInterim,
        ] {
            assert_eq!(seen(hostile).0.len(), 100_000, "{hostile:?}");
        }
        assert!(seen(Hostile::Garbage).0.iter().all(|byte| *byte >= 0x80));
    }
}
