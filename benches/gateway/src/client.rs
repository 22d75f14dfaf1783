//! An HTTP/1.1 client on one connection that is kept.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};

/// How long anything may take before it is an error.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a server, and the request that is sent on it.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    line: Vec<u8>,
    body: Vec<u8>,
}

impl Client {
    /// Connects; `path` is what every [`Client::get`] asks for.
    ///
    /// # Errors
    /// The server does not take the connection.
    pub fn connect(server: SocketAddr, path: &str) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&server, TIMEOUT).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self {
            // The least that still takes a head at once: there are ten thousand of these.
            stream: BufReader::with_capacity(1024, stream),
            request: format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n").into_bytes(),
            line: Vec::new(),
            body: Vec::new(),
        })
    }

    /// Asks once and reads the whole answer; the length of its body in bytes.
    ///
    /// # Errors
    /// The connection ends, or the answer is not `200` with a `Content-Length`.
    pub fn get(&mut self) -> Result<usize> {
        self.stream.get_mut().write_all(&self.request)?;
        let mut length = None;
        let mut is_first = true;
        loop {
            self.line.clear();
            self.stream.read_until(b'\n', &mut self.line)?;
            let line = str::from_utf8(&self.line).context("an answer that is no text")?;
            let line = line.trim_end();
            if is_first && !line.starts_with("HTTP/1.1 200 ") {
                bail!("the answer is `{line}`");
            }
            is_first = false;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
        let length = length.context("no Content-Length")?;
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(length)
    }
}

/// Downloads a file over a connection of its own, from an address of this host; bytes of the body are given to `count`
/// as they come, and where that says no, the rest is left. Whether all came.
///
/// # Errors
/// The connection fails, or the answer is not `200` with as many bytes as its `Content-Length` says.
pub fn download(
    client: Ipv4Addr,
    server: SocketAddrV4,
    path: &str,
    mut count: impl FnMut(u64) -> bool,
) -> Result<bool> {
    /// Bytes taken at a time.
    const BLOCK: usize = 64 << 10;
    let socket = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    bind(
        std::os::fd::AsRawFd::as_raw_fd(&socket),
        &SockaddrIn::from(SocketAddrV4::new(client, 0)),
    )?;
    connect(
        std::os::fd::AsRawFd::as_raw_fd(&socket),
        &SockaddrIn::from(server),
    )?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut stream = BufReader::with_capacity(BLOCK, stream);
    let mut line = String::new();
    let mut left: Option<u64> = None;
    stream.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200 ") {
        bail!("the answer is `{}`", line.trim_end());
    }
    while !line.trim_end().is_empty() {
        line.clear();
        stream.read_line(&mut line)?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            left = Some(value.trim().parse()?);
        }
    }
    let mut left = left.context("no Content-Length")?;
    while left > 0 {
        let came = stream.fill_buf()?.len();
        if came == 0 {
            bail!("{left} bytes are missing");
        }
        stream.consume(came);
        let came = u64::try_from(came)?;
        left = left.checked_sub(came).context("too many bytes")?;
        if !count(came) {
            return Ok(left == 0);
        }
    }
    Ok(true)
}

/// The value below which a part `q` of sorted figures lies; 0 where there are none.
#[must_use]
pub fn quantile(sorted: &[u64], q: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list, between 0 and its length"
    )]
    let at = (last as f64 * q).round() as usize;
    sorted.get(at.min(last)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Answers on one connection, a text per request.
    fn server(answers: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for answer in answers {
                while !lines.next().unwrap().unwrap().is_empty() {}
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn answers_are_read_to_their_end() {
        let address = server(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        ]);
        let mut client = Client::connect(address, "/").unwrap();
        assert_eq!(client.get().unwrap(), 5);
        assert_eq!(client.get().unwrap(), 0);
        let error = client.get().unwrap_err().to_string();
        assert!(error.contains("404"), "{error}");
    }

    #[test]
    fn a_download_is_whole_or_an_error() {
        let address = |answer| match server(answer) {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => unreachable!("bound to 127.0.0.1"),
        };
        let home = Ipv4Addr::LOCALHOST;
        let whole = address(&["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"]);
        let mut bytes = 0;
        let came = download(home, whole, "/", |more| {
            bytes += more;
            true
        });
        assert!(came.unwrap());
        assert_eq!(bytes, 5);
        let cut = address(&["HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"]);
        assert!(download(home, cut, "/", |_| true).is_err());
        let other = address(&["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]);
        assert!(download(home, other, "/", |_| true).is_err());
    }

    #[test]
    fn quantiles() {
        let sorted: Vec<u64> = (0..=100).collect();
        assert_eq!(quantile(&sorted, 0.5), 50);
        assert_eq!(quantile(&sorted, 0.99), 99);
        assert_eq!(quantile(&sorted, 1.0), 100);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
