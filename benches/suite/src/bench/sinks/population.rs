//! Who asks whom for what: clients with a browser each, sites with pages, and answers, repeated as on a
//! real network: few sites, pages and browsers have most of the requests, and there is a long tail of others.

use super::super::harness::{Chance, Zipf};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const CLIENTS: u64 = 20_000;
const SITES: u64 = 500;
const PAGES: u64 = 5_000;
const BROWSERS: u64 = 200;

/// One transaction.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) request: Vec<u8>,
    /// The head and the first bytes of the body.
    pub(super) response: Vec<u8>,
    /// Bytes of the body that follow and are not in the capture, as behind a filter.
    pub(super) unseen: u32,
    /// From the request to the response.
    pub(super) took_ns: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Population {
    clients: Zipf,
    sites: Zipf,
    pages: Zipf,
}

/// Endings of pages, their types, and the least size of what is behind them.
const KINDS: [(&str, &str, u64); 8] = [
    (".html", "text/html; charset=utf-8", 4_000),
    (".js", "application/javascript", 9_000),
    (".css", "text/css", 3_000),
    (".jpg", "image/jpeg", 12_000),
    (".png", "image/png", 2_000),
    (".json", "application/json", 300),
    ("", "text/html", 1_500),
    (".woff2", "font/woff2", 20_000),
];

/// Status, reason phrase, how many of a thousand.
const ANSWERS: [(u16, &str, u64); 8] = [
    (200, "OK", 850),
    (304, "Not Modified", 70),
    (404, "Not Found", 30),
    (302, "Found", 20),
    (206, "Partial Content", 12),
    (301, "Moved Permanently", 10),
    (500, "Internal Server Error", 5),
    (503, "Service Unavailable", 3),
];

impl Population {
    pub(super) fn new() -> Self {
        Self {
            clients: Zipf::new(CLIENTS),
            sites: Zipf::new(SITES),
            pages: Zipf::new(PAGES),
        }
    }

    /// A client and a site that it turns to: its number and address.
    pub(super) fn visit(&self, chance: &mut Chance) -> (u64, SocketAddr, u64, SocketAddr) {
        let (client, site) = (self.clients.draw(chance), self.sites.draw(chance));
        let port = 32_768 + chance.below(28_000);
        let port = u16::try_from(port).unwrap_or(u16::MAX);
        // Every site has up to four servers.
        let server = site * 4 + chance.below(1 + site % 4);
        (
            client,
            address(0x0a14_0000, client, port),
            site,
            address(0xc633_0000, server, 80),
        )
    }

    /// A request of a client to a site, and the answer.
    pub(super) fn exchange(&self, client: u64, site: u64, chance: &mut Chance) -> Exchange {
        let page = self.pages.draw(chance);
        // What a page is does not change from request to request.
        let trait_of = linkweir_engine::hash::mix(site << 32 | page);
        let kind = usize::try_from(trait_of % KINDS.len() as u64).unwrap_or(0);
        let (ending, kind, least) = KINDS.get(kind).copied().unwrap_or_default();
        let method = match chance.below(100) {
            0..=91 => "GET",
            92..=97 => "POST",
            _ => "HEAD",
        };
        let mut request = String::with_capacity(600);
        let _infallible = write!(
            request,
            "{method} {} HTTP/1.1\r\n",
            target(page, trait_of, ending, chance)
        );
        let _infallible = write!(
            request,
            "Host: {}\r\nUser-Agent: {}\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n",
            host(site),
            browser(client)
        );
        let upload = if method == "POST" {
            20 + chance.below(200)
        } else {
            0
        };
        if upload > 0 {
            let _infallible = write!(request, "Content-Length: {upload}\r\n");
        }
        request.push_str("\r\n");
        let mut request = request.into_bytes();
        request.resize(request.len() + usize::try_from(upload).unwrap_or(0), b'u');

        let (status, phrase) = answer(chance);
        let size = if status == 304 {
            0
        } else {
            chance.tail(least, 6)
        };
        let mut head =
            format!("HTTP/1.1 {status} {phrase}\r\nServer: nginx\r\nContent-Type: {kind}\r\n");
        if status != 304 {
            let _infallible = write!(head, "Content-Length: {size}\r\n");
        }
        head.push_str("Cache-Control: max-age=600\r\nConnection: keep-alive\r\n\r\n");
        let mut response = head.into_bytes();
        let body = if method == "HEAD" { 0 } else { size };
        let seen = body.min(64);
        response.resize(response.len() + usize::try_from(seen).unwrap_or(0), b'b');
        Exchange {
            request,
            response,
            unseen: u32::try_from(body - seen).unwrap_or(0),
            // From a millisecond to some seconds.
            took_ns: chance.tail(1_000_000, 11),
        }
    }
}

fn address(network: u32, number: u64, port: u16) -> SocketAddr {
    let host = u32::try_from(number & 0xffff).unwrap_or(0) + 1;
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(network + host)), port)
}

fn host(site: u64) -> String {
    const NAMES: [&str; 10] = [
        "news", "shop", "video", "mail", "static", "api", "images", "forum", "bank", "maps",
    ];
    let name = usize::try_from(site % 10).ok().and_then(|at| NAMES.get(at));
    let prefix = if site.is_multiple_of(3) { "www." } else { "" };
    format!(
        "{prefix}{}{}.example.test",
        name.copied().unwrap_or("www"),
        site / 10
    )
}

/// The path of a page is the same every time; a quarter of the requests have a query that is not.
fn target(page: u64, trait_of: u64, ending: &str, chance: &mut Chance) -> String {
    const DIRECTORIES: [&str; 6] = [
        "static",
        "articles",
        "products",
        "assets/dist",
        "api/v2",
        "media/2026",
    ];
    let directory = usize::try_from(trait_of / 8 % 6).ok();
    let directory = directory
        .and_then(|at| DIRECTORIES.get(at))
        .copied()
        .unwrap_or_default();
    let mut path = if page == 0 {
        "/".to_owned()
    } else {
        format!("/{directory}/{:08x}/{page}{ending}", trait_of >> 32)
    };
    match chance.below(8) {
        0 => path.push_str(&format!("?session={:016x}", chance.next())),
        1 => path.push_str(&format!("?page={}&sort=date", chance.below(50))),
        _ => {}
    }
    path
}

/// The browser of a client: some versions of few, which look much like one another.
fn browser(client: u64) -> String {
    let number = linkweir_engine::hash::mix(client) % BROWSERS;
    let system = match number % 5 {
        0 | 1 => "Windows NT 10.0; Win64; x64",
        2 => "Macintosh; Intel Mac OS X 10_15_7",
        3 => "X11; Linux x86_64",
        _ => "Linux; Android 14; Pixel 8",
    };
    let version = 100 + number / 5;
    if number.is_multiple_of(7) {
        format!("Mozilla/5.0 ({system}; rv:{version}.0) Gecko/20100101 Firefox/{version}.0")
    } else {
        format!(
            "Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version}.0.0.0 Safari/537.36"
        )
    }
}

fn answer(chance: &mut Chance) -> (u16, &'static str) {
    let mut drawn = chance.below(1000);
    for (status, phrase, of) in ANSWERS {
        if drawn < of {
            return (status, phrase);
        }
        drawn -= of;
    }
    (200, "OK")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn answers_are_a_thousand() {
        assert_eq!(ANSWERS.iter().map(|(_, _, of)| of).sum::<u64>(), 1000);
    }

    #[test]
    fn pages_repeat_and_do_not_change() {
        let population = Population::new();
        let mut chance = Chance::new(3);
        let mut lines: HashMap<String, u64> = HashMap::new();
        for _ in 0..5_000 {
            let (client, _, site, _) = population.visit(&mut chance);
            let exchange = population.exchange(client, site, &mut chance);
            assert!(exchange.request.len() < 1400 && exchange.response.len() < 1400);
            let text = String::from_utf8(exchange.request).unwrap();
            let path = text.split([' ', '?']).nth(1).unwrap();
            *lines.entry(format!("{}{path}", host(site))).or_default() += 1;
        }
        // Some very often, most once.
        assert!(lines.values().any(|count| *count > 20));
        let once = lines.values().filter(|count| **count == 1).count();
        assert!(once > 1_500, "{once} of {}", lines.len());
    }
}
