//! The flags of the packets that are written.

use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueHint};

use crate::exit::Wrong;
use crate::units;

/// Which packets are written, and how long they wait for that.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packets")]
pub(crate) struct PacketArgs {
    /// Write packets as they were captured to this file, as pcapng (timestamps in nanoseconds, for example
    /// for Wireshark): those of the records that `--pcap-filter` chooses, and those around `--alert`. One
    /// file, complete at the end; SIGHUP completes it and begins the next. Captures that can be read twice
    /// (files) are, and the packets chosen exactly; those of an interface, a feed or a pipe wait in a ring.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap_out: Option<String>,

    /// Choose the packets of records that match, for example `status_code >= 500 and host = "shop.test"`.
    /// Conditions on the fields of jsonl: `=`, `!=`, `<`, `<=`, `>`, `>=`, `~` (regular expression, ignoring
    /// case), `in (A, B)`, a field alone (it is not empty); `and`, `or`, `not`, parentheses. Values may be
    /// `500ms`, `64KiB`, `10.0.0.0/8`, `"text"`; a bare number is in the unit of the field (times of `http` in
    /// nanoseconds, of `flows` in milliseconds); a comparison with an empty field is false.
    ///
    /// Of a flow, all its packets from the first to the last are written; of an HTTP transaction, those of
    /// its connection in both directions, from the first packet of the request until, exclusive, the next
    /// segment that begins with a request after the response (a SYN of the client, 60 s without a packet).
    /// Of HTTP/2, HTTP/3 and TLS, whose packets cannot be understood alone, they are those from the first
    /// packet between these addresses and ports to the last byte of the response.
    #[arg(long, value_name = "EXPR", requires = "pcap_out")]
    pub(crate) pcap_filter: Option<String>,

    /// Choose all packets from this long before an alert begins to fire, counted from the end of the
    /// interval, until it is resolved or has no data; `RULE=DURATION` sets it for one `--alert`. May be
    /// repeated [default: 10s, without --pcap-filter].
    #[arg(long, value_name = "[RULE=]DURATION", requires_all = ["pcap_out", "alert"])]
    pub(crate) pcap_around: Vec<String>,

    /// Write the TLS secrets that are known of a connection before its first packet (pcapng Decryption Secrets
    /// Blocks), so that other programs can decrypt it: whoever has the file can read it. Connections whose
    /// beginning is not written are left out.
    #[arg(long, requires = "pcap_out")]
    pub(crate) pcap_secrets: bool,

    /// Maximum size of the packets that wait in the ring; the oldest leave first. Records and alerts of
    /// which packets had left are counted, as not written to `--pcap-out`.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = units::size)]
    pub(crate) pcap_ring: u64,

    /// Maximum time, by the capture, that packets wait in the ring: more than `--timeout` for unanswered
    /// requests, more than the idle time for flows.
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = units::duration)]
    pub(crate) pcap_ring_time: Duration,
}

impl PacketArgs {
    /// The file that is written, with its flag.
    pub(crate) fn written(&self) -> Option<(&'static str, &Path)> {
        let path = self.pcap_out.as_deref().map(Path::new);
        path.map(|path| ("--pcap-out", path))
    }
}

/// Time before an alert where nothing else is said.
const AROUND: Duration = Duration::from_secs(10);

/// How long before alerts packets are chosen.
#[derive(Debug, Default)]
pub(super) struct Around {
    all: Option<Duration>,
    /// Rules as their events name them.
    of: Vec<(String, Duration)>,
}

impl Around {
    /// Of the rules `alerts`.
    pub(super) fn read(args: &PacketArgs, alerts: &[String]) -> anyhow::Result<Self> {
        let joined = |rule: &str| rule.split_whitespace().collect::<Vec<_>>().join(" ");
        let wrong = |message: String| anyhow!(Wrong(format!("--pcap-around: {message}")));
        let mut around = Self::default();
        for text in &args.pcap_around {
            let Some((rule, time)) = text.rsplit_once('=') else {
                around.all = Some(units::duration(text).map_err(wrong)?);
                continue;
            };
            let rule = joined(rule);
            if !alerts.iter().any(|alert| joined(alert) == rule) {
                return Err(wrong(format!(
                    "`{text}`: no --alert `{rule}`; write a duration, or RULE=DURATION with the rule of an --alert"
                )));
            }
            around
                .of
                .push((rule, units::duration(time).map_err(wrong)?));
        }
        if args.pcap_around.is_empty() && args.pcap_filter.is_none() && !alerts.is_empty() {
            around.all = Some(AROUND);
        }
        Ok(around)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_none() && self.of.is_empty()
    }

    /// How long before an alert of this rule.
    pub(super) fn of(&self, rule: &str) -> Option<Duration> {
        let own = self.of.iter().find(|(one, _)| one == rule);
        own.map(|(_, time)| *time).or(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(around: &[&str], alerts: &[&str]) -> Result<Around, String> {
        let args = PacketArgs {
            pcap_out: Some("x".to_owned()),
            pcap_filter: None,
            pcap_secrets: false,
            pcap_around: around.iter().map(|text| (*text).to_owned()).collect(),
            pcap_ring: 1,
            pcap_ring_time: AROUND,
        };
        let alerts: Vec<String> = alerts.iter().map(|text| (*text).to_owned()).collect();
        Around::read(&args, &alerts).map_err(|error| error.to_string())
    }

    #[test]
    fn of_all_alerts_or_of_one() {
        let rules = ["drops > 0", "p95 >=  5 ms"];
        let seconds = |around: &Around, rule| around.of(rule).map(|time| time.as_secs());
        let of_one = read(&["p95 >= 5 ms=3s"], &rules).unwrap();
        assert_eq!(seconds(&of_one, "p95 >= 5 ms"), Some(3));
        assert_eq!(seconds(&of_one, "drops > 0"), None);
        let both = read(&["drops > 0=1m", "2s"], &rules).unwrap();
        assert_eq!(seconds(&both, "p95 >= 5 ms"), Some(2));
        assert_eq!(seconds(&both, "drops > 0"), Some(60));
        assert_eq!(seconds(&read(&[], &rules).unwrap(), "drops > 0"), Some(10));
        assert!(read(&[], &[]).unwrap().is_empty());
        for (wrong, words) in [
            ("drops > 1=3s", "no --alert `drops > 1`"),
            ("p95 >= 5 ms", "no --alert `p95 >`"),
            ("drops > 0=3", "unit"),
            ("soon", "unit"),
        ] {
            let error = read(&[wrong], &rules).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
