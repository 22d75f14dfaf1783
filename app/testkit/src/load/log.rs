//! The access log of [`Nginx`](super::Nginx): one line for each request.

use std::net::IpAddr;

/// What nginx writes: its `log_format`. The line ends with the request, which may hold blanks.
pub const FORMAT: &str = "$msec $remote_addr $remote_port $connection $connection_requests $status $bytes_sent $request_time $request";

/// A request that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Visit {
    /// When the last byte of the answer was handed to the kernel: seconds since 1970, to the
    /// millisecond.
    pub ended_s: f64,
    /// Address of the client.
    pub client: IpAddr,
    /// Port of the client.
    pub port: u16,
    /// Number of the connection, from the start of nginx on.
    pub connection: u64,
    /// Which request of its connection this was, from 1 on.
    pub request_of_connection: u64,
    /// Status code.
    pub status: u16,
    /// Bytes of the answer with its head.
    pub bytes: u64,
    /// Seconds from the first byte of the request that was read to the last of the answer that was
    /// handed to the kernel, to the millisecond.
    pub seconds: f64,
    /// The method.
    pub method: String,
    /// The target, as it came.
    pub target: String,
}

/// The lines of a log; a line that is being written yet is left out.
#[must_use]
pub fn read(text: &str) -> Vec<Visit> {
    let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    complete.lines().filter_map(visit).collect()
}

fn visit(line: &str) -> Option<Visit> {
    let mut words = line.split(' ');
    Some(Visit {
        ended_s: words.next()?.parse().ok()?,
        client: words.next()?.parse().ok()?,
        port: words.next()?.parse().ok()?,
        connection: words.next()?.parse().ok()?,
        request_of_connection: words.next()?.parse().ok()?,
        status: words.next()?.parse().ok()?,
        bytes: words.next()?.parse().ok()?,
        seconds: words.next()?.parse().ok()?,
        method: words.next()?.to_owned(),
        target: words.next()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_half_a_line_is_not() {
        let line = "1763800000.123 10.128.0.7 33001 12 3 200 276 0.004 GET /small?a=1 HTTP/1.1";
        let visits = read(&format!("{line}\n1763800000.124 10.128."));
        let [visit] = visits.as_slice() else {
            panic!("{visits:?}")
        };
        assert_eq!(visit.client, IpAddr::from([10, 128, 0, 7]));
        assert_eq!((visit.port, visit.status, visit.bytes), (33001, 200, 276));
        assert_eq!((visit.connection, visit.request_of_connection), (12, 3));
        assert_eq!(visit.seconds, 0.004);
        assert_eq!(
            (visit.method.as_str(), visit.target.as_str()),
            ("GET", "/small?a=1")
        );
        assert_eq!(read(line), []);
    }
}
