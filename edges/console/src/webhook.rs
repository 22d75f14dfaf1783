//! Alerts as `POST` of a JSON object to an `http://` or `https://` address.
//!
//! ```json
//! {"text":"linkweir eth0: alert firing: 5xx share > 2 % (3.10 %)","source":"eth0","rule":"5xx share > 2 %",
//!  "state":"firing","value":3.1,"threshold":2.0,"unit":"%","since_ms":1700000000000,"t_ms":1700000000000,"version":"0.1.0"}
//! ```
//! The field `text` is what Slack, Mattermost and Rocket.Chat show; the others are for programs.
//!
//! One thread posts, one event after the other. The queue is the bounded list of events of
//! [`LiveOf`]: a receiver that is down for long costs the oldest events, which are counted, and never
//! holds up the run. Certificates are checked against the system's bundle where there is one, else
//! against Mozilla's roots.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;

use crate::background::{Background, LONGEST_END, NO_RESPONSE, Stop};
use linkweir_live::alert::AlertEvent;
use linkweir_live::{Kind, LiveOf};
use linkweir_post::{CertificatesError, Client, Response, is_http, may_pass};

/// How often the thread looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(500);
/// Longest break between two attempts.
const LONGEST_BREAK: Duration = Duration::from_secs(60);
/// Events that are still posted when the run has ended.
const LAST_EVENTS: usize = 16;

/// Where alerts go, and how patiently.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// Addresses, `http://` or `https://`.
    pub urls: Vec<String>,
    /// Time for one attempt, from the look-up of the name to the end of the answer.
    pub timeout: Duration,
    /// Attempts for one event, with breaks of 1, 2, 4... seconds between them.
    pub attempts: u32,
    /// The first break.
    pub first_break: Duration,
    /// PEM file of certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// How long the end of the run waits for the receivers: at most 5 s.
    pub end: Duration,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            timeout: Duration::from_secs(5),
            attempts: 5,
            first_break: Duration::from_secs(1),
            ca_file: None,
            end: LONGEST_END,
        }
    }
}

/// Why the webhook did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The address is none, or not one for HTTP. It may hold a secret and is not repeated.
    #[error(
        "webhook {number}: expected an address that begins with http:// or https:// and names a host"
    )]
    Address {
        /// Which of the addresses, from 1.
        number: usize,
    },
    /// The certificates cannot be read.
    #[error("webhook {0}")]
    Certificates(#[from] CertificatesError),
    /// The system gave no thread.
    #[error("webhook: {0}")]
    System(#[from] std::io::Error),
}

/// The body of a post.
#[derive(Debug, Serialize)]
struct Body<'a> {
    text: String,
    #[serde(flatten)]
    event: &'a AlertEvent,
    version: &'static str,
}

/// Posts alerts until dropped. Dropping it gives the last events one attempt each, and counts as missed what is not taken in time.
#[derive(Debug)]
pub struct Webhook {
    thread: Background,
}

impl Webhook {
    /// Starts to post the alerts of `live`.
    ///
    /// # Errors
    /// Where an address is none, or the certificates cannot be read.
    pub fn start<K: Kind>(options: WebhookOptions, live: LiveOf<K>) -> Result<Self, WebhookError> {
        for (number, url) in (1..).zip(&options.urls) {
            if !is_http(url) {
                return Err(WebhookError::Address { number });
            }
        }
        let client = Client::new(options.timeout, options.ca_file.as_deref())?;
        let done = Arc::<AtomicU64>::default();
        let (counted, reached, end) = (live.clone(), Arc::clone(&done), options.end);
        let post = move |stop: &Stop| post_all(&client, &options, &live, &done, stop);
        let give_up = move || {
            let counts = counted.webhook_counts();
            let left = counted.events_after(reached.load(Ordering::Acquire)).len();
            counts.missed.fetch_add(left as u64, Ordering::Relaxed);
            counts.first_failure.get_or_init(|| NO_RESPONSE.to_owned());
        };
        let thread = Background::start("webhook", end, post, give_up)?;
        Ok(Self { thread })
    }

    /// The run has ended: it posts what is left from now on, for which dropping it waits.
    pub fn stop(&mut self) {
        self.thread.stop();
    }
}

/// How an attempt ended.
pub(crate) enum Outcome {
    Taken,
    /// The receiver will not take it, however often it is asked.
    Refused(String),
    Failed(String),
}

/// Posts a body once; gives what became of it, and the body of the response.
pub(crate) fn post(
    client: &Client,
    url: &str,
    content_type: &str,
    body: &[u8],
) -> (Outcome, Vec<u8>) {
    match client.post(url, content_type, body) {
        Ok(Response { status, body }) => {
            let why = format!("the receiver answers with status {status}");
            let outcome = match status {
                200..=299 => Outcome::Taken,
                status if may_pass(status) => Outcome::Failed(why),
                _ => Outcome::Refused(why),
            };
            (outcome, body)
        }
        Err(error) => (Outcome::Failed(error), Vec::new()),
    }
}

/// Posts all events; the number of the last one of which it is known what became of it is in `done`.
fn post_all<K: Kind>(
    client: &Client,
    options: &WebhookOptions,
    live: &LiveOf<K>,
    done: &AtomicU64,
    stop: &Stop,
) {
    let mut after = 0;
    let counts = live.webhook_counts();
    let mut is_running = true;
    while is_running {
        let events = live.wait_event(after, LOOK);
        is_running = stop.rest(Duration::ZERO);
        // An ended run wakes every wait at once.
        if events.is_empty() && is_running && live.is_finished() {
            is_running = stop.rest(LOOK);
        }
        for (number, event) in events {
            counts
                .missed
                .fetch_add(number.saturating_sub(after + 1), Ordering::Relaxed);
            after = number;
            is_running = deliver(client, options, live, &event, stop) && is_running;
            done.store(number, Ordering::Release);
            if !is_running {
                break;
            }
        }
    }
    // The last ones: one attempt each, and none after the first that fails.
    for (number, event) in live.events_after(after).into_iter().take(LAST_EVENTS) {
        after = number;
        let before = counts.failed.load(Ordering::Relaxed);
        let once = WebhookOptions {
            attempts: 1,
            ..options.clone()
        };
        deliver(client, &once, live, &event, stop);
        done.store(number, Ordering::Release);
        if stop.is_given_up() || counts.failed.load(Ordering::Relaxed) > before {
            break;
        }
    }
    if !stop.is_given_up() {
        let left = live.events_after(after).len() as u64;
        counts.missed.fetch_add(left, Ordering::Relaxed);
    }
}

/// Posts one event to every address; says whether to go on after it.
fn deliver<K: Kind>(
    client: &Client,
    options: &WebhookOptions,
    live: &LiveOf<K>,
    event: &AlertEvent,
    stop: &Stop,
) -> bool {
    let counts = live.webhook_counts();
    let body = Body {
        text: format!("linkweir {}: {event}", event.source),
        event,
        version: env!("CARGO_PKG_VERSION"),
    };
    let Ok(body) = serde_json::to_vec(&body) else {
        return true;
    };
    let mut is_running = true;
    for url in &options.urls {
        let mut pause = options.first_break;
        for attempt in 1..=options.attempts.max(1) {
            let (outcome, _) = post(client, url, "application/json", &body);
            if stop.is_given_up() {
                return false;
            }
            if let Outcome::Failed(why) | Outcome::Refused(why) = &outcome {
                counts.first_failure.get_or_init(|| why.clone());
            }
            match outcome {
                Outcome::Taken => {
                    counts.delivered.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                Outcome::Failed(_) if attempt < options.attempts && is_running => {
                    counts.retries.fetch_add(1, Ordering::Relaxed);
                    is_running = stop.rest(pause);
                    pause = pause.saturating_mul(2).min(LONGEST_BREAK);
                    // The run has ended in the break: this was not the last attempt, the next is.
                }
                Outcome::Failed(_) | Outcome::Refused(_) => {
                    counts.failed.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
    }
    is_running
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_engine::{Drops, RunReport};
    use linkweir_live::{Live, LiveOptions};
    use linkweir_wire::Timestamp;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::process::{Command, Stdio};
    use std::thread::JoinHandle;

    const S: u64 = 1_000_000_000;

    fn live() -> Live {
        Live::new(LiveOptions {
            source: "eth0".into(),
            alerts: vec!["drops > 0".parse().unwrap()],
            ..LiveOptions::default()
        })
    }

    /// A run with drops in its first second: one event that fires, one that resolves.
    fn drops(live: &Live) {
        for second in 0..4 {
            let report = RunReport {
                drops: Drops {
                    kernel: 7,
                    ring: 0,
                    unusable_records: 0,
                },
                ..RunReport::default()
            };
            live.tick(&report, Timestamp::from_nanos((1 + second) * S));
        }
    }

    /// Answers requests with these statuses in turn; gives the bodies.
    fn receiver(statuses: &'static [u16]) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook/secret", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let mut bodies = Vec::new();
            for status in statuses {
                let (socket, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(socket);
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    let line = line.trim().to_ascii_lowercase();
                    if let Some(value) = line.strip_prefix("content-length: ") {
                        length = value.parse().unwrap();
                    }
                    if line.is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                bodies.push(String::from_utf8(body).unwrap());
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
            bodies
        });
        (url, thread)
    }

    fn options(url: &str) -> WebhookOptions {
        WebhookOptions {
            urls: vec![url.to_owned()],
            attempts: 3,
            first_break: Duration::from_millis(10),
            ..WebhookOptions::default()
        }
    }

    #[test]
    fn alerts_are_posted_and_failures_retried() {
        // The first event fails once, the second is refused for good.
        let (url, thread) = receiver(&[503, 200, 404]);
        let live = live();
        let webhook = Webhook::start(options(&url), live.clone()).unwrap();
        drops(&live);
        let bodies = thread.join().unwrap();
        drop(webhook);
        let json = |at: usize| serde_json::from_str::<serde_json::Value>(&bodies[at]).unwrap();
        assert_eq!(bodies[0], bodies[1]);
        assert_eq!(
            json(0)["text"],
            "linkweir eth0: alert firing: drops > 0 (7)"
        );
        assert_eq!(json(0)["state"], "firing");
        assert_eq!(json(0)["rule"], "drops > 0");
        assert_eq!(json(0)["value"], 7.0);
        assert_eq!(json(0)["t_ms"], 2000);
        assert_eq!(json(2)["state"], "resolved");
        let counts = live.webhook_counts();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!(
            [
                load(&counts.delivered),
                load(&counts.retries),
                load(&counts.failed),
                load(&counts.missed)
            ],
            [1, 1, 1, 0]
        );
        let why = "the receiver answers with status 503";
        assert_eq!(live.webhook_losses(), (1, Some(why)));
        assert!(
            live.metrics()
                .contains("linkweir_webhook_posts_total{outcome=\"failed\"} 1\n")
        );
    }

    #[test]
    fn events_of_a_short_run_are_posted_when_it_is_dropped() {
        let (url, thread) = receiver(&[200, 200]);
        let live = live();
        drops(&live);
        live.finish(&RunReport::default());
        drop(Webhook::start(options(&url), live).unwrap());
        assert_eq!(thread.join().unwrap().len(), 2);
    }

    #[test]
    fn a_dead_receiver_ends_with_the_run() {
        let url = {
            // A port that nobody listens on any more.
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://{}/", listener.local_addr().unwrap())
        };
        let live = live();
        let webhook = Webhook::start(
            WebhookOptions {
                first_break: Duration::from_secs(3600),
                attempts: 9,
                ..options(&url)
            },
            live.clone(),
        )
        .unwrap();
        drops(&live);
        assert!(live.wait_event(1, Duration::from_secs(5)).len() == 1);
        drop(webhook);
        let counts = live.webhook_counts();
        let lost = counts.failed.load(Ordering::Relaxed) + counts.missed.load(Ordering::Relaxed);
        assert_eq!(lost, 2);
        let (lost, why) = live.webhook_losses();
        assert_eq!(lost, 2);
        assert!(why.is_some_and(|why| why.contains("refused")), "{why:?}");
    }

    #[test]
    fn a_receiver_that_hangs_does_not_hold_up_the_end_of_the_run() {
        // It takes the connection, and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", silent.local_addr().unwrap());
        let options = WebhookOptions {
            end: Duration::from_millis(100),
            ..options(&url)
        };
        let live = live();
        let webhook = Webhook::start(options, live.clone()).unwrap();
        drops(&live);
        assert!(live.wait_event(1, Duration::from_secs(5)).len() == 1);
        // One attempt takes up to five seconds.
        let (end, ended) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            drop(webhook);
            end.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(2)).unwrap();
        thread.join().unwrap();
        assert_eq!(live.webhook_losses(), (2, Some(NO_RESPONSE)));
    }

    #[test]
    fn addresses_are_checked_and_not_repeated() {
        for url in [
            "",
            "ftp://x/",
            "shop",
            "http://",
            "http:///x",
            "https://a b/secret",
        ] {
            let error = Webhook::start(options(url), live()).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let missing = WebhookOptions {
            ca_file: Some("/nowhere/ca.pem".into()),
            ..options("https://x/")
        };
        assert!(matches!(
            Webhook::start(missing, live()),
            Err(WebhookError::Certificates(_))
        ));
    }

    /// A receiver behind TLS, made of the `openssl` command.
    #[test]
    fn https_with_a_certificate_of_our_own() {
        let directory = tempfile::tempdir().unwrap();
        let openssl = |line: &str| {
            Command::new("openssl")
                .args(line.split(' '))
                .current_dir(directory.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        std::fs::write(
            directory.path().join("ext"),
            "subjectAltName=IP:127.0.0.1\n",
        )
        .unwrap();
        let is_made = openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem",
        ) && openssl(
            "req -newkey rsa:2048 -nodes -subj /CN=hook -keyout hook.key -out hook.csr",
        ) && openssl(
            "x509 -req -in hook.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out hook.pem",
        );
        if !is_made {
            eprintln!("SKIPPED: https_with_a_certificate_of_our_own: no `openssl` command");
            return;
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut server = Command::new("openssl")
            .args([
                "s_server", "-quiet", "-naccept", "1", "-cert", "hook.pem", "-key", "hook.key",
                "-accept",
            ])
            .arg(format!("127.0.0.1:{port}"))
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = server.stdin.take().unwrap();
        let live = live();
        let mut options = options(&format!("https://127.0.0.1:{port}/hook"));
        options.ca_file = Some(directory.path().join("ca.pem"));
        options.attempts = 100;
        options.first_break = Duration::from_millis(50);
        let webhook = Webhook::start(options, live.clone()).unwrap();
        drops(&live);
        let mut stdout = BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("alert firing") {
            line.clear();
            assert!(
                stdout.read_line(&mut line).unwrap() > 0,
                "the server has gone"
            );
            // `s_server` sends what it reads; the body has no line feed and stays in its buffer
            // until the connection ends.
            if line.trim().is_empty() {
                stdin
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .unwrap();
                stdin.flush().unwrap();
                let mut body = vec![0; 40];
                stdout.read_exact(&mut body).unwrap();
                assert!(body.starts_with(b"{\"text\":\"linkweir eth0: alert"));
                break;
            }
        }
        let is_delivered = (0..100).any(|_| {
            drop(live.wait_event(99, Duration::from_millis(50)));
            live.webhook_counts().delivered.load(Ordering::Relaxed) == 1
        });
        server.kill().ok();
        server.wait().unwrap();
        drop(webhook);
        assert!(is_delivered);
    }
}
