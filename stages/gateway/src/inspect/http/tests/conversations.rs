//! Conversations that are made up, cut in every way: what is found is what was put in.

use std::io::Write as _;

use proptest::prelude::*;

use super::{Bench, Event, File, Findings, faults, files};
use crate::inspect::Side::{Client, Server};
use crate::inspect::{Coding, DecodeLimit, Decoder, Side};

/// How a body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framed {
    Known,
    /// In chunks of so many bytes.
    Chunked(usize),
    UntilClose,
}

/// A request and its response.
#[derive(Debug, Clone)]
struct Exchange {
    method: &'static str,
    name: String,
    upload: Option<(Vec<u8>, Framed)>,
    interim: usize,
    status: u16,
    page: Vec<u8>,
    framed: Framed,
    is_gzip: bool,
    has_disposition: bool,
    /// Line end, and empty lines before the request.
    end: &'static str,
    blank: usize,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let framed = prop_oneof![
        3 => Just(Framed::Known),
        3 => (1_usize..50).prop_map(Framed::Chunked),
        1 => Just(Framed::UntilClose),
    ];
    let upload = (
        proptest::collection::vec(any::<u8>(), 1..80),
        prop_oneof![Just(Framed::Known), (1_usize..20).prop_map(Framed::Chunked)],
    );
    let request = (
        prop_oneof![3 => Just("GET"), 1 => Just("HEAD"), 1 => Just("POST"), 1 => Just("PUT")],
        "[a-z]{1,8}\\.(exe|txt)",
        upload,
        prop_oneof![4 => Just("\r\n"), 1 => Just("\n")],
        prop_oneof![6 => Just(0_usize), 1 => 1_usize..3],
    );
    let response = (
        prop_oneof![5 => Just(0_usize), 1 => 1_usize..3],
        prop_oneof![5 => Just(200_u16), 1 => Just(204), 1 => Just(304), 1 => Just(404), 1 => Just(206)],
        proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..200),
        framed,
        any::<bool>(),
        any::<bool>(),
    );
    (request, response).prop_map(|(request, response)| {
        let (method, name, upload, end, blank) = request;
        let (interim, status, page, framed, is_gzip, has_disposition) = response;
        let upload = matches!(method, "POST" | "PUT").then_some(upload);
        Exchange {
            method,
            name,
            upload,
            interim,
            status,
            page,
            framed,
            is_gzip,
            has_disposition,
            end,
            blank,
        }
    })
}

/// The two streams of a conversation, and what must be found in them.
#[derive(Debug, Default)]
struct Script {
    client: Vec<u8>,
    server: Vec<u8>,
    /// After so many bytes of the client the server has sent up to so many.
    unlocked: Vec<(usize, usize)>,
    findings: Findings,
    /// Pages as they were before they were coded.
    pages: Vec<Vec<u8>>,
}

impl Script {
    fn of(exchanges: &[Exchange]) -> Self {
        let mut script = Self::default();
        for exchange in exchanges {
            script.request(exchange);
            let is_last = script.response(exchange);
            script
                .unlocked
                .push((script.client.len(), script.server.len()));
            if is_last {
                break;
            }
        }
        script
    }

    fn text(&mut self, side: Side, bytes: &[u8]) {
        self.send(side, bytes);
        self.findings.push(side, Event::Text(bytes.to_vec()));
    }

    fn send(&mut self, side: Side, bytes: &[u8]) {
        match side {
            Client => self.client.extend_from_slice(bytes),
            Server => self.server.extend_from_slice(bytes),
        }
    }

    fn body(&mut self, side: Side, body: &[u8], framed: Framed, end: &str) {
        let Framed::Chunked(size) = framed else {
            self.send(side, body);
            self.findings.push(side, Event::Data(body.to_vec()));
            return;
        };
        for chunk in body.chunks(size) {
            self.send(side, format!("{:x}", chunk.len()).as_bytes());
            if chunk.len() % 3 == 0 {
                self.text(side, format!(";ext=1{end}").as_bytes());
            } else {
                self.send(side, end.as_bytes());
            }
            self.send(side, chunk);
            self.findings.push(side, Event::Data(chunk.to_vec()));
            self.send(side, end.as_bytes());
        }
        self.send(side, format!("0{end}").as_bytes());
        self.text(side, format!("Trailer: 1{end}{end}").as_bytes());
    }

    fn request(&mut self, exchange: &Exchange) {
        let Exchange {
            method,
            name,
            end,
            upload,
            ..
        } = exchange;
        self.text(Client, end.repeat(exchange.blank).as_bytes());
        let length = match upload {
            Some((body, Framed::Known)) => format!("Content-Length: {}{end}", body.len()),
            Some(_) => format!("Transfer-Encoding: chunked{end}"),
            None => String::new(),
        };
        let head = format!("{method} /a/{name}?q HTTP/1.1{end}Host: h.example{end}{length}{end}");
        self.text(Client, head.as_bytes());
        self.findings
            .push(Client, Event::Host("h.example".to_owned()));
        let file = File::new(name, "h.example");
        if let Some((body, framed)) = upload {
            let announced_size = (*framed == Framed::Known).then_some(body.len() as u64);
            self.findings.push(
                Client,
                Event::Begin(File {
                    announced_size,
                    ..file
                }),
            );
            self.body(Client, body, *framed, end);
            self.findings.push(Client, Event::End(true));
        } else {
            self.findings.push(Client, Event::Named(Server, file));
        }
    }

    /// Says whether the connection ends with it.
    fn response(&mut self, exchange: &Exchange) -> bool {
        let Exchange {
            end,
            name,
            framed,
            status,
            ..
        } = exchange;
        for _ in 0..exchange.interim {
            self.text(
                Server,
                format!("HTTP/1.1 100 Continue{end}{end}").as_bytes(),
            );
        }
        let coded = if exchange.is_gzip {
            gzip(&exchange.page)
        } else {
            exchange.page.clone()
        };
        let length = match framed {
            Framed::Known => format!("Content-Length: {}{end}", coded.len()),
            Framed::Chunked(_) => format!("transfer-encoding: Chunked{end}"),
            Framed::UntilClose => String::new(),
        };
        let coding = if exchange.is_gzip {
            format!("Content-Encoding: gzip{end}")
        } else {
            String::new()
        };
        let disposition = if exchange.has_disposition {
            format!("Content-Disposition: attachment; filename=\"the {name}\"{end}")
        } else {
            String::new()
        };
        let range = if *status == 206 {
            format!("Content-Range: bytes 0-1/99{end}")
        } else {
            String::new()
        };
        let head =
            format!("HTTP/1.1 {status} Reason{end}{length}{coding}{disposition}{range}{end}");
        self.text(Server, head.as_bytes());
        let has_body = exchange.method != "HEAD" && !matches!(status, 204 | 304);
        if !has_body || (*framed == Framed::Known && coded.is_empty()) {
            return false;
        }
        let known = (*framed == Framed::Known).then_some(coded.len() as u64);
        let file = File {
            name: if exchange.has_disposition {
                format!("the {name}")
            } else {
                name.clone()
            },
            announced_size: if *status == 206 { Some(99) } else { known },
            coding: if exchange.is_gzip {
                Coding::Gzip
            } else {
                Coding::Identity
            },
            is_until_close: *framed == Framed::UntilClose,
            ..File::new("", "h.example")
        };
        self.findings.push(Server, Event::Begin(file));
        self.body(Server, &coded, *framed, end);
        self.findings.push(Server, Event::End(true));
        self.pages.push(exchange.page.clone());
        *framed == Framed::UntilClose
    }

    /// Feeds both streams in pieces: the server's never before what they answer.
    fn play(&self, cuts: &[(bool, usize)]) -> Bench {
        let mut bench = Bench::default();
        let (mut sent, mut answered) = (0, 0);
        let mut cuts = cuts.iter().copied().cycle();
        while sent < self.client.len() || answered < self.server.len() {
            let (is_server, size) = cuts.next().unwrap_or((false, 1));
            let unlocked = self
                .unlocked
                .iter()
                .take_while(|(client, _)| *client <= sent);
            let room = unlocked.last().map_or(0, |(_, server)| *server) - answered;
            if room > 0 && (is_server || sent == self.client.len()) {
                let size = size.min(room);
                bench.feed(Server, &self.server[answered..answered + size]);
                answered += size;
            } else if sent < self.client.len() {
                let size = size.min(self.client.len() - sent);
                bench.feed(Client, &self.client[sent..sent + size]);
                sent += size;
            }
        }
        bench.finish();
        bench
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(coding, DecodeLimit::default());
    let mut decoded = Vec::new();
    decoder
        .push(bytes, &mut |bytes| decoded.extend_from_slice(bytes))
        .expect("well formed");
    assert!(decoder.is_at_end());
    decoded
}

fn cuts() -> impl Strategy<Value = Vec<(bool, usize)>> {
    proptest::collection::vec(
        (
            any::<bool>(),
            prop_oneof![3 => 1_usize..20, 1 => 1_usize..4000],
        ),
        1..40,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_found_is_what_was_said(
        exchanges in proptest::collection::vec(exchange(), 1..8),
        cuts in cuts(),
    ) {
        let script = Script::of(&exchanges);
        let bench = script.play(&cuts);
        prop_assert_eq!(&bench.findings, &script.findings);
        prop_assert!(bench.peak < 16 * 1024);
        let pages: Vec<Vec<u8>> = files(&bench.findings.server)
            .into_iter()
            .map(|(file, bytes, _)| decoded(file.coding, &bytes))
            .collect();
        prop_assert_eq!(pages, script.pages);
    }

    #[test]
    fn any_bytes_are_passed_on_within_bounds(
        pieces in proptest::collection::vec((any::<bool>(), opening(), proptest::collection::vec(hostile(), 0..200)), 0..12),
    ) {
        let mut bench = Bench::default();
        let mut fed = [0; 2];
        for (is_server, opening, bytes) in &pieces {
            let side = if *is_server { Server } else { Client };
            let piece = [opening.as_bytes(), bytes].concat();
            fed[usize::from(*is_server)] += piece.len();
            bench.feed(side, &piece);
        }
        bench.finish();
        prop_assert!(bench.peak <= 512 * 1024);
        prop_assert!(faults(&bench.findings).len() <= 1);
        for (events, fed) in [&bench.findings.client, &bench.findings.server].into_iter().zip(fed) {
            let mut is_open = false;
            let mut passed = 0;
            for event in events {
                match event {
                    Event::Begin(_) => prop_assert!(!std::mem::replace(&mut is_open, true)),
                    Event::End(_) => prop_assert!(std::mem::replace(&mut is_open, false)),
                    Event::Data(bytes) => {
                        prop_assert!(is_open);
                        passed += bytes.len();
                    }
                    Event::Text(bytes) => passed += bytes.len(),
                    _ => {}
                }
            }
            prop_assert!(!is_open);
            // Only the framing of chunks is passed on to nobody.
            prop_assert!(passed <= fed);
        }
    }
}

/// Beginnings of messages, whole and broken.
fn opening() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "",
            "GET /a.exe HTTP/1.1\r\nHost: a\r\n\r\n",
            "HEAD /a HTTP/1.1\r\n",
            "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n--b\r\nX: y",
            "PUT /x HTTP/1.1\r\nContent-Length: 30\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n",
            "HTTP/1.1 101 X\r\n\r\n",
            "HTTP/1.0 200 OK\n\n",
            "\r\n",
            "5\r\nabcde\r\n0\r\n\r\n",
            "GIVE 12345678\r\n\r\n",
            "GIV 1:00/x\n\n",
            "GNUTELLA CONNECT/0.4\n\n",
            "GNUTELLA/0.6 200 OK\r\n\r\n0123456789abcdef\u{1}\0\0\u{3}\0\0\0",
        ][..],
    )
}

fn hostile() -> impl Strategy<Value = u8> {
    prop_oneof![
        Just(b'\r'),
        Just(b'\n'),
        Just(b' '),
        Just(b':'),
        Just(b'0'),
        any::<u8>()
    ]
}
