//! The archive in the console: years of it, by links.
//!
//! A page is a picture and lists of links to others; what is shown stands in the address, in the words of `archive
//! plot`. No script, no form: an address can be kept and sent.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Parser;
use linkweir_console::{Page, Pages};
use linkweir_record::human;
use linkweir_report::page::escape;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::args::{PlotArgs, Span};
use super::select::{Held, View, views};
use super::{in_order, open, plot, spread, unreadable, wrong};
use crate::exit::Wrong;
use crate::units::{Moment, moment};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const PAGE: &str = "/archive";
const PICTURE: &str = "/archive.svg";
/// What stands in an address as it is.
const KEPT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b':');
/// What an address may say, and links keep.
const WORDS: [&str; 7] = [
    "series",
    "span",
    "from",
    "to",
    "distribution",
    "against",
    "scale",
];

/// The pages of an archive, which may be written meanwhile.
#[derive(Debug)]
pub(crate) struct Browser {
    path: PathBuf,
}

impl Browser {
    /// Those of this file.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn picture(&self, choice: &Choice) -> anyhow::Result<String> {
        let (svg, _) = plot::draw(&choice.args(&self.path)?)?;
        Ok(svg)
    }

    fn html(&self, choice: &Choice) -> anyhow::Result<String> {
        let args = choice.args(&self.path)?;
        let mut reader = open(&self.path)?;
        let held = Held::of(&mut reader).map_err(|fault| unreadable(&self.path, &fault))?;
        let names = names(&views(reader.catalogue()));
        if !names.contains(&args.series) {
            return Err(wrong(format!("no series `{}`", args.series)));
        }
        let (from, to) = shown(&held, &args);
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let title = format!("{} of {}", args.series, escape(&file));
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
             <meta name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/assets/app.css\"></head>\n\
             <body><header class=\"bar\"><div class=\"brand\"><h1>linkweir</h1></div>\
             <div class=\"source\"><span class=\"source-name\">{}, {}</span></div>\
             <div class=\"controls\"><a class=\"button\" href=\"/\">Live</a></div></header>\n\
             <main class=\"archive\">\n<img src=\"{PICTURE}?{}\" alt=\"{title}, {}\">\n",
            escape(&file),
            spread::between(held.oldest, held.newest),
            escape(&choice.query()),
            spread::between(from, to)
        );
        let lists = [
            ("Time", times(choice, &args)),
            ("Calendar", calendar(choice, &held, from, to)),
            ("Neighbours", neighbours(choice, &held, from, to)),
            ("Distribution", distributions(choice)),
            ("Compared with", comparisons(choice, &held, from, to)),
            ("Series", series(choice, &names, &args.series)),
        ];
        for (name, links) in lists.iter().filter(|(_, links)| !links.is_empty()) {
            writeln!(out, "<h2>{name}</h2><p>{links}</p>")?;
        }
        out.push_str("</main></body></html>\n");
        Ok(out)
    }
}

impl Pages for Browser {
    fn has(&self, path: &str) -> bool {
        [PAGE, PICTURE].contains(&path)
    }

    fn page(&self, path: &str, query: &str) -> Page {
        let choice = Choice::read(query);
        let made = match path {
            PICTURE => self.picture(&choice).map(Page::Svg),
            _ => self.html(&choice).map(Page::Html),
        };
        made.unwrap_or_else(|error| match error.is::<Wrong>() {
            true => Page::Refused(error.to_string()),
            false => Page::Failed(error.to_string()),
        })
    }
}

/// What an address says, word by word.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice([Option<String>; WORDS.len()]);

impl Choice {
    fn read(query: &str) -> Self {
        let of = |word: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let (_, value) = pairs.find(|(name, _)| *name == word)?;
            Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
        };
        Self(WORDS.map(of))
    }

    /// The same with other words; `None` takes one away.
    fn with(&self, words: &[(&str, Option<&str>)]) -> Self {
        let mut values = self.0.clone();
        for (value, name) in values.iter_mut().zip(WORDS) {
            if let Some((_, new)) = words.iter().find(|(word, _)| *word == name) {
                *value = new.map(str::to_owned);
            }
        }
        Self(values)
    }

    /// Another time, compared with none.
    fn at(&self, from: &str, to: &str) -> Self {
        self.with(&[
            ("span", None),
            ("from", Some(from)),
            ("to", Some(to)),
            ("against", None),
        ])
    }

    fn words(&self) -> impl Iterator<Item = (&str, &str)> {
        let words = WORDS.into_iter().zip(&self.0);
        words.filter_map(|(word, value)| Some((word, value.as_deref()?)))
    }

    fn query(&self) -> String {
        let pair = |(word, value)| format!("{word}={}", utf8_percent_encode(value, &KEPT));
        let pairs: Vec<String> = self.words().map(pair).collect();
        pairs.join("&")
    }

    /// As flags of the command, which checks them.
    fn args(&self, path: &std::path::Path) -> anyhow::Result<PlotArgs> {
        #[derive(Parser)]
        struct Flags {
            #[command(flatten)]
            plot: PlotArgs,
        }
        let flags = self
            .words()
            .map(|(word, value)| format!("--{word}={value}"));
        let fixed = ["plot".into(), path.into(), "--output".into(), "-".into()];
        let words = fixed.into_iter().chain(flags.map(Into::into));
        let words: Vec<std::ffi::OsString> = words.collect();
        let flags = Flags::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let text = text.split("\n\n").next().unwrap_or_default();
            let text = text.strip_prefix("error: ").unwrap_or(text);
            wrong(text.split_whitespace().collect::<Vec<_>>().join(" "))
        })?;
        in_order(flags.plot.from, flags.plot.to)?;
        Ok(flags.plot)
    }

    /// A link to it; the one that is shown already is marked.
    fn link(&self, shown: &Self, text: &str) -> String {
        let mark = if self == shown {
            " aria-current=\"page\""
        } else {
            ""
        };
        format!(
            "<a href=\"{PAGE}?{}\"{mark}>{text}</a>",
            escape(&self.query())
        )
    }
}

/// The time of a picture.
fn shown(held: &Held, args: &PlotArgs) -> (u64, u64) {
    let to = args.to.or(args.end).map_or(held.newest, |Moment(at)| at);
    let from = match (args.from, args.span) {
        (Some(Moment(from)), _) => from,
        (None, span) => {
            let length = span.and_then(Span::length_ns);
            length.map_or(held.oldest, |length| to.saturating_sub(length))
        }
    };
    (from, to)
}

/// The series by name, without their directions, in the order of the archive.
fn names(views: &[View]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for view in views {
        let ways = ["_in", "_out", "_loc", "_ext"];
        let plain = ways.iter().find_map(|way| view.name.strip_suffix(way));
        let name = plain.unwrap_or(&view.name);
        if names.last().is_none_or(|last| last != name) && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

fn times(choice: &Choice, args: &PlotArgs) -> String {
    let all = choice.with(&[
        ("span", None),
        ("from", None),
        ("to", None),
        ("against", None),
    ]);
    let mut links = Vec::new();
    if args.against.is_none() {
        links.push(all.link(choice, "four panels"));
    }
    for span in ["hour", "day", "week", "month", "all"] {
        links.push(all.with(&[("span", Some(span))]).link(choice, span));
    }
    links.join(" ")
}

/// The years of the archive; of the year that is shown the months, of the month the days.
fn calendar(choice: &Choice, held: &Held, from: u64, to: u64) -> String {
    let mut links = Vec::new();
    let mut add = |(from, to): (String, String), text: String| {
        if held.has(at(&from), at(&to)) {
            links.push(choice.at(&from, &to).link(choice, &text));
        }
    };
    for year in year(held.oldest)..=year(held.newest) {
        add(year_of(year), year.to_string());
    }
    let last = to.saturating_sub(1).max(from);
    let shown = year(last);
    if year(from) == shown {
        for month in 1..=12 {
            add(month_of(shown, month), format!("{shown}-{month:02}"));
        }
        if month(from) == month(last) {
            let (first, next) = month_of(shown, month(last));
            let day = |at: u64| human::moment(at).get(..10).unwrap_or_default().to_owned();
            let mut begin = at(&first);
            while begin < at(&next) {
                let text = day(begin);
                let number = text.get(8..).unwrap_or_default().to_owned();
                add((text, day(begin + DAY)), number);
                begin += DAY;
            }
        }
    }
    links.join(" ")
}

/// The first days of a month and of the next.
fn month_of(year: u32, month: u32) -> (String, String) {
    let next = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    (
        format!("{year}-{month:02}-01"),
        format!("{}-{:02}-01", next.0, next.1),
    )
}

/// The times of the same length before and behind; of a whole year or month those.
fn neighbours(choice: &Choice, held: &Held, from: u64, to: u64) -> String {
    let length = to.saturating_sub(from).max(SECOND);
    let seconds = |at: u64| (at / SECOND).to_string();
    let times = whole(from, to).unwrap_or_else(|| {
        [
            (seconds(from.saturating_sub(length)), seconds(from)),
            (seconds(to), seconds(to.saturating_add(length))),
        ]
    });
    let links = times.into_iter().zip(["earlier", "later"]);
    let links = links.filter(|((from, to), _)| held.has(at(from), at(to)));
    let links = links.map(|((from, to), text)| choice.at(&from, &to).link(choice, text));
    links.collect::<Vec<_>>().join(" ")
}

/// The year or month before and behind a whole one.
fn whole(from: u64, to: u64) -> Option<[(String, String); 2]> {
    let (year, month) = (year(from), month(from));
    let is = |times: &(String, String)| (at(&times.0), at(&times.1)) == (from, to);
    if is(&year_of(year)) {
        return Some([year_of(year - 1), year_of(year + 1)]);
    }
    is(&month_of(year, month)).then(|| {
        let before = if month == 1 {
            (year - 1, 12)
        } else {
            (year, month - 1)
        };
        let behind = if month == 12 {
            (year + 1, 1)
        } else {
            (year, month + 1)
        };
        [month_of(before.0, before.1), month_of(behind.0, behind.1)]
    })
}

/// A time of a link, nanoseconds since the epoch.
fn at(text: &str) -> u64 {
    moment(text).map_or(0, |Moment(at)| at)
}

fn year(at: u64) -> u32 {
    let text = human::moment(at);
    text.get(..4)
        .and_then(|year| year.parse().ok())
        .unwrap_or(1970)
}

fn month(at: u64) -> u32 {
    let text = human::moment(at);
    text.get(5..7)
        .and_then(|month| month.parse().ok())
        .unwrap_or(1)
}

fn year_of(year: u32) -> (String, String) {
    (format!("{year}-01-01"), format!("{}-01-01", year + 1))
}

fn distributions(choice: &Choice) -> String {
    let none = choice.with(&[("distribution", None), ("against", None)]);
    let mut links = vec![none.link(choice, "none")];
    for curve in ["pdf", "ccdf"] {
        links.push(
            choice
                .with(&[("distribution", Some(curve))])
                .link(choice, curve),
        );
    }
    links.join(" ")
}

/// The same time before: only distributions are compared.
fn comparisons(choice: &Choice, held: &Held, from: u64, to: u64) -> String {
    let mut links = vec![choice.with(&[("against", None)]).link(choice, "nothing")];
    for (days, text) in [
        (1, "a day before"),
        (7, "a week before"),
        (364, "52 weeks before"),
    ] {
        // What overlaps would be compared with itself.
        let is_apart = to.saturating_sub(from) <= days * DAY;
        let Some((from, to)) = from.checked_sub(days * DAY).zip(to.checked_sub(days * DAY)) else {
            continue;
        };
        if is_apart && held.has(from, to) {
            let against = format!("{}..{}", from / SECOND, to / SECOND);
            let compared =
                choice.with(&[("against", Some(&against)), ("distribution", Some("ccdf"))]);
            links.push(compared.link(choice, text));
        }
    }
    if links.len() > 1 {
        links.join(" ")
    } else {
        String::new()
    }
}

fn series(choice: &Choice, names: &[String], shown: &str) -> String {
    let links = names.iter().map(|name| {
        let other = choice.with(&[("series", Some(name))]);
        if name == shown {
            other.link(&other, name)
        } else {
            other.link(choice, name)
        }
    });
    links.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_words_of_the_command() {
        let choice = Choice::read("series=tcp_rtt_avg&span=week&nonsense=1&token=secret");
        assert_eq!(choice.query(), "series=tcp_rtt_avg&span=week");
        let path = std::path::Path::new("link.lwa");
        let args = choice.args(path).unwrap();
        assert_eq!(
            (args.series.as_str(), args.file.as_path()),
            ("tcp_rtt_avg", path)
        );
        for wrong in [
            "span=year",
            "from=x",
            "against=2025-01-01..2025-01-02",
            "span=day&from=2025-01-01",
        ] {
            let error = Choice::read(wrong).args(path).unwrap_err().to_string();
            assert!(
                !error.contains('\n') && !error.starts_with("error"),
                "{wrong}: {error}"
            );
        }
        // A value that looks like a flag is a value.
        let args = Choice::read("series=--output").args(path).unwrap();
        assert_eq!(args.series, "--output");
        let spaced = Choice::read("from=2025-01-01%2012:00&to=2025-01-02");
        assert_eq!(spaced.query(), "from=2025-01-01%2012:00&to=2025-01-02");
        assert!(spaced.args(path).unwrap().from.is_some());
        let markup = Choice::read("series=<b>&span=day");
        assert!(!markup.link(&markup, "x").contains("<b>"));
    }

    #[test]
    fn links_lead_to_years_months_days_and_neighbours() {
        let held = Held::made(at("2024-11-20"), at("2026-02-10"));
        let choice = Choice::read("series=tcp_throughput");
        let years = calendar(&choice, &held, held.oldest, held.newest);
        for year in ["2024", "2025", "2026"] {
            assert!(years.contains(&format!(">{year}<")), "{years}");
        }
        assert!(!years.contains("2025-03"));
        let year = calendar(&choice, &held, at("2024-01-01"), at("2025-01-01"));
        assert!(
            year.contains(">2024-11<") && year.contains(">2024-12<") && !year.contains(">2024-10<")
        );
        let month = calendar(&choice, &held, at("2026-02-01"), at("2026-03-01"));
        assert!(
            month.contains("from=2026-02-09&amp;to=2026-02-10")
                && !month.contains("from=2026-02-10")
        );
        let both = neighbours(&choice, &held, at("2025-01-01"), at("2025-01-08"));
        let earlier = format!(
            "from={}&amp;to={}",
            at("2024-12-25") / SECOND,
            at("2025-01-01") / SECOND
        );
        assert!(both.contains(&earlier) && both.contains("later"), "{both}");
        let months = neighbours(&choice, &held, at("2024-12-01"), at("2025-01-01"));
        let whole = [
            "from=2024-11-01&amp;to=2024-12-01",
            "from=2025-01-01&amp;to=2025-02-01",
        ];
        assert!(whole.iter().all(|time| months.contains(time)), "{months}");
        assert!(!neighbours(&choice, &held, held.newest - DAY, held.newest).contains("later"));
        let before = comparisons(&choice, &held, at("2026-01-01"), at("2026-01-02"));
        assert!(
            before.contains("52 weeks before") && before.contains("distribution=ccdf"),
            "{before}"
        );
        assert_eq!(
            comparisons(&choice, &held, held.oldest, at("2024-11-21")),
            ""
        );
    }
}
