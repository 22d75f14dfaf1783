//! Distributions of a series over a time: as curves, and as a table.
//!
//! Source: Rossi, Mellia 2006, sec. II: besides plots over time, "aggregated plots over different time
//! spans".

use std::io::{self, Write};

use linkweir_record::human;
use linkweir_report::plot::{self, Axis, Marks, Plot, Series, Unit};
use linkweir_sketch::archive::{ReadFault, Reader, Spread, Values};
use linkweir_sketch::cells::Bin;
use linkweir_tstat::archive::ArchiveFile;

use super::args::{Curve, Scale, Table};
use super::select::View;

/// A time as it is written in titles, to the minute.
pub(super) fn between(from_ns: u64, to_ns: u64) -> String {
    let minute = |at: u64| human::moment(at).get(..16).unwrap_or_default().to_owned();
    format!("{} to {}", minute(from_ns), minute(to_ns))
}

/// How distributions are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picture<'a> {
    pub(super) curve: Curve,
    pub(super) scale: Scale,
    /// What the values are.
    pub(super) label: &'a str,
    pub(super) unit: Unit,
    /// From the unit of the view to that of the axis.
    pub(super) factor: f64,
}

impl Picture<'_> {
    /// One plot of all views over all times, and how many rows were damaged.
    pub(super) fn plot(
        &self,
        reader: &mut Reader<ArchiveFile>,
        views: &[&View],
        level: usize,
        times: &[(u64, u64)],
    ) -> Result<(Plot, u64), ReadFault> {
        let places: Vec<usize> = views.iter().map(|view| view.place).collect();
        let mut series = Vec::new();
        let mut counted = Vec::new();
        let mut missed = 0;
        for (at, time) in times.iter().enumerate() {
            let spread = reader.spread(&places, level, *time)?;
            missed += spread.missed;
            if spread.steps > 0 {
                counted.push(between(spread.from_ns, spread.to_ns));
            }
            for (view, values) in views.iter().zip(&spread.series) {
                let (_, direction) = view.name.rsplit_once('_').unwrap_or_default();
                let which = if at == 0 { "" } else { ", compared" };
                let many = human::counted(values.distribution.count, "value");
                series.push(Series {
                    name: format!("{direction}{which}: {many}"),
                    marks: match self.curve {
                        Curve::Pdf => Marks::Step,
                        Curve::Ccdf => Marks::Line,
                    },
                    points: self.points(view, values),
                });
            }
        }
        let has_percentiles = views.iter().all(|view| view.has_percentiles);
        let of = match has_percentiles {
            true => String::new(),
            false => format!(" of rates, a value is {}", reader.ladder().name(level)),
        };
        let (title, label, scale) = match self.curve {
            Curve::Pdf => ("PDF", "density per decade", self.scale),
            Curve::Ccdf => ("CCDF", "share of values above", Scale::Log),
        };
        let scale = match scale {
            Scale::Linear => plot::Scale::Linear,
            Scale::Log => plot::Scale::Log,
        };
        let unit = match self.curve {
            Curve::Pdf => Unit::Plain,
            Curve::Ccdf => Unit::Share,
        };
        let plot = Plot {
            title: format!("{title}{of}"),
            x: Axis::new(
                format!("{}; {}", self.label, counted.join(", compared with ")),
                plot::Scale::Log,
                self.unit,
            ),
            y: Axis::new(label, scale, unit),
            series,
            guides: Vec::new(),
        };
        Ok((plot, missed))
    }

    fn points(&self, view: &View, values: &Values) -> Vec<(f64, f64)> {
        let factor = self.factor * scale_of(view, values);
        let bins = values.distribution.bins();
        let mut points = Vec::with_capacity(bins.len() + 1);
        match self.curve {
            Curve::Ccdf => {
                // All values are above where the first bucket begins.
                if let Some(first) = bins.first().filter(|first| first.low > 0.0) {
                    points.push((first.low * factor, 1.0));
                }
                points.extend(bins.iter().map(|bin| (bin.high * factor, bin.ccdf())));
            }
            Curve::Pdf => {
                // A logarithmic axis has no zero: values near it are drawn as an octave.
                let low = |bin: &Bin| bin.low.max(bin.high / 2.0);
                for bin in &bins {
                    let decades = (bin.high / low(bin)).log10();
                    let density = if decades > 0.0 {
                        bin.share() / decades
                    } else {
                        0.0
                    };
                    // Nothing is a gap where it has no place.
                    let is_drawn = density > 0.0 || self.scale == Scale::Linear;
                    let density = if is_drawn { density } else { f64::NAN };
                    points.push((low(bin) * factor, density));
                }
                if let Some((bin, last)) = bins.last().zip(points.last().copied()) {
                    points.push((bin.high * factor, last.1));
                }
            }
        }
        points
    }
}

/// From what is counted to the unit of the view.
fn scale_of(view: &View, values: &Values) -> f64 {
    let parts = u32::try_from(values.parts.max(1)).unwrap_or(u32::MAX);
    view.factor() / f64::from(parts)
}

const HEADING: &str =
    "series,unit,level,from,to,from_ns,to_ns,steps,low,high,count,share,density,ccdf";

pub(super) fn heading(out: &mut dyn Write, format: Table) -> io::Result<()> {
    match format {
        Table::Csv => writeln!(out, "{HEADING}"),
        Table::Jsonl => Ok(()),
    }
}

/// The lines of a view: one a bucket.
pub(super) fn lines(
    out: &mut dyn Write,
    format: Table,
    view: &View,
    level: &str,
    spread: &Spread,
    values: &Values,
) -> io::Result<()> {
    let scale = scale_of(view, values);
    let level = if view.has_percentiles { "" } else { level };
    let time = |at: u64| {
        let since = std::time::Duration::from_nanos(at);
        humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since)
    };
    let (from, to) = (time(spread.from_ns), time(spread.to_ns));
    for bin in values.distribution.bins() {
        let (low, high) = (bin.low * scale, bin.high * scale);
        let density = bin.density().map(|one| one / scale);
        let (
            View { name, unit, .. },
            Spread {
                from_ns,
                to_ns,
                steps,
                ..
            },
        ) = (view, spread);
        let (count, share, ccdf) = (bin.count, bin.share(), bin.ccdf());
        match format {
            Table::Csv => {
                let density = density.map(|one| format!("{one:.6e}")).unwrap_or_default();
                writeln!(
                    out,
                    "{name},{unit},{level},{from},{to},{from_ns},{to_ns},{steps},{low},{high},{count},{share:.9},{density},{ccdf:.9}"
                )?;
            }
            // Names and units have no letter that JSON would escape.
            Table::Jsonl => {
                write!(
                    out,
                    "{{\"series\":\"{name}\",\"unit\":\"{unit}\",\"level\":\"{level}\",\"from\":\"{from}\",\"to\":\"{to}\",\
                     \"from_ns\":{from_ns},\"to_ns\":{to_ns},\"steps\":{steps},\"low\":{low},\"high\":{high},\
                     \"count\":{count},\"share\":{share:.9}"
                )?;
                if let Some(density) = density {
                    write!(out, ",\"density\":{density:.6e}")?;
                }
                writeln!(out, ",\"ccdf\":{ccdf:.9}}}")?;
            }
        }
    }
    Ok(())
}
