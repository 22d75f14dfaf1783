//! HTTPS: a certificate and its key from PEM files (RFC 7468), and the handshake.
//!
//! The files are read by whoever names them, before the process gives up the privileges that reading them may take; here
//! they are bytes. A handshake takes the thread of the console, never that of the run, and the time of a request head at most.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error as RustlsError, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::timeout::WriteTimeout;

/// Bytes that are read of a file; a chain of certificates has a few thousand.
const MAX_PEM_BYTES: u64 = 1 << 20;
/// First byte of a TLS connection: the content type of a handshake record (RFC 8446 sec. 5.1).
const HANDSHAKE: u8 = 22;
/// The answer to a request that is not in TLS.
const NOT_TLS: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 45\r\n\
    Connection: close\r\n\r\nthis console is served by TLS: use https://\r\n";

/// A PEM file that was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl fmt::Debug for Pem {
    /// Without the bytes: they may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Pem {
    /// Reads a file of at most 1 MiB.
    ///
    /// # Errors
    /// It cannot be read, or is larger.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(MAX_PEM_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_PEM_BYTES {
            return Err(io::Error::other("larger than 1 MiB"));
        }
        let path = path.to_owned();
        Ok(Self { path, bytes })
    }

    fn says(&self, words: &str) -> bool {
        let words = words.as_bytes();
        self.bytes.windows(words.len()).any(|part| part == words)
    }
}

/// Why a certificate and a key cannot serve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no certificate in the file.
    #[error("{}: no certificate in PEM", .0.display())]
    NoCertificate(PathBuf),
    /// There is no key in the file.
    #[error("{}: no private key in PEM", .0.display())]
    NoKey(PathBuf),
    /// The key is encrypted.
    #[error("{}: the private key is encrypted; write it without a password, readable by its owner only", .0.display())]
    Encrypted(PathBuf),
    /// The key is that of another certificate.
    #[error("the key in {} is not that of the first certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// They are of no use otherwise.
    #[error("{} with the key in {}: {source}", certificate.display(), key.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        source: RustlsError,
    },
}

/// What a console shows and proves: TLS 1.2 and 1.3, no certificates of clients.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Of a certificate, followed by those that it is signed by, and its key.
    ///
    /// # Errors
    /// One of the files does not have what it should, or they do not belong together.
    pub fn new(certificate: &Pem, key: &Pem) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate.bytes).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::NoCertificate(certificate.path.clone()))?;
        let secret = PrivateKeyDer::from_pem_slice(&key.bytes).map_err(|_| {
            let path = key.path.clone();
            if key.says("ENCRYPTED") {
                TlsError::Encrypted(path)
            } else {
                TlsError::NoKey(path)
            }
        })?;
        let files = || (certificate.path.clone(), key.path.clone());
        let fault = |source| {
            let (certificate, key) = files();
            match source {
                RustlsError::InconsistentKeys(_) => TlsError::Mismatch { certificate, key },
                source => TlsError::Unusable {
                    certificate,
                    key,
                    source,
                },
            }
        };
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fault)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(fault)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// The connection behind a handshake; `None` where the client does not speak TLS, not within `most`, or leaves.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        most: Duration,
        write: Duration,
    ) -> Option<TlsStream<WriteTimeout>> {
        let handshake = async {
            let mut first = [0];
            let has_begun = stream.peek(&mut first).await.ok()? > 0;
            if has_begun && first != [HANDSHAKE] {
                refuse(&stream);
                return None;
            }
            self.0.accept(WriteTimeout::new(stream, write)).await.ok()
        };
        tokio::time::timeout(most, handshake).await.ok()?
    }
}

/// Says to a client that sends a request in clear what it should do; it waits for nothing.
fn refuse(stream: &TcpStream) {
    // What was not read would make the system break off the connection, and the answer might be lost.
    let mut rest = [0; 4096];
    stream.try_read(&mut rest).ok();
    stream.try_write(NOT_TLS.as_bytes()).ok();
}
