//! An HTTP/1.1 client on one connection that is kept.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

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
    fn quantiles() {
        let sorted: Vec<u64> = (0..=100).collect();
        assert_eq!(quantile(&sorted, 0.5), 50);
        assert_eq!(quantile(&sorted, 0.99), 99);
        assert_eq!(quantile(&sorted, 1.0), 100);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
