//! The report as a page.

use linkweir_cli::files;
use linkweir_lab::Report;
use linkweir_lab::report::{self, Row, Rule, Table, Unit};
use linkweir_report::plot::{self, Marks, Plot, Scale, Series};
use linkweir_report::{LabMark, LabReport, LabRow, LabTable};

/// The page.
pub(super) fn html(name: &str, report: &Report) -> String {
    LabReport {
        title: format!("Laboratory: {name}"),
        facts: report.facts.clone(),
        tables: report.tables.iter().map(table).collect(),
        plots: report.pictures.iter().map(picture).collect(),
        notes: report.notes.clone(),
        is_interrupted: report.interrupted,
        command_line: files::command_line(),
        program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
    }
    .render()
}

fn table(table: &Table) -> LabTable {
    LabTable {
        title: table.title.clone(),
        observers: table.observers.clone(),
        rows: table.rows.iter().map(row).collect(),
    }
}

fn row(row: &Row) -> LabRow {
    let text = |figure: f64| row.unit.text(figure);
    let difference = row.difference().filter(|_| row.rule != Rule::Shown);
    LabRow {
        what: row.what.clone(),
        cells: row.cells.iter().map(|cell| cell.map(text)).collect(),
        difference: difference.map(text),
        tolerance: row.tolerance(),
        mark: match (row.rule, row.agrees()) {
            (Rule::Shown, _) => LabMark::Shown,
            (_, true) => LabMark::Agrees,
            (_, false) => LabMark::Differs,
        },
    }
}

fn picture(picture: &report::Picture) -> Plot {
    let curves = picture.curves.iter();
    Plot {
        title: picture.title.clone(),
        x: axis(&picture.x),
        y: axis(&picture.y),
        series: curves
            .map(|curve| Series {
                name: curve.name.clone(),
                marks: Marks::Line,
                points: curve.points.clone(),
            })
            .collect(),
        guides: Vec::new(),
    }
}

/// What the plot does not write at its figures stands in the name.
fn axis(axis: &report::Axis) -> plot::Axis {
    let scale = if axis.is_logarithmic {
        Scale::Log
    } else {
        Scale::Linear
    };
    let (unit, more) = match axis.unit {
        Unit::Count => (plot::Unit::Count, ""),
        Unit::Seconds => (plot::Unit::Seconds, ""),
        Unit::Bytes => (plot::Unit::Count, ", bytes"),
        Unit::BitsPerSecond => (plot::Unit::Count, ", bit/s"),
        Unit::PerSecond => (plot::Unit::Count, " per second"),
        Unit::Part => (plot::Unit::Share, ""),
        Unit::Number => (plot::Unit::Plain, ""),
    };
    plot::Axis::new(format!("{}{more}", axis.name), scale, unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_lab::report::{Axis, Curve, Picture};

    fn report() -> Report {
        let mut table = Table::new("traffic", &["load", "nginx"]);
        table.count("sessions", Rule::Same, &[Some(1000), Some(999)]);
        table.row(
            "median",
            Unit::Seconds,
            Rule::Within(0.05),
            &[Some(0.012), None],
        );
        table.count("seen", Rule::Shown, &[Some(5), Some(6)]);
        let axis = |name: &str, unit, is_logarithmic| Axis {
            name: name.to_owned(),
            unit,
            is_logarithmic,
        };
        Report {
            tables: vec![table],
            pictures: vec![Picture {
                title: "Rate".to_owned(),
                x: axis("time", Unit::Seconds, true),
                y: axis("sessions", Unit::PerSecond, false),
                curves: vec![Curve {
                    name: "started".to_owned(),
                    points: vec![(0.1, 5.0), (1.0, 7.0)],
                }],
            }],
            ..Report::default()
        }
    }

    #[test]
    fn the_page_has_the_words_of_the_table() {
        let html = html("web", &report());
        for text in [
            "<h1>Laboratory: web</h1>",
            "<td>1,000</td><td>999</td><td class=\"rule\">1</td><td class=\"rule\">none</td>",
            // A row that is compared and has one figure disagrees.
            "<td>12.000 ms</td><td class=\"silent\">–</td><td class=\"rule\"></td><td class=\"rule\">50.000 ms</td>",
            "2 of 2 checks",
            ">sessions per second</text>",
        ] {
            assert!(html.contains(text), "{text}\nin: {html}");
        }
    }

    #[test]
    fn an_axis_keeps_its_scale() {
        let plot = picture(&report().pictures[0]);
        assert_eq!((plot.x.scale, plot.y.scale), (Scale::Log, Scale::Linear));
        assert_eq!(plot.series[0].points.len(), 2);
    }
}
