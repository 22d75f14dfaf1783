//! What `tcptrace -l -r` prints: connections, each with two columns.

use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Address and port.
pub(super) type End = (IpAddr, u16);

/// One connection as tcptrace tells it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Connection {
    /// Its number in the file.
    pub(super) number: u32,
    /// Hosts `a` and `b`: the first packet is mostly from `a`.
    pub(super) ends: [End; 2],
    /// Of each host what stands in its column, by label, as text without unit.
    pub(super) columns: [BTreeMap<String, String>; 2],
}

impl Connection {
    /// A number of one host; none where there is no such label, or `NA`.
    pub(super) fn number_of(&self, host: usize, label: &str) -> Option<f64> {
        self.columns.get(host)?.get(label)?.parse().ok()
    }
}

/// Reads what tcptrace printed.
///
/// # Errors
/// A connection has no two hosts.
pub(super) fn parse(text: &str) -> Result<Vec<Connection>> {
    let mut connections = Vec::new();
    let mut number = None;
    let mut ends = Vec::new();
    let mut columns = [BTreeMap::new(), BTreeMap::new()];
    let mut close = |number: Option<u32>,
                     ends: &mut Vec<End>,
                     columns: &mut [BTreeMap<String, String>; 2]|
     -> Result<()> {
        if let Some(number) = number {
            let ends: [End; 2] = std::mem::take(ends)
                .try_into()
                .ok()
                .with_context(|| format!("connection {number}: not two hosts"))?;
            connections.push(Connection {
                number,
                ends,
                columns: std::mem::take(columns),
            });
        }
        Ok(())
    };
    for line in text.lines() {
        let words = line.trim();
        if let Some(rest) = words.strip_prefix("TCP connection ") {
            if let Some(new) = rest.strip_suffix(':').and_then(|n| n.parse().ok()) {
                close(number, &mut ends, &mut columns)?;
                number = Some(new);
            }
        } else if let Some(host) = words.strip_prefix("host ") {
            let (_, end) = host.split_once(':').context("a host without a name")?;
            ends.push(read_end(end.trim()).with_context(|| line.to_owned())?);
        } else if let Some((label, values)) = columns_of(words) {
            for (column, value) in columns.iter_mut().zip(values) {
                // The second line of a label is another unit of the same.
                column.entry(label.to_owned()).or_insert(value);
            }
        }
    }
    close(number, &mut ends, &mut columns)?;
    Ok(connections)
}

/// `address:port`, the address of version 6 without brackets.
pub(super) fn read_end(text: &str) -> Result<End> {
    let (address, port) = text.rsplit_once(':').context("no port")?;
    let address = address.trim_matches(['[', ']']);
    // tcptrace loses a colon of addresses that begin with two.
    let parsed = address
        .parse()
        .or_else(|_| format!(":{address}").parse())
        .with_context(|| format!("`{address}`"))?;
    Ok((parsed, port.parse().with_context(|| format!("`{port}`"))?))
}

/// The label of a line and the first word of each column.
fn columns_of(line: &str) -> Option<(&str, [String; 2])> {
    let (label, rest) = line.split_once(':')?;
    let (left, right) = rest.split_once(&format!("{label}:"))?;
    let first = |text: &str| text.split_whitespace().next().unwrap_or("").to_owned();
    Some((label, [first(left), first(right)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
1 TCP connection traced:
TCP connection 1:
\thost a:        2001:0db8:0001::703a:5332:47f3:1d22:52308
\thost b:        10.0.0.2:80
\tcomplete conn: no\t(SYNs: 2)  (FINs: 0)
\tfirst packet:  Mon Jul 14 17:10:27.748442 1997
   a->b:\t\t\t      b->a:
     total packets:             8           total packets:            10      
     SYN/FIN pkts sent:       1/1           SYN/FIN pkts sent:       1/0      
     mss requested:          1460 bytes     mss requested:             0 bytes
     missed data:              NA           missed data:               1 bytes
     initial window:          280 bytes     initial window:           64 bytes
     initial window:            1 pkts      initial window:            2 pkts 

     RTT min:                 1.5 ms        RTT min:                 0.1 ms   
";

    #[test]
    fn columns_are_read_by_label() {
        let read = parse(TEXT).unwrap();
        let [one] = read.as_slice() else {
            panic!("not one connection")
        };
        assert_eq!((one.number, one.ends[0].1, one.ends[1].1), (1, 52_308, 80));
        assert_eq!(one.number_of(0, "total packets"), Some(8.0));
        assert_eq!(one.number_of(1, "total packets"), Some(10.0));
        assert_eq!(one.number_of(0, "mss requested"), Some(1460.0));
        assert_eq!(one.number_of(0, "initial window"), Some(280.0));
        assert_eq!(one.number_of(0, "missed data"), None);
        assert_eq!(one.number_of(1, "RTT min"), Some(0.1));
        assert_eq!(one.columns[1]["SYN/FIN pkts sent"], "1/0");
    }
}
