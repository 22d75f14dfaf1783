//! The console: the web page, its JSON API, the event stream, and `/metrics`, on one thread of its own.
//!
//! | path | what |
//! |---|---|
//! | `/`, `/assets/*` | the page, carried in the binary |
//! | `/api/snapshot` | the run, its sums, the last intervals |
//! | `/api/stream` | server-sent events: `tick` per interval, `end` |
//! | `/api/history` | the last day, where a file keeps it |
//! | `/api/records` | the last records behind a row or a rule |
//! | `/api/top`, `/api/ccdf` | tables and the distribution over a window |
//! | `/api/status` | of a gateway: its state and its last events |
//! | `/api/probes` | where the statistics are merged: the probes |
//! | `/api/download.csv`, `/api/download.json` | the same as files |
//! | `/archive`, `/archive.svg` | where the run has [`Pages`] of its archive |
//! | `/metrics`, `/healthz` | for machines |
//! | `/login`, `/logout` | where a token is required: the form, and `POST` |
//! | `/api/start`, `/api/stop` | `POST`, where orders are allowed |
//!
//! It trusts no client: loopback by default, a token on any other address, the `Host` field
//! checked against DNS rebinding, `GET` and `HEAD` only, nothing from other sites on the page, and
//! bounds on connections, heads and waiting. Orders are off unless somebody takes them, and need the token on
//! loopback too: see [`Order`]. It never holds up the run: see [`LiveOf`].

mod api;
mod assets;
mod guard;
mod login;
mod order;
mod places;
mod routes;
mod stream;
mod timeout;
mod tls;

#[cfg(test)]
mod tests;

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use self::guard::Guard;
pub use self::order::Order;
use self::places::Places;
use self::routes::Site;
use self::timeout::WriteTimeout;
pub use self::tls::{Pem, Tls, TlsError};
use crate::served::Served;
use linkweir_live::{Kind, LiveOf};

/// Largest request head: line and fields.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Maximum number of fields in a head.
const MAX_FIELDS: usize = 64;
/// How often the server looks for new intervals.
const LOOK: Duration = Duration::from_millis(100);
/// How long the end of the run may take to reach those who watch.
const FAREWELL: Duration = Duration::from_millis(500);

/// Bounds on what clients may hold.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Connections at once.
    connections: usize,
    /// Event streams at once.
    streams: usize,
    /// Time for a request head, and between two requests.
    head: Duration,
    /// Time a client may leave what was sent to it unread.
    write: Duration,
    /// Time between two signs of life on a stream without events.
    heartbeat: Duration,
    /// Time that a wrong token costs; wrong ones are answered one after the other.
    wrong_token: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 128,
            streams: 32,
            head: Duration::from_secs(5),
            write: Duration::from_secs(20),
            heartbeat: Duration::from_secs(10),
            wrong_token: Duration::from_millis(500),
        }
    }
}

/// As [`ConsoleOptions::listen`]: the standard input is the socket.
const INHERITED: &str = "stdin";

/// Where the console listens and whom it answers.
#[derive(Debug, Clone, Default)]
pub struct ConsoleOptions {
    /// Address and port, for example `127.0.0.1:8080`; port 0 takes a free one. `stdin` is a socket that
    /// listens already and is the standard input, as systemd gives one (`StandardInput=socket`).
    pub listen: String,
    /// The token that a request must bring. Without one, a console on loopback asks for none, and
    /// one on any other address makes its own: [`Console::token`].
    pub token: Option<String>,
    /// Further names that `Host` may have: those of a proxy in front.
    pub names: Vec<String>,
    /// Who takes orders; `None` where the page may only look. With it, a token is required everywhere.
    pub orders: Option<Sender<Order>>,
    /// Further pages of the run.
    pub pages: Option<Arc<dyn Pages>>,
    /// Certificate and key; everything is served by HTTPS with them, and nothing in clear.
    pub tls: Option<Tls>,
}

/// Pages of a run beside the live one, such as those of its archive. They are made one after the other on a thread
/// of their own.
pub trait Pages: std::fmt::Debug + Send + Sync {
    /// Whether there is a page of this path.
    fn has(&self, path: &str) -> bool;
    /// The page of such a path with its query.
    fn page(&self, path: &str, query: &str) -> Page;
}

/// One of [`Pages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// Without scripts and styles of its own.
    Html(String),
    /// A picture.
    Svg(String),
    /// The query has no answer, in one sentence.
    Refused(String),
    /// It could not be made, in one sentence.
    Failed(String),
}

/// Why a console did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConsoleError {
    /// The address is not valid.
    #[error("console address `{listen}`: {source}; expected for example 127.0.0.1:8080")]
    Address {
        /// As the user gave it.
        listen: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Nothing can listen there.
    #[error("console cannot listen on {listen}: {source}")]
    Listen {
        /// As the user gave it.
        listen: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A token that could not be sent.
    #[error("a console token has 8 to 128 characters of A-Z a-z 0-9 - . _ ~")]
    Token,
    /// The system gave no thread, no randomness or no event loop.
    #[error("console: {0}")]
    System(#[from] std::io::Error),
}

/// A console that runs; it stops when dropped.
#[derive(Debug)]
pub struct Console {
    address: SocketAddr,
    scheme: &'static str,
    token: Option<String>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Console {
    /// Starts to serve `live`.
    ///
    /// # Errors
    /// The address is invalid or taken, or the token could not be sent in a field.
    pub fn start<K: Kind>(options: &ConsoleOptions, live: LiveOf<K>) -> Result<Self, ConsoleError> {
        Self::start_with(options, Arc::new(live), Limits::default())
    }

    fn start_with(
        options: &ConsoleOptions,
        live: Arc<dyn Served>,
        limits: Limits,
    ) -> Result<Self, ConsoleError> {
        let listen = options.listen.clone();
        let listener = listener(&listen)?;
        let fault = |source| ConsoleError::Listen {
            listen: listen.clone(),
            source,
        };
        listener.set_nonblocking(true).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        live.keep_records();
        let token = match &options.token {
            Some(token) if is_token(token) => Some(token.clone()),
            Some(_) => return Err(ConsoleError::Token),
            None if address.ip().to_canonical().is_loopback() && options.orders.is_none() => None,
            None => Some(random_token()?),
        };
        let tls = options.tls.clone();
        let guard = Guard::new(address, &options.names, token.clone(), tls.is_some());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let site = Site::new(live, guard, limits, options);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("console")
            .max_blocking_threads(1)
            .build()?;
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name("console".to_owned())
            .spawn(move || {
                let server = serve(listener, site, tls, limits, stopped);
                // Only clients could be informed, and they see the connection close.
                runtime.block_on(server).ok();
                runtime.shutdown_background();
            })?;
        Ok(Self {
            address,
            scheme,
            token,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The token that requests must bring, where one is needed.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The address to open in a browser, with the token where one is needed.
    #[must_use]
    pub fn url(&self) -> String {
        let token = self
            .token()
            .map_or_else(String::new, |token| format!("?token={token}"));
        format!("{}://{}/{token}", self.scheme, self.address)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic in the console must not become one of the run.
            thread.join().ok();
        }
    }
}

/// Whether a token can stand in a field, a cookie and a query as it is.
fn is_token(token: &str) -> bool {
    (8..=128).contains(&token.len())
        && token
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~'))
}

/// 160 random bits.
fn random_token() -> std::io::Result<String> {
    let mut bits = [0_u8; 20];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(linkweir_record::escape::hex_digits(&bits))
}

/// The socket of [`ConsoleOptions::listen`].
fn listener(listen: &str) -> Result<TcpListener, ConsoleError> {
    let fault = |source| ConsoleError::Listen {
        listen: listen.to_owned(),
        source,
    };
    if listen == INHERITED {
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        return input.map(TcpListener::from).map_err(fault);
    }
    let address = listen
        .to_socket_addrs()
        .and_then(|mut found| {
            let first = found.next();
            first.ok_or_else(|| std::io::Error::other("no such address"))
        })
        .map_err(|source| ConsoleError::Address {
            listen: listen.to_owned(),
            source,
        })?;
    TcpListener::bind(address).map_err(fault)
}

async fn serve(
    listener: TcpListener,
    site: Site,
    tls: Option<Tls>,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Places::new(limits.connections, site.has_token());
    let site = Arc::new(site);
    let news = tokio::spawn(look_for_news(Arc::clone(&site)));
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => match places.take(from.ip()) {
                    Some(place) => {
                        let connection = connection(stream, tls.clone(), Arc::clone(&site), limits);
                        tokio::spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                    // Full: a short answer if it fits into the socket's buffer, then closed.
                    None if tls.is_some() => {}
                    None => {
                        stream
                            .try_write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                            .ok();
                    }
                },
                // Out of descriptors, most likely: give others time to close theirs.
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    };
    let stop = async {
        stopped.wait_for(|is_stopped| *is_stopped).await.ok();
    };
    either(accepting, stop).await;
    site.part(FAREWELL).await;
    news.abort();
    Ok(())
}

/// Runs `work` until `stop` is done.
async fn either(work: impl Future<Output = ()>, stop: impl Future<Output = ()>) {
    let (mut work, mut stop) = (std::pin::pin!(work), std::pin::pin!(stop));
    std::future::poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(());
        }
        work.as_mut().poll(context)
    })
    .await;
}

/// Tells the streams of new intervals: the run itself never calls into the server.
async fn look_for_news(site: Arc<Site>) {
    loop {
        tokio::time::sleep(LOOK).await;
        site.look();
    }
}

/// Serves one connection to its end.
async fn connection(stream: TcpStream, tls: Option<Tls>, site: Arc<Site>, limits: Limits) {
    // Events are small and ought to leave at once.
    stream.set_nodelay(true).ok();
    match tls {
        None => requests(WriteTimeout::new(stream, limits.write), site, limits).await,
        Some(tls) => {
            if let Some(stream) = tls.accept(stream, limits.head, limits.write).await {
                requests(stream, site, limits).await;
            }
        }
    }
}

/// Answers the requests of one connection.
async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, site: Arc<Site>, limits: Limits) {
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, std::convert::Infallible>(site.answer(request).await) }
    });
    // What fails here is the client's doing: it left, was too slow, or does not speak HTTP.
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), service)
        .await
        .ok();
}
