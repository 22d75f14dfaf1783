//! Which packets a record stands for.

use std::net::IpAddr;

use linkweir_capture::chosen::{Choice, Until};
use linkweir_record::{FlowKind, HttpKind, RecordKind, Value};

/// The value of a column, as far as it says which packets are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got<'a> {
    None,
    Address(IpAddr),
    Number(u64),
    Word(&'a str),
    /// Neither of these: valid for no column.
    Other,
}

/// A kind of record whose packets can be found.
pub(crate) trait OfPackets: RecordKind {
    /// The packets of a record whose columns are read by name; the error is the column that is missing.
    fn choice<'a>(column: impl Fn(&'static str) -> Got<'a>) -> Result<Choice, &'static str>;
}

impl OfPackets for HttpKind {
    fn choice<'a>(column: impl Fn(&'static str) -> Got<'a>) -> Result<Choice, &'static str> {
        let time = |name| match column(name) {
            Got::None => Ok(None),
            Got::Number(time) => Ok(Some(time)),
            Got::Address(_) | Got::Word(_) | Got::Other => Err(name),
        };
        let (request, response) = (time("request_ts_ns")?, time("response_ts_ns")?);
        let from_ns = request.or(response).ok_or("request_ts_ns")?;
        let last_ns = response.unwrap_or(from_ns).max(from_ns);
        let version = column("http_version");
        let is_secured = matches!(column("tls_version"), Got::Word(_));
        let is_stream = matches!(version, Got::Word("2" | "3"));
        let end_ns = from_ns.saturating_add(number(column("ttlb_ns")).unwrap_or_default());
        let (from_ns, until) = if is_secured || is_stream {
            // Nothing of it is to be understood without the beginning of its connection.
            (0, Until::Time(last_ns.max(end_ns)))
        } else {
            (from_ns, Until::NextRequest(last_ns))
        };
        Ok(Choice {
            protocol: if version == Got::Word("3") { 17 } else { 6 },
            client: end(&column, "client_ip", "client_port")?,
            server: end(&column, "server_ip", "server_port")?,
            from_ns,
            until,
        })
    }
}

impl OfPackets for FlowKind {
    fn choice<'a>(column: impl Fn(&'static str) -> Got<'a>) -> Result<Choice, &'static str> {
        let protocol = match column("protocol") {
            Got::Word("tcp") => 6,
            Got::Word("udp") => 17,
            _ => return Err("protocol"),
        };
        Ok(Choice {
            protocol,
            client: end(&column, "c_ip", "c_port")?,
            server: end(&column, "s_ip", "s_port")?,
            from_ns: number(column("first")).ok_or("first")?,
            until: Until::Time(number(column("last")).ok_or("last")?),
        })
    }
}

const fn number(got: Got<'_>) -> Option<u64> {
    match got {
        Got::Number(number) => Some(number),
        _ => None,
    }
}

fn end<'a>(
    column: &impl Fn(&'static str) -> Got<'a>,
    address: &'static str,
    port: &'static str,
) -> Result<(IpAddr, u16), &'static str> {
    let Got::Address(ip) = column(address) else {
        return Err(address);
    };
    let number = number(column(port)).and_then(|port| u16::try_from(port).ok());
    Ok((ip, number.ok_or(port)?))
}

/// The packets of a record; `None` of one that has no times.
pub(super) fn of_view<K: OfPackets>(view: &K::View<'_>) -> Option<Choice> {
    let column = |name| match K::column(name).map(|at| K::value(view, at)) {
        Some(Value::Ip(address)) => Got::Address(address),
        Some(Value::Port(port)) => Got::Number(u64::from(port)),
        Some(Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) | Value::Millis(n)) => {
            Got::Number(n)
        }
        Some(Value::Word(word)) => Got::Word(word),
        _ => Got::None,
    };
    K::choice(column).ok()
}

/// The packets of a record of jsonl; the error is the column that is missing or not valid.
pub(super) fn of_json<K: OfPackets>(
    record: &serde_json::Map<String, serde_json::Value>,
) -> Result<Choice, &'static str> {
    let column = |name| match record.get(name) {
        Some(serde_json::Value::String(text)) => match text.parse() {
            Ok(address) => Got::Address(address),
            Err(_) => Got::Word(text),
        },
        Some(serde_json::Value::Number(number)) => number.as_u64().map_or(Got::Other, Got::Number),
        None | Some(serde_json::Value::Null) => Got::None,
        Some(_) => Got::Other,
    };
    K::choice(column)
}
