//! What one program said of a capture.

use super::curve::Curve;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// Client, server and when the response was seen, in microseconds since 1970: names a transaction.
pub(super) type Key = ((IpAddr, u16), (IpAddr, u16), u64);

/// The findings of a program.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) requests: u64,
    pub(super) responses: u64,
    /// 1xx responses other than 101.
    pub(super) interim: u64,
    pub(super) unanswered: u64,
    /// Request targets and how often each occurred.
    pub(super) uris: BTreeMap<String, u64>,
    pub(super) methods: BTreeMap<String, u64>,
    /// Responses by status code, interim ones included.
    pub(super) codes: BTreeMap<u16, u64>,
    /// Response times of final responses, nanoseconds.
    pub(super) times: Curve,
    /// Times to last byte, nanoseconds; only ours.
    pub(super) last_byte: Curve,
    /// The response time of each transaction, nanoseconds.
    pub(super) by_transaction: HashMap<Key, u64>,
}

/// The fields asked of tshark, in this order.
pub(super) const TSHARK_FIELDS: [&str; 11] = [
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "http.request.method",
    "http.request.uri",
    "http.response.code",
    "http.time",
];

/// What tshark puts between the values of a field that a frame has several of: not in any URI.
pub(super) const BETWEEN: char = '\u{1}';

impl Sample {
    pub(super) fn is_interim(code: u16) -> bool {
        (100..200).contains(&code) && code != 101
    }

    /// Lengths of all request targets, characters.
    pub(super) fn uri_lengths(&self) -> Curve {
        let lengths = self
            .uris
            .iter()
            .flat_map(|(uri, count)| (0..*count).map(|_| uri.len() as u64));
        lengths.collect()
    }

    /// The same without the queries.
    pub(super) fn path_lengths(&self) -> Curve {
        let path = |uri: &str| uri.find('?').unwrap_or(uri.len()) as u64;
        let lengths = self
            .uris
            .iter()
            .flat_map(|(uri, count)| (0..*count).map(move |_| path(uri)));
        lengths.collect()
    }

    /// From the summary and the records (`jsonl`) of `linkweir http`.
    ///
    /// # Errors
    /// They are not what they should be.
    pub(super) fn ours(summary: &Value, records: &str) -> Result<Self> {
        let count = |path: &str| {
            summary
                .pointer(path)
                .and_then(Value::as_u64)
                .with_context(|| format!("no {path} in the summary"))
        };
        let counts = |path: &str| {
            let object = summary.pointer(path).and_then(Value::as_object);
            object.with_context(|| format!("no {path} in the summary"))
        };
        let mut sample = Self {
            packets: count("/packets")?,
            bytes: count("/bytes")?,
            requests: count("/http/requests")?,
            responses: count("/http/responses")?,
            interim: count("/http/interim_responses")?,
            unanswered: count("/http/unanswered")?,
            ..Self::default()
        };
        for (method, count) in counts("/http/methods")? {
            sample
                .methods
                .insert(method.clone(), count.as_u64().context("a count")?);
        }
        for (code, count) in counts("/http/status_codes")? {
            sample
                .codes
                .insert(code.parse()?, count.as_u64().context("a count")?);
        }
        let (mut times, mut last_byte) = (Vec::new(), Vec::new());
        for line in records.lines() {
            let record: Value = serde_json::from_str(line).context("parse a record")?;
            let number = |name: &str| record.get(name).and_then(Value::as_u64);
            let side = |ip: &str, port: &str| -> Result<(IpAddr, u16)> {
                let ip = record.get(ip).and_then(Value::as_str).context("address")?;
                Ok((ip.parse()?, u16::try_from(number(port).context("port")?)?))
            };
            if let Some(uri) = record.get("uri").and_then(Value::as_str) {
                *sample.uris.entry(uri.to_owned()).or_default() += 1;
            }
            if let (Some(time), Some(at)) = (number("response_time_ns"), number("response_ts_ns")) {
                let (client, server) = (
                    side("client_ip", "client_port")?,
                    side("server_ip", "server_port")?,
                );
                times.push(time);
                sample
                    .by_transaction
                    .insert((client, server, at / 1000), time);
                last_byte.extend(number("ttlb_ns"));
            }
        }
        sample.times = times.into_iter().collect();
        sample.last_byte = last_byte.into_iter().collect();
        Ok(sample)
    }

    /// From the fields [`TSHARK_FIELDS`] that tshark printed, a line a frame.
    ///
    /// # Errors
    /// A line is not what it should be.
    pub(super) fn tshark(lines: &str) -> Result<Self> {
        let mut sample = Self::default();
        let mut times = Vec::new();
        for line in lines.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [
                at,
                src4,
                src6,
                src_port,
                dst4,
                dst6,
                dst_port,
                methods,
                uris,
                codes,
                waits,
            ] = *<&[&str; 11]>::try_from(fields.as_slice())
                .with_context(|| format!("tshark: {line}"))?;
            for method in values(methods) {
                sample.requests += 1;
                *sample.methods.entry(method.to_owned()).or_default() += 1;
            }
            for uri in values(uris) {
                *sample.uris.entry(uri.to_owned()).or_default() += 1;
            }
            let mut interim = false;
            for code in values(codes) {
                let code: u16 = code.parse().with_context(|| format!("tshark: {line}"))?;
                sample.responses += 1;
                *sample.codes.entry(code).or_default() += 1;
                interim = Self::is_interim(code);
                sample.interim += u64::from(interim);
            }
            if interim {
                continue;
            }
            for wait in values(waits) {
                let time = nanos(wait).with_context(|| format!("tshark: {line}"))?;
                times.push(time);
                let side = |four: &str, six: &str, port: &str| -> Option<(IpAddr, u16)> {
                    let ip = if four.is_empty() { six } else { four };
                    Some((ip.parse().ok()?, port.parse().ok()?))
                };
                // Tunnelled packets have several addresses: such a frame names no transaction here.
                if let (Some(server), Some(client)) =
                    (side(src4, src6, src_port), side(dst4, dst6, dst_port))
                {
                    let at = nanos(at).context("time of a frame")? / 1000;
                    sample.by_transaction.insert((client, server, at), time);
                }
            }
        }
        sample.times = times.into_iter().collect();
        Ok(sample)
    }
}

fn values(field: &str) -> impl Iterator<Item = &str> {
    field.split(BETWEEN).filter(|value| !value.is_empty())
}

/// Seconds with up to nine decimals, as nanoseconds.
fn nanos(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{part:0<9}");
    let part: u64 = digits.get(..9)?.parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_say_the_same_of_a_transaction() {
        let summary = serde_json::json!({ "packets": 4, "bytes": 900, "http": {
            "requests": 1, "responses": 2, "interim_responses": 1, "unanswered": 0,
            "methods": { "POST": 1 }, "status_codes": { "100": 1, "200": 1 },
        }});
        let record = concat!(
            r#"{"client_ip":"10.0.0.1","client_port":5000,"server_ip":"10.0.0.2","server_port":80,"#,
            r#""request_ts_ns":1000000000,"response_ts_ns":1002500000,"response_time_ns":2500000,"#,
            r#""ttlb_ns":2600000,"uri":"/a,b"}"#,
        );
        let ours = Sample::ours(&summary, record).unwrap();
        let theirs = Sample::tshark(concat!(
            "1.000000000\t10.0.0.1\t\t5000\t10.0.0.2\t\t80\tPOST\t/a,b\t\t\n",
            "1.001000000\t10.0.0.2\t\t80\t10.0.0.1\t\t5000\t\t\t100\t0.001\n",
            "1.002500000\t10.0.0.2\t\t80\t10.0.0.1\t\t5000\t\t\t200\t0.002500000\n",
        ))
        .unwrap();
        assert_eq!(ours.by_transaction, theirs.by_transaction);
        assert_eq!(ours.by_transaction.len(), 1);
        assert_eq!((ours.requests, ours.responses, ours.interim), (1, 2, 1));
        assert_eq!(
            (theirs.requests, theirs.responses, theirs.interim),
            (1, 2, 1)
        );
        assert_eq!(ours.uris, theirs.uris);
        assert_eq!(ours.codes, theirs.codes);
        assert_eq!(ours.times, theirs.times);
        assert_eq!(ours.last_byte.max(), Some(2_600_000));
    }

    #[test]
    fn seconds_become_nanoseconds() {
        assert_eq!(
            nanos("1393978285.777375000"),
            Some(1_393_978_285_777_375_000)
        );
        assert_eq!(nanos("0.5"), Some(500_000_000));
        assert_eq!(nanos("-0.5"), None);
    }
}
