//! HTTP requests to the services of others: an alert to a webhook, records to Elasticsearch.
//!
//! One request at a time, which waits: for threads of their own. Certificates are checked against the system's bundle where there
//! is one, else against Mozilla's roots.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use thiserror::Error;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Where distributions keep the certificates they trust.
const BUNDLES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// Longest body of a response that is read, bytes.
const MAX_RESPONSE: u64 = 16 << 20;

/// How long a connection without a request is kept.
const MAX_IDLE: Duration = Duration::from_secs(15);

/// The certificates to trust cannot be read.
#[derive(Debug, Error)]
#[error("certificates {path}: {message}")]
pub struct CertificatesError {
    /// The file.
    pub path: PathBuf,
    /// What was wrong.
    pub message: String,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The body, at most 16 MiB of it.
    pub body: Vec<u8>,
}

/// Whether a status code says that the same request may be taken later: too slow, too many, or a fault of the server's own (RFC 9110
/// sec. 15.5.9 and 15.6, RFC 8470 sec. 5.2, RFC 6585 sec. 4).
#[must_use]
pub const fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Sends requests; keeps connections open between them. It follows no redirect: that would send what it posts to somebody
/// the user has not named.
#[derive(Debug)]
pub struct Client {
    agent: ureq::Agent,
    fields: Vec<(&'static str, String)>,
    is_gzip: bool,
    /// Whether the last request had a response, so that the next may go over its connection.
    may_reuse: AtomicBool,
}

/// Whether a URL is `http://` or `https://` and names a host.
#[must_use]
pub fn is_http(url: &str) -> bool {
    url.parse::<ureq::http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    })
}

impl Client {
    /// A client whose requests take at most `timeout`, from the look-up of the name to the end of the response. It trusts the
    /// certificates of `ca_file` (PEM) instead of the system's.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate.
    pub fn new(timeout: Duration, ca_file: Option<&Path>) -> Result<Self, CertificatesError> {
        let roots = match ca_file {
            Some(path) => roots_of(path)?,
            None => BUNDLES
                .iter()
                .find_map(|path| roots_of(Path::new(path)).ok())
                .unwrap_or(RootCerts::WebPki),
        };
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("linkweir/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        Ok(Self {
            agent: ureq::Agent::new_with_config(config),
            fields: Vec::new(),
            is_gzip: false,
            may_reuse: AtomicBool::new(false),
        })
    }

    /// The same with a header field in every request.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: String) -> Self {
        self.fields.push((name, value));
        self
    }

    /// The same with compressed bodies (RFC 9110 sec. 8.4.1.3).
    #[must_use]
    pub const fn gzip(mut self) -> Self {
        self.is_gzip = true;
        self
    }

    /// A GET request.
    ///
    /// # Errors
    /// Why there is no response, for people.
    pub fn get(&self, url: &str) -> Result<Response, String> {
        self.sent(|idle| {
            let mut request = self.agent.get(url).config().max_idle_age(idle).build();
            for (name, value) in &self.fields {
                request = request.header(*name, value);
            }
            request.call()
        })
    }

    /// A POST request with a body of this type.
    ///
    /// # Errors
    /// Why there is no response, for people.
    pub fn post(&self, url: &str, content_type: &str, body: &[u8]) -> Result<Response, String> {
        let packed = match self.is_gzip {
            true => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                let packed = encoder
                    .write_all(body)
                    .and_then(|()| encoder.finish())
                    .map_err(|error| error.to_string())?;
                Some(packed)
            }
            false => None,
        };
        self.sent(|idle| {
            let request = self.agent.post(url).config().max_idle_age(idle).build();
            let mut request = request.content_type(content_type);
            for (name, value) in &self.fields {
                request = request.header(*name, value);
            }
            match &packed {
                Some(packed) => request.header("content-encoding", "gzip").send(&packed[..]),
                None => request.send(body),
            }
        })
    }

    /// Sends a request over a connection that is kept at most so long. A server may close one that it has kept at any time, also while
    /// the request is on its way (RFC 9112 sec. 9.3.1): the request is sent once more then, over a new one.
    fn sent(&self, send: impl Fn(Duration) -> Sent) -> Result<Response, String> {
        let was_kept = self.may_reuse.swap(false, Ordering::Relaxed);
        let first = send(MAX_IDLE);
        let result = match first {
            Err(error) if was_kept && is_closed(&error) => send(Duration::ZERO),
            first => first,
        };
        self.may_reuse.store(result.is_ok(), Ordering::Relaxed);
        response(result)
    }
}

/// How sending ends.
type Sent = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

/// Whether the connection was closed instead of a response.
fn is_closed(error: &ureq::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error, ureq::Error::Io(error) if matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    ))
}

fn response(result: Sent) -> Result<Response, String> {
    let mut response = result.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MAX_RESPONSE);
    let body = body.read_to_vec().map_err(|error| error.to_string())?;
    Ok(Response { status, body })
}

fn roots_of(path: &Path) -> Result<RootCerts, CertificatesError> {
    let fault = |message: String| CertificatesError {
        path: path.to_owned(),
        message,
    };
    let pem = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(fault("no certificate in PEM form".to_owned()));
    }
    Ok(RootCerts::from(certificates))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_server_that_closes_a_kept_connection_gets_every_request() {
        const REQUESTS: usize = 40;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut bodies = Vec::new();
            while bodies.len() < REQUESTS {
                let mut reader = BufReader::new(listener.accept().unwrap().0);
                let mut length = 0;
                let mut line = String::new();
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                bodies.push(body);
                // Nothing says that it closes, which it does when the next request is on its way.
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                reader.get_mut().write_all(answer).unwrap();
                if bodies.len() < REQUESTS {
                    let _next = reader.read(&mut [0]).unwrap();
                }
            }
            bodies
        });
        let client = Client::new(Duration::from_secs(5), None).unwrap();
        for n in 0..REQUESTS {
            let body = n.to_string();
            let response = client.post(&url, "text/plain", body.as_bytes());
            assert_eq!(response.unwrap().status, 200);
        }
        let bodies = server.join().unwrap();
        let expected = (0..REQUESTS).map(|n| n.to_string().into_bytes());
        assert!(bodies.into_iter().eq(expected));
    }
}
