//! `archive plot`: the picture of the paper's Fig. 1.
//!
//! Source: Rossi, Mellia 2006, Fig. 1: average, 95th and 99th percentile of the throughput of TCP
//! flows, one direction positive and the other negative; rows of 5 minutes in the hourly plot, of 30
//! minutes in the daily and weekly one, of 2 hours in the monthly one.

use std::time::Duration;

use linkweir_record::human;
use linkweir_report::plot::{self, Axis, Marks, Plot, Row, Series, Sheet, Unit};
use linkweir_sketch::archive::{ReadFault, Reader, Reading};
use linkweir_tstat::archive::ArchiveFile;

use super::args::{PlotArgs, Scale, Span, Way};
use super::select::{Held, View, named, views};
use super::spread::{self, Picture};
use super::{conclude, in_order, keeps, open, unreadable, wrong};
use crate::exit::Exit;
use crate::files;
use crate::outputs::check_svg;
use crate::units::Between;

const HOUR: u64 = 3600 * 1_000_000_000;
/// What is drawn of a row, in the order of [`Point::values`].
const DISTRIBUTION: [&str; 3] = ["average", "95th percentile", "99th percentile"];
const COUNTER: [&str; 2] = ["average", "largest step"];
/// The same where there is half the room.
const SHORT_DISTRIBUTION: [&str; 3] = ["avg", "p95", "p99"];
const SHORT_COUNTER: [&str; 2] = ["avg", "max"];

pub(super) fn run(args: &PlotArgs) -> anyhow::Result<Exit> {
    check_svg(&args.output)?;
    keeps(&args.file, &args.output)?;
    let output = files::document_at(&args.output, args.files.existing(false))?;
    let (svg, missed) = draw(args)?;
    output.write_whole(svg.as_bytes())?;
    Ok(conclude(&args.file, missed))
}

/// The picture, and how many rows were damaged.
pub(super) fn draw(args: &PlotArgs) -> anyhow::Result<(String, u64)> {
    in_order(args.from, args.to)?;
    let mut reader = open(&args.file)?;
    let held = Held::of(&mut reader).map_err(|fault| unreadable(&args.file, &fault))?;
    if args.to.is_none() && args.from.is_some_and(|from| from.0 >= held.newest) {
        let end = human::moment(held.newest);
        return Err(wrong(format!("--from: the archive ends at {end}")));
    }
    let (panels, shown, mut missed) = panels(&mut reader, args)?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let end = panels.iter().map(|panel| panel.to_ns).max().unwrap_or(0);
    let until = human::moment(end);
    let directions = match shown.legend.as_str() {
        "" => String::new(),
        legend => format!("; {legend}"),
    };
    let rows = match args.distribution {
        None => {
            let height = if panels.len() > 1 { 210.0 } else { 360.0 };
            let plot = |panel: &Panel| Row {
                height,
                plots: vec![panel.plot(&shown, args.scale, false)],
            };
            panels.iter().map(plot).collect()
        }
        Some(curve) => {
            let (label, unit, factor) = shown.axis();
            let picture = Picture {
                curve,
                scale: args.scale,
                label,
                unit,
                factor,
            };
            let views = [Some(&shown.up), shown.down.as_ref()];
            let views: Vec<&View> = views.into_iter().flatten().collect();
            let mut beside = |times: &[&Panel]| {
                let times = times.iter().map(|panel| (panel.from_ns, panel.to_ns));
                let times: Vec<(u64, u64)> = times.collect();
                let level = panels.first().map_or(0, |panel| panel.level);
                let drawn = picture.plot(&mut reader, &views, level, &times);
                drawn.map_err(|fault| unreadable(&args.file, &fault))
            };
            let mut rows = Vec::new();
            match &panels[..] {
                [first, second] if args.against.is_some() => {
                    let (plot, damaged) = beside(&[first, second])?;
                    missed += damaged;
                    let courses = [first, second].map(|one| one.plot(&shown, args.scale, true));
                    rows.push(Row {
                        height: 260.0,
                        plots: courses.to_vec(),
                    });
                    rows.push(Row {
                        height: 360.0,
                        plots: vec![plot],
                    });
                }
                panels => {
                    let height = if panels.len() > 1 { 240.0 } else { 300.0 };
                    for panel in panels {
                        let (plot, damaged) = beside(&[panel])?;
                        missed += damaged;
                        let plots = vec![panel.plot(&shown, args.scale, true), plot];
                        rows.push(Row { height, plots });
                    }
                }
            }
            rows
        }
    };
    let sheet = Sheet {
        title: title(&args.series),
        subtitle: format!("{name}, until {until}; times are UTC{directions}"),
        rows,
    };
    Ok((sheet.svg(), missed))
}

/// What is shown of each row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    from_ns: u64,
    to_ns: u64,
    /// Average, and one or two more: 95th and 99th percentile, or the largest step.
    values: [Option<f64>; 3],
}

/// A span of time and what was measured in it.
#[derive(Debug, Clone, PartialEq)]
struct Panel {
    title: String,
    /// A title for half the room, where the other is too long.
    short: Option<&'static str>,
    /// The level of its rows, and what it is called.
    level: usize,
    row: String,
    from_ns: u64,
    to_ns: u64,
    up: Vec<Point>,
    down: Vec<Point>,
}

impl Panel {
    /// Whether there is nothing to see; counters are zero where nothing was counted.
    fn is_empty(&self) -> bool {
        let points = self.up.iter().chain(&self.down);
        let mut values = points.flat_map(|point| point.values).flatten();
        values.all(|value| value == 0.0)
    }

    /// The average as an area, the others as lines; the direction downwards as negative values.
    fn plot(&self, shown: &Shown, scale: Scale, is_narrow: bool) -> Plot {
        let (label, unit, factor) = shown.axis();
        let scale = match scale {
            Scale::Linear => plot::Scale::Linear,
            Scale::Log => plot::Scale::Log,
        };
        let names: &[&str] = match (shown.up.has_percentiles, is_narrow) {
            (true, false) => &DISTRIBUTION,
            (false, false) => &COUNTER,
            (true, true) => &SHORT_DISTRIBUTION,
            (false, true) => &SHORT_COUNTER,
        };
        let row = format!("a point is {}", self.row);
        let (title, below) = match is_narrow {
            false => (format!("{}, {row}", self.title), String::new()),
            true => match self.short {
                Some(short) => (short.to_owned(), format!("{}; {row}", self.title)),
                None => (self.title.clone(), row),
            },
        };
        let series = names.iter().enumerate().map(|(at, name)| {
            let mut points = stairs(&self.up, at, factor);
            points.push((seconds(self.from_ns), f64::NAN));
            points.extend(stairs(&self.down, at, -factor));
            Series {
                name: (*name).to_owned(),
                marks: if at == 0 { Marks::Area } else { Marks::Line },
                points,
            }
        });
        Plot {
            title,
            x: Axis {
                limits: Some((seconds(self.from_ns), seconds(self.to_ns))),
                ..Axis::new(below, plot::Scale::Linear, Unit::Time)
            },
            y: Axis {
                is_mirrored: shown.down.is_some(),
                ..Axis::new(label, scale, unit)
            },
            series: series.collect(),
            guides: Vec::new(),
        }
    }
}

/// A value of all rows as stairs, since it is that of all of its row, with a gap where no row is.
fn stairs(rows: &[Point], at: usize, factor: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(rows.len() * 2);
    let mut end = None;
    for row in rows {
        let (from, to) = (seconds(row.from_ns), seconds(row.to_ns));
        if end != Some(row.from_ns) {
            points.push((from, f64::NAN));
        }
        let value = row.values.get(at).copied().flatten();
        let value = value.map_or(f64::NAN, |value| value * factor);
        points.extend([(from, value), (to, value)]);
        end = Some(row.to_ns);
    }
    points
}

fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

/// What is drawn upwards and downwards.
struct Shown {
    up: View,
    down: Option<View>,
    /// What the picture says of them.
    legend: String,
}

impl Shown {
    /// How values are written: what they are, their unit, and the factor to it.
    fn axis(&self) -> (&str, Unit, f64) {
        // Times are written with a unit of their own, from nanoseconds to seconds.
        match self.up.unit.as_str() {
            "ns" => ("time", Unit::Seconds, 1e-9),
            other => (other, Unit::Count, 1.0),
        }
    }
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
        legend,
    })
}

/// The panels, what they show, and how many rows were damaged.
fn panels(
    reader: &mut Reader<ArchiveFile>,
    args: &PlotArgs,
) -> anyhow::Result<(Vec<Panel>, Shown, u64)> {
    let all = views(reader.catalogue());
    let mut shown = directions(&all, &args.series, args.up, Some(args.down)).ok_or_else(|| {
        wrong(format!(
            "no series `{}` by direction; `linkweir archive dump FILE --list` shows all",
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
    Ok((panels, shown, missed))
}

fn read(
    reader: &mut Reader<ArchiveFile>,
    args: &PlotArgs,
    shown: &Shown,
) -> Result<(Vec<Panel>, u64), ReadFault> {
    let held = Held::of(reader)?;
    let mut panels = times(reader, args, &held)?;
    let mut missed = 0;
    for panel in &mut panels {
        let down_place = shown.down.as_ref().map(|view| view.place);
        let places: Vec<usize> = [Some(shown.up.place), down_place]
            .into_iter()
            .flatten()
            .collect();
        let between = (panel.from_ns, panel.to_ns);
        missed += reader.readings::<ReadFault>(&places, &[panel.level], between, |reading| {
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
    }
    Ok((panels, missed))
}

/// The times to be drawn, without what was measured in them.
fn times(
    reader: &Reader<ArchiveFile>,
    args: &PlotArgs,
    held: &Held,
) -> Result<Vec<Panel>, ReadFault> {
    let end = args.end.or(args.to).map_or(held.newest, |moment| moment.0);
    let new = |title: String, from: u64, to: u64, level: usize| Panel {
        title,
        short: None,
        level,
        row: String::new(),
        from_ns: from,
        to_ns: to,
        up: Vec::new(),
        down: Vec::new(),
    };
    let mut panels = Vec::new();
    if args.from.is_some() || args.to.is_some() {
        let from = match args.from {
            Some(moment) => moment.0,
            None => extent(reader, held, Span::All, end)?.0,
        };
        let level = reader.level_since(from)?;
        panels.push(Panel {
            short: Some("Chosen time"),
            ..new(spread::between(from, end), from, end, level)
        });
    } else {
        let spans = match (args.span, args.against) {
            (Some(span), _) => vec![span],
            (None, Some(_)) => vec![Span::All],
            // Of a short capture there would be little to see in a day.
            (None, None) if end.saturating_sub(held.oldest) <= HOUR => vec![Span::All],
            (None, None) => vec![Span::Hour, Span::Day, Span::Week, Span::Month],
        };
        for span in spans {
            let (from, level) = extent(reader, held, span, end)?;
            panels.push(new(span_title(span).to_owned(), from, end, level));
        }
    }
    if let Some(Between(from, to)) = args.against {
        let level = reader.level_since(from)?;
        panels.push(Panel {
            short: Some("Compared time"),
            ..new(spread::between(from, to), from, to, level)
        });
        // What is compared is measured in rows of the same length.
        let level = panels.iter().map(|panel| panel.level).max().unwrap_or(0);
        panels.iter_mut().for_each(|panel| panel.level = level);
    }
    for panel in &mut panels {
        panel.row = reader.ladder().name(panel.level);
    }
    Ok(panels)
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
fn extent(
    reader: &Reader<ArchiveFile>,
    held: &Held,
    span: Span,
    end: u64,
) -> Result<(u64, usize), ReadFault> {
    let level = match span {
        Span::Hour | Span::All => 0,
        Span::Day | Span::Week => 1,
        Span::Month => 2,
    };
    let all = end.saturating_sub(held.oldest).max(1);
    let from = end.saturating_sub(span.length_ns().unwrap_or(all));
    let last = reader.ladder().levels().len().saturating_sub(1);
    Ok((from, level.min(last).max(reader.level_since(from)?)))
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
