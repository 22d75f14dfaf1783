//! tshark's side: one row per frame with HTTP, made with `-o tcp.desegment_tcp_streams:FALSE`.

use super::{Findings, Pair, is_interim};
use crate::shell::read_unpacked;
use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

/// Between the values that one frame has for one column.
const BETWEEN: &str = " ;; ";

/// The direction of a connection: source, destination.
type Direction = ((IpAddr, u16), (IpAddr, u16));

/// What a row says of its frame.
#[derive(Debug)]
struct Frame {
    direction: Direction,
    time_us: u64,
    methods: Vec<String>,
    codes: Vec<u16>,
    /// Frames with the responses to its requests.
    response_in: Vec<u64>,
    /// Frames with the requests of its responses.
    request_in: Vec<u64>,
    /// The frame that this one repeats, or its own number.
    original: u64,
}

/// Reads the rows of a file.
///
/// # Errors
/// The file cannot be read, or a column is missing or not a number.
pub(super) fn read(path: &Path) -> Result<Findings> {
    let text = read_unpacked(path)?;
    let text = String::from_utf8_lossy(&text);
    findings(&text).with_context(|| format!("{}", path.display()))
}

pub(super) fn findings(text: &str) -> Result<Findings> {
    let (frames, order) = frames(text)?;
    let mut found = Findings::default();
    for number in &order {
        let Some(frame) = frames.get(number) else {
            continue;
        };
        let (requests, responses) = (frame.methods.len() as u64, frame.codes.len() as u64);
        if frame.original != *number {
            found.repeated_requests += requests;
            found.repeated_responses += responses;
        } else {
            found.requests += requests;
            found.responses += responses;
            for method in &frame.methods {
                *found.methods.entry(method.clone()).or_default() += 1;
            }
            for code in &frame.codes {
                if is_interim(*code) {
                    found.interim += 1;
                } else {
                    *found.codes.entry(*code).or_default() += 1;
                }
            }
        }
        let as_request = frame
            .response_in
            .iter()
            .map(|response| (*number, *response));
        let as_response = frame.request_in.iter().map(|request| (*request, *number));
        for (request, response) in as_request.chain(as_response) {
            if let Some(pair) = pair(&frames, request, response) {
                found.pairs.insert(pair);
            }
        }
    }
    Ok(found)
}

/// The pair of two frames, or of those that they repeat. Interim responses end no transaction, and in a
/// frame with responses of several codes it is not said which one is meant.
fn pair(frames: &HashMap<u64, Frame>, request: u64, response: u64) -> Option<Pair> {
    let first_of = |number| {
        frames
            .get(&number)
            .and_then(|frame| frames.get(&frame.original))
    };
    let request = first_of(request)?;
    let response = first_of(response)?;
    let (code, others) = response.codes.split_first()?;
    if is_interim(*code) || others.iter().any(|other| other != code) {
        return None;
    }
    Some(Pair {
        client: request.direction.0,
        server: request.direction.1,
        request_us: request.time_us,
        response_us: response.time_us,
        code: *code,
    })
}

fn frames(text: &str) -> Result<(HashMap<u64, Frame>, Vec<u64>)> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().context("no header")?.split('\t').collect();
    let mut frames = HashMap::new();
    let mut order = Vec::new();
    let mut seen: HashMap<(Direction, u64), u64> = HashMap::new();
    for line in lines {
        let cells: HashMap<&str, &str> = header.iter().copied().zip(line.split('\t')).collect();
        let cell = |name: &str| cells.get(name).copied().unwrap_or("");
        // Without a stream it is discovery over UDP, which is not ours to count.
        if cell("tcp.stream").is_empty() {
            continue;
        }
        let number: u64 = cell("frame.number").parse().context("frame.number")?;
        let direction = direction(&cell).with_context(|| format!("frame {number}"))?;
        let seq: u64 = last(cell("tcp.seq_raw")).parse().context("tcp.seq_raw")?;
        let numbers = |name: &str| -> Result<Vec<u64>> {
            values(cell(name))
                .map(|value| value.parse().with_context(|| name.to_owned()))
                .collect()
        };
        let codes = values(cell("http.response.code"))
            .map(|code| code.parse().context("http.response.code"))
            .collect::<Result<_>>()?;
        let original = *seen.entry((direction, seq)).or_insert(number);
        order.push(number);
        frames.insert(
            number,
            Frame {
                direction,
                time_us: microseconds(cell("frame.time_epoch")).context("frame.time_epoch")?,
                methods: values(cell("http.request.method"))
                    .map(str::to_owned)
                    .collect(),
                codes,
                response_in: numbers("http.response_in")?,
                request_in: numbers("http.request_in")?,
                original,
            },
        );
    }
    Ok((frames, order))
}

fn values(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(BETWEEN).filter(|value| !value.is_empty())
}

/// The innermost of several: a tunnelled frame has the addresses of each packet in it.
fn last(cell: &str) -> &str {
    values(cell).last().unwrap_or("")
}

fn direction<'a>(cell: &impl Fn(&str) -> &'a str) -> Result<Direction> {
    // What carries TCP is the last IP before it.
    let protocols = cell("frame.protocols");
    let layers: Vec<&str> = protocols
        .split(':')
        .take_while(|layer| *layer != "tcp")
        .collect();
    let version = layers
        .iter()
        .rev()
        .find(|layer| matches!(**layer, "ip" | "ipv6"));
    let (source, destination) = match version {
        Some(&"ipv6") => ("ipv6.src", "ipv6.dst"),
        _ => ("ip.src", "ip.dst"),
    };
    let address = |name: &str| -> Result<IpAddr> {
        last(cell(name))
            .parse()
            .with_context(|| format!("{name} `{}`", cell(name)))
    };
    let port = |name: &str| -> Result<u16> {
        last(cell(name))
            .parse()
            .with_context(|| format!("{name} `{}`", cell(name)))
    };
    Ok((
        (address(source)?, port("tcp.srcport")?),
        (address(destination)?, port("tcp.dstport")?),
    ))
}

/// Whole microseconds of `seconds.fraction`.
fn microseconds(text: &str) -> Result<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Ok(seconds.parse::<u64>()? * 1_000_000 + digits.parse::<u64>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "frame.number\tframe.time_epoch\tip.src\tipv6.src\ttcp.srcport\tip.dst\tipv6.dst\t\
        tcp.dstport\ttcp.stream\ttcp.seq_raw\thttp.request.method\thttp.response.code\thttp.response_in\t\
        http.request_in\tframe.protocols";

    fn rows(rows: &[&str]) -> Findings {
        findings(&format!("{HEADER}\n{}\n", rows.join("\n"))).unwrap()
    }

    const REQUEST: &str =
        "4\t10.000001999\t10.0.0.1\t\t5000\t10.0.0.2\t\t80\t0\t77\tGET\t\t6\t\teth:ip:tcp:http";
    const AGAIN: &str =
        "5\t10.5\t10.0.0.1\t\t5000\t10.0.0.2\t\t80\t0\t77\tGET\t\t\t\teth:ip:tcp:http";
    const RESPONSE: &str =
        "6\t11.25\t10.0.0.2\t\t80\t10.0.0.1\t\t5000\t0\t99\t\t404\t\t5\teth:ip:tcp:http";

    #[test]
    fn a_repeated_request_counts_apart_and_pairs_as_its_first() {
        let found = rows(&[REQUEST, AGAIN, RESPONSE]);
        assert_eq!(
            (found.requests, found.repeated_requests, found.responses),
            (1, 1, 1)
        );
        assert_eq!(found.methods.get("GET"), Some(&1));
        assert_eq!(found.codes.get(&404), Some(&1));
        assert_eq!(found.pairs.len(), 1);
        let pair = found.pairs.first().unwrap();
        assert_eq!(
            (pair.request_us, pair.response_us),
            (10_000_001, 11_250_000)
        );
        assert_eq!(pair.client.1, 5000);
    }

    #[test]
    fn discovery_over_udp_is_skipped() {
        let row = "1\t1.0\t10.0.0.1\t\t\t10.0.0.9\t\t\t\t\tM-SEARCH\t\t\t\teth:ip:udp:ssdp";
        assert_eq!(rows(&[row]), Findings::default());
    }

    #[test]
    fn several_messages_and_inner_addresses() {
        let row = "1\t1.0\t1.1.1.1 ;; 10.0.0.1\t\t5000\t1.1.1.2 ;; 10.0.0.2\t\t80\t0\t5\tGET ;; GET\t\t2 ;; 2\t\t\
            eth:ip:gre:ip:tcp:http";
        let answer =
            "2\t2.0\t10.0.0.2\t\t80\t10.0.0.1\t\t5000\t0\t9\t\t200 ;; 200\t\t\teth:ip:tcp:http";
        let found = rows(&[row, answer]);
        assert_eq!((found.requests, found.responses), (2, 2));
        assert_eq!(
            found.pairs.first().unwrap().client.0.to_string(),
            "10.0.0.1"
        );
    }

    #[test]
    fn the_inner_version_of_ip_has_the_addresses() {
        let row = "1\t1.0\t1.1.1.1\tfd00::1\t5000\t1.1.1.2\tfd00::2\t80\t0\t5\tGET\t\t1\t\teth:ip:ipv6:tcp:http";
        let (frames, _) = frames(&format!("{HEADER}\n{row}\n")).unwrap();
        assert_eq!(frames.get(&1).unwrap().direction.0.0.to_string(), "fd00::1");
    }
}
