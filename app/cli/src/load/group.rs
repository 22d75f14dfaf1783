//! Groups of clients and their lines, as they are written on the command line.

use std::time::Duration;

use linkweir_load::population::{Group, Profile};
use linkweir_record::Prefix;

const GROUP: &str = "write NAME:CIDR[,CIDR]:rtt=50ms,down=10mbit,up=1mbit,loss=1%,ttl=64";

/// A prefix of clients. With bits set behind it most likely another prefix was meant.
pub(super) fn prefix(text: &str) -> Result<Prefix, String> {
    let prefix: Prefix = text.parse().map_err(|error| format!("{error}"))?;
    if prefix.addr() == prefix.network() {
        Ok(prefix)
    } else {
        Err(format!(
            "{prefix} has bits set behind its prefix; the prefix is {}",
            prefix.trunc()
        ))
    }
}

/// `NAME:CIDR[,CIDR]:LINE`.
pub(super) fn group(text: &str) -> Result<Group, String> {
    let (name, rest) = text.split_once(':').ok_or(GROUP)?;
    // Addresses may have colons in them, a line has none.
    let (members, settings) = match rest.rsplit_once(':') {
        Some((members, settings)) if is_line(settings) => (members, settings),
        _ => (rest, ""),
    };
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(format!("the group has no name: {GROUP}"));
    }
    let members = members.split(',').map(|member| {
        let prefix = prefix(member);
        prefix.map_err(|error| format!("{error}: {GROUP}"))
    });
    Ok(Group {
        name: name.to_owned(),
        members: members.collect::<Result<_, _>>()?,
        profile: line(settings)?,
    })
}

/// Whether a text is meant as a line, right or wrong.
fn is_line(text: &str) -> bool {
    text.contains('=') || text.split(',').any(|word| word == "reorder")
}

/// `rtt=50ms,down=10mbit,...`
pub(super) fn line(text: &str) -> Result<Profile, String> {
    let mut profile = Profile::default();
    for setting in text.split(',').filter(|setting| !setting.is_empty()) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let wrong = |what: &str| format!("`{setting}`: {what}");
        match key {
            "rtt" => profile.rtt = span(value).map_err(|error| wrong(&error))?,
            "jitter" => profile.jitter = span(value).map_err(|error| wrong(&error))?,
            "reorder" if value.is_empty() => profile.reorder = true,
            "down" => profile.down.bits_per_second = Some(rate(value).ok_or_else(|| wrong(RATE))?),
            "up" => profile.up.bits_per_second = Some(rate(value).ok_or_else(|| wrong(RATE))?),
            "queue" => {
                let longest = span(value).map_err(|error| wrong(&error))?;
                (profile.down.queue, profile.up.queue) = (longest, longest);
            }
            "loss" | "loss-down" | "loss-up" => {
                let loss = share(value).ok_or_else(|| wrong(SHARE))?;
                if key != "loss-up" {
                    profile.down.loss = loss;
                }
                if key != "loss-down" {
                    profile.up.loss = loss;
                }
            }
            "burst" => {
                let burst = number(value).ok_or_else(|| wrong("write a number, such as 3"))?;
                (profile.down.burst, profile.up.burst) = (burst, burst);
            }
            "ttl" => {
                let ttl = value.parse().ok().filter(|ttl| *ttl > 0);
                profile.ttl = ttl.ok_or_else(|| wrong("a TTL is 1 to 255"))?;
            }
            "mtu" => {
                let mtu = value
                    .parse()
                    .map_err(|_| wrong("an MTU is a number of bytes"))?;
                profile.mtu = Some(mtu);
            }
            _ => {
                return Err(wrong(
                    "no such setting: rtt, jitter, reorder, down, up, queue, loss, loss-down, loss-up, burst, ttl, mtu",
                ));
            }
        }
    }
    Ok(profile)
}

const RATE: &str = "write a rate such as 512kbit, 10mbit or 1gbit";
const SHARE: &str = "write a share such as 1% or 0.01";

/// A line as [`line()`] reads it: what is as it is without a line is left out.
pub(super) fn words(profile: &Profile) -> String {
    let none = Profile::default();
    let (down, up) = (&profile.down, &profile.up);
    let time = |name: &str, time: Duration, none: Duration| {
        (time != none).then(|| {
            let time = humantime::format_duration(time).to_string();
            format!("{name}={}", time.replace(' ', ""))
        })
    };
    let rate = |name: &str, bits: Option<u64>| bits.map(|bits| format!("{name}={}", bits_of(bits)));
    let number = |name: &str, number: f64, none: f64| {
        (number.total_cmp(&none).is_ne()).then(|| format!("{name}={number}"))
    };
    let loss = if down.loss.total_cmp(&up.loss).is_eq() {
        [number("loss", down.loss, 0.0), None]
    } else {
        [
            number("loss-down", down.loss, 0.0),
            number("loss-up", up.loss, 0.0),
        ]
    };
    let settings = [
        time("rtt", profile.rtt, none.rtt),
        time("jitter", profile.jitter, none.jitter),
        profile.reorder.then(|| "reorder".to_owned()),
        rate("down", down.bits_per_second),
        rate("up", up.bits_per_second),
        time("queue", down.queue, none.down.queue),
    ];
    let others = [
        number("burst", down.burst, none.down.burst),
        (profile.ttl != none.ttl).then(|| format!("ttl={}", profile.ttl)),
        profile.mtu.map(|mtu| format!("mtu={mtu}")),
    ];
    let all = settings.into_iter().chain(loss).chain(others);
    all.flatten().collect::<Vec<_>>().join(",")
}

/// A rate in the largest unit that needs no fraction.
fn bits_of(bits: u64) -> String {
    let units = [
        (1_000_000_000, "gbit"),
        (1_000_000, "mbit"),
        (1_000, "kbit"),
    ];
    let whole = units.iter().find(|(unit, _)| bits.is_multiple_of(*unit));
    match whole {
        Some((unit, name)) => format!("{}{name}", bits / unit),
        None => format!("{bits}bit"),
    }
}

/// A span of time, which may be zero.
fn span(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "write a time with its unit, such as 50ms".to_owned())
}

/// Bits per second.
fn rate(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at_checked(at)?;
    let scale = match unit {
        "bit" => 1,
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        _ => return None,
    };
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(scale)
        .filter(|bits| *bits > 0)
}

/// A share of one: `1%`, `0.01`.
fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_with_everything() {
        let dsl = group("dsl:10.9.0.0/24,10.9.2.0/24:rtt=50ms,jitter=5ms,reorder,down=10mbit,up=512kbit,queue=40ms,loss=1%,loss-up=0.5%,burst=3,ttl=57,mtu=1492").unwrap();
        assert_eq!((dsl.name.as_str(), dsl.members.len()), ("dsl", 2));
        let line = dsl.profile;
        assert_eq!(line.rtt, Duration::from_millis(50));
        assert_eq!(line.jitter, Duration::from_millis(5));
        assert!(line.reorder);
        assert_eq!(line.down.bits_per_second, Some(10_000_000));
        assert_eq!(line.up.bits_per_second, Some(512_000));
        assert_eq!(line.up.queue, Duration::from_millis(40));
        assert_eq!((line.down.loss, line.up.loss), (0.01, 0.005));
        assert_eq!((line.down.burst, line.up.burst), (3.0, 3.0));
        assert_eq!((line.ttl, line.mtu), (57, Some(1492)));
    }

    #[test]
    fn a_line_is_told_as_it_is_read() {
        for text in [
            "",
            "rtt=50ms,jitter=5ms,reorder,down=10mbit,up=512kbit,queue=40ms,loss-down=0.01,loss-up=0.005,burst=3,ttl=57,mtu=1492",
            "rtt=1s500ms,down=1500bit,up=2gbit,loss=0.25",
            "loss-up=0.5",
        ] {
            assert_eq!(words(&line(text).unwrap()), text);
        }
    }

    #[test]
    fn addresses_with_colons() {
        let mobile = group("mobile:fd09::/112:rtt=80ms").unwrap();
        assert_eq!(mobile.members, ["fd09::/112".parse().unwrap()]);
        let plain = group("plain:fd09::/112").unwrap();
        assert_eq!(
            (plain.members, plain.profile),
            (mobile.members, Profile::default())
        );
        assert!(group("r:fd09::/112:reorder").unwrap().profile.reorder);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("dsl", "NAME:CIDR"),
            (":10.0.0.0/8", "no name"),
            ("dsl:nowhere", "\"nowhere\" is not a valid network"),
            (
                "dsl:10.1.2.3/8",
                "10.1.2.3/8 has bits set behind its prefix; the prefix is 10.0.0.0/8",
            ),
            ("dsl:10.0.0.0/8:rtt=50", "`rtt=50`: write a time"),
            ("dsl:10.0.0.0/8:up=10", "`up=10`: write a rate"),
            ("dsl:10.0.0.0/8:up=0mbit", "write a rate"),
            ("dsl:10.0.0.0/8:up=99999999999gbit", "write a rate"),
            ("dsl:10.0.0.0/8:loss=101%", "write a share"),
            ("dsl:10.0.0.0/8:loss=nan", "write a share"),
            ("dsl:10.0.0.0/8:ttl=0", "1 to 255"),
            ("dsl:10.0.0.0/8:ttl=64,speed=9", "no such setting"),
        ] {
            let said = group(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
