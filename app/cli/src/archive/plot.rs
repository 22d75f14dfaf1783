//! `archive plot`: the picture of the paper's Fig. 1.
//!
//! Source: Rossi, Mellia 2006, Fig. 1: average, 95th and 99th percentile of the throughput of TCP
//! flows, one direction positive and the other negative; rows of 5 minutes in the hourly plot, of 30
//! minutes in the daily and weekly one, of 2 hours in the monthly one.

use linkweir_sink::archive::ArchiveFile;
use linkweir_sink::human;
use linkweir_sketch::archive::{ReadFault, Reader, Reading};

use super::args::{PlotArgs, Span, Way};
use super::panel::{AVERAGE, Curve, LARGEST, P95, P99, Panel, Point, Style};
use super::select::{View, named, views};
use super::{conclude, figure, keeps, open, unreadable, wrong};
use crate::exit::Exit;
use crate::outputs;
use crate::picture::{check_name, svg};

const HOUR: u64 = 3600 * 1_000_000_000;
const DISTRIBUTION: [Curve; 3] = [AVERAGE, P95, P99];
const COUNTER: [Curve; 2] = [AVERAGE, LARGEST];

pub(super) fn run(args: &PlotArgs) -> anyhow::Result<Exit> {
    check_name(&args.output)?;
    keeps(&args.file, &args.output)?;
    let output = outputs::document_at(&args.output, args.files.existing(false))?;
    let mut reader = open(&args.file)?;
    let (panels, style, missed) = panels(&mut reader, args)?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let end = panels.iter().map(|panel| panel.to_ns).max().unwrap_or(0);
    let until = human::moment(end);
    let subtitle = format!("{name}, until {until}; times are UTC");
    let scene = figure::draw(&title(&args.series), &subtitle, &style, &panels);
    output.write_whole(svg::document(&scene).as_bytes())?;
    Ok(conclude(&args.file, missed))
}

/// What is drawn upwards and downwards.
struct Shown {
    up: View,
    down: Option<View>,
    up_name: String,
    down_name: Option<String>,
    /// What the legend says of them.
    legend: String,
}

fn directions(views: &[View], series: &str, up: Way, down: Option<Way>) -> Option<Shown> {
    let of = |way: Way| named(views, &format!("{series}_{}", way.as_str())).cloned();
    let meaning = |way: Way| match way {
        Way::In => "in: to internal",
        Way::Out => "out: to external",
        Way::Loc => "loc: between internal",
        Way::Ext => "ext: between external",
    };
    if let Some(one) = named(views, series) {
        return Some(Shown {
            up: one.clone(),
            down: None,
            up_name: String::new(),
            down_name: None,
            legend: String::new(),
        });
    }
    let legend = match down {
        Some(down) => format!("above {}, below {}", meaning(up), meaning(down)),
        None => meaning(up).to_owned(),
    };
    Some(Shown {
        up: of(up)?,
        down: match down {
            Some(down) => Some(of(down)?),
            None => None,
        },
        up_name: up.as_str().to_owned(),
        down_name: down.map(|way| way.as_str().to_owned()),
        legend,
    })
}

/// The panels, what they have in common, and how many rows were damaged.
fn panels(
    reader: &mut Reader<ArchiveFile>,
    args: &PlotArgs,
) -> anyhow::Result<(Vec<Panel>, Style, u64)> {
    let all = views(reader.catalogue());
    let mut shown = directions(&all, &args.series, args.up, Some(args.down)).ok_or_else(|| {
        wrong(format!(
            "there is no series `{}` by direction; `linkweir archive dump FILE --list` shows all",
            args.series
        ))
    })?;
    let fault = |fault: ReadFault| unreadable(&args.file, &fault);
    let (mut panels, mut missed) = read(reader, args, &shown).map_err(fault)?;
    let is_default = (args.up, args.down) == (Way::In, Way::Out);
    if is_default && panels.iter().all(Panel::is_empty) {
        // Without a list of internal networks all traffic is between internal addresses.
        if let Some(local) = directions(&all, &args.series, Way::Loc, None) {
            let (others, more) = read(reader, args, &local).map_err(fault)?;
            if others.iter().any(|panel| !panel.is_empty()) {
                (panels, missed, shown) = (others, more, local);
            }
        }
    }
    let (left, right, height) = figure::place(panels.len());
    let curves = if shown.up.has_percentiles {
        DISTRIBUTION.to_vec()
    } else {
        COUNTER.to_vec()
    };
    let style = Style {
        left,
        right,
        height,
        unit: shown.up.unit,
        scale: args.scale,
        up: shown.up_name,
        down: shown.down_name,
        directions: shown.legend,
        curves,
    };
    Ok((panels, style, missed))
}

fn read(
    reader: &mut Reader<ArchiveFile>,
    args: &PlotArgs,
    shown: &Shown,
) -> Result<(Vec<Panel>, u64), ReadFault> {
    let newest = reader
        .rows(0)?
        .last()
        .map_or(0, |row| row.number.saturating_add(1));
    let newest = newest.saturating_mul(reader.ladder().step_ns());
    let end = args.end.map_or(newest, |moment| moment.0);
    let spans = match args.span {
        Some(span) => vec![span],
        None => vec![Span::Hour, Span::Day, Span::Week, Span::Month],
    };
    let mut panels = Vec::new();
    let mut missed = 0;
    for span in spans {
        let (from, level) = extent(reader, span, end)?;
        let row = reader.ladder().name(level);
        let mut panel = Panel {
            title: format!("{}, a point is {row}", span_title(span)),
            from_ns: from,
            to_ns: end,
            up: Vec::new(),
            down: Vec::new(),
        };
        let down_place = shown.down.as_ref().map(|view| view.place);
        let places: Vec<usize> = [Some(shown.up.place), down_place]
            .into_iter()
            .flatten()
            .collect();
        missed += reader.readings::<ReadFault>(&places, &[level], (from, end), |reading| {
            if reading.series == shown.up.place {
                panel.up.push(point(&shown.up, reading));
            }
            if let Some(view) = &shown.down
                && reading.series == view.place
            {
                panel.down.push(point(view, reading));
            }
            Ok(())
        })?;
        panels.push(panel);
    }
    Ok((panels, missed))
}

fn point(view: &View, reading: &Reading) -> Point {
    let shown = view.of(reading);
    let values = if view.has_percentiles {
        [shown.avg, shown.p95, shown.p99]
    } else {
        [shown.avg, shown.max, None]
    };
    Point {
        from_ns: reading.start_ns,
        to_ns: reading.start_ns.saturating_add(reading.span_ns),
        values,
    }
}

const fn span_title(span: Span) -> &'static str {
    match span {
        Span::Hour => "Last hour",
        Span::Day => "Last day",
        Span::Week => "Last week",
        Span::Month => "Last month",
        Span::All => "All",
    }
}

/// Where a span begins, and the level that shows it: that of the paper, or a coarser one where the
/// ring does not hold so much time.
fn extent(reader: &Reader<ArchiveFile>, span: Span, end: u64) -> Result<(u64, usize), ReadFault> {
    let ladder = reader.ladder();
    let last = ladder.levels().len().saturating_sub(1);
    let holds = |level: usize| {
        let rows = ladder
            .levels()
            .get(level)
            .map_or(0, |one| u64::from(one.rows));
        ladder.span_ns(level).saturating_mul(rows)
    };
    let (length, level) = match span {
        Span::Hour => (HOUR, 0),
        Span::Day => (24 * HOUR, 1),
        Span::Week => (7 * 24 * HOUR, 1),
        Span::Month => (30 * 24 * HOUR, 2),
        Span::All => {
            let span_ns = ladder.span_ns(last);
            let rows = reader.rows(last)?;
            let mut starts = rows.iter().map(|row| row.number.saturating_mul(span_ns));
            // The first row is a whole one; what it holds may be its end.
            let first = starts.next().unwrap_or(end);
            let fine = reader.rows(0)?;
            let oldest = fine
                .first()
                .map(|row| row.number.saturating_mul(ladder.step_ns()));
            let first = match oldest {
                Some(oldest) if oldest >= first && oldest - first < span_ns => oldest,
                _ => first,
            };
            (end.saturating_sub(first).max(1), 0)
        }
    };
    let level = (level.min(last)..=last)
        .find(|level| holds(*level) >= length)
        .unwrap_or(last);
    Ok((end.saturating_sub(length), level))
}

/// What a series is called in a title.
fn title(series: &str) -> String {
    let known = match series {
        "tcp_throughput" => "Throughput of TCP flows",
        "tcp_bytes" => "Length of TCP flows, bytes",
        "tcp_packets" => "Length of TCP flows, packets",
        "tcp_duration" => "Duration of TCP flows",
        "tcp_rtt_min" => "Smallest round-trip time of TCP flows",
        "tcp_rtt_avg" => "Round-trip time of TCP flows",
        "tcp_rtt_max" => "Largest round-trip time of TCP flows",
        "tcp_mss" => "Maximum segment size of TCP flows",
        "tcp_window_max" => "Largest window of TCP flows",
        "tcp_in_flight_max" => "Most bytes in flight of TCP flows",
        "udp_bytes" => "Length of UDP flows, bytes",
        "udp_packets" => "Length of UDP flows, packets",
        "udp_duration" => "Duration of UDP flows",
        "bitrate_tcp" => "TCP bit rate",
        "bitrate_udp" => "UDP bit rate",
        other => return other.replace('_', " "),
    };
    known.to_owned()
}
