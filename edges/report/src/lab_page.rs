//! The page of the report of the laboratory.

use std::fmt::Write as _;

use super::lab::{LabMark, LabReport, LabRow, LabTable};
use super::page::{Page, escape};

/// Beside a row that is not as it should be.
const DIFFERS: &str = "✗ DIFFERS";

impl LabReport {
    /// The report as one HTML page without references to anything outside it.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = Page::new(&self.title);
        page.raw(&self.about());
        page.raw(&self.verdict());
        // Those who agree have the same curve: all are seen where they are drawn in different strokes.
        page.raw("<div class=\"grid2 curves\">\n");
        // What limits the verdict stands beside it.
        if !self.notes.is_empty() {
            page.section("Notes", true, &self.remarks());
        }
        for table in &self.tables {
            page.section(&table.title, table.is_wide(), &table.html());
        }
        // One that would stand alone in its row has the whole of it.
        let last = self.plots.len().checked_sub(1);
        for (at, plot) in self.plots.iter().enumerate() {
            let is_wide = at % 2 == 0 && Some(at) == last;
            page.section(&plot.title, is_wide, &(plot.svg() + &plot.table()));
        }
        page.raw("</div>\n");
        page.finish(&format!(
            "Made by {}. This page needs no network.",
            self.program
        ))
    }

    fn about(&self) -> String {
        let mut out = String::from("<dl class=\"facts\">\n");
        let command = (!self.command_line.is_empty()).then_some(("command", &self.command_line));
        let facts = self.facts.iter();
        for (name, value) in facts
            .map(|(name, value)| (name.as_str(), value))
            .chain(command)
        {
            push(
                &mut out,
                format_args!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)),
            );
        }
        out.push_str("</dl>\n");
        out
    }

    /// In words and with a sign, for colours are not seen by everybody.
    fn verdict(&self) -> String {
        let (class, sign, heading, what) = match self.compared() {
            (0, _) => (
                "differs",
                "–",
                "Nothing compared",
                "no row has a rule".to_owned(),
            ),
            (all, wrong) if self.is_interrupted => (
                "interrupted",
                "–",
                "Interrupted",
                format!("{} of {} passed", all - wrong, checks(all)),
            ),
            (all, 0) => (
                "agrees",
                "✓",
                "All checks passed",
                format!("{}: the figures agree within the tolerance", checks(all)),
            ),
            (all, wrong) => (
                "differs",
                "✗",
                "Checks failed",
                format!(
                    "{wrong} of {}: the figures differ by more than the tolerance",
                    checks(all)
                ),
            ),
        };
        let wrong: String = self
            .differing()
            .map(|(table, row)| {
                format!(
                    "<li>{}: {}</li>",
                    escape(&table.title),
                    escape(row.what.trim())
                )
            })
            .collect();
        let list = match wrong.as_str() {
            "" => String::new(),
            wrong => format!("<ul>{wrong}</ul>"),
        };
        format!(
            "<div class=\"verdict {class}\"><i>{sign}</i><div><b>{heading}</b><span>{what}</span>{list}</div></div>\n"
        )
    }

    fn differing(&self) -> impl Iterator<Item = (&LabTable, &LabRow)> {
        let tables = self.tables.iter();
        let all = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        all.filter(|(_, row)| row.mark == LabMark::Differs)
    }

    fn remarks(&self) -> String {
        let notes = self.notes.iter();
        notes
            .map(|note| format!("<p>{}</p>\n", escape(note)))
            .collect()
    }
}

impl LabTable {
    /// Letters that half a page has room for.
    const HALF: usize = 72;

    /// Whether half a page is too narrow for a line.
    fn is_wide(&self) -> bool {
        const GAP: usize = 2;
        let longest = |texts: &mut dyn Iterator<Item = &str>| {
            let lengths = texts.map(|text| text.chars().count());
            GAP + lengths.max().unwrap_or(0)
        };
        let rows = self.rows.iter();
        let mut width = longest(&mut rows.clone().map(|row| row.what.as_str()));
        for (column, name) in self.observers.iter().enumerate() {
            let cells = rows
                .clone()
                .filter_map(|row| row.cells.get(column)?.as_deref());
            width += longest(&mut cells.chain([name.as_str()]));
        }
        let differences = rows.clone().filter_map(|row| row.difference.as_deref());
        width += longest(&mut differences.chain(["difference"]));
        let tolerances = rows.map(|row| row.tolerance.as_str());
        width += longest(&mut tolerances.chain(["tolerance"]));
        width + longest(&mut [DIFFERS].into_iter()) > Self::HALF
    }

    fn html(&self) -> String {
        if self.rows.is_empty() {
            return "<p class=\"none\">No data.</p>\n".to_owned();
        }
        let mut out = String::from(
            "<div class=\"scroll\"><table class=\"lab\"><thead><tr><th scope=\"col\"></th>",
        );
        let observers = self.observers.iter().map(String::as_str);
        for name in observers.chain(["difference", "tolerance", ""]) {
            push(
                &mut out,
                format_args!("<th scope=\"col\">{}</th>", escape(name)),
            );
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            row.html(self.observers.len(), &mut out);
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

impl LabRow {
    /// A line of a table with so many observers; those without a figure at its end have cells too.
    fn html(&self, observers: usize, out: &mut String) {
        let (class, mark) = match self.mark {
            LabMark::Agrees => ("agrees", "✓ ok"),
            LabMark::Differs => ("differs", DIFFERS),
            LabMark::Shown => ("shown", ""),
        };
        // A name that is set in belongs to the row above it.
        let (name, inset) = match self.what.strip_prefix(' ') {
            Some(rest) => (rest.trim_start(), " class=\"inset\""),
            None => (self.what.as_str(), ""),
        };
        push(
            out,
            format_args!(
                "<tr class=\"{class}\"><th scope=\"row\"{inset}>{}</th>",
                escape(name)
            ),
        );
        let silent = std::iter::repeat(&None);
        for cell in self.cells.iter().chain(silent).take(observers) {
            match cell {
                Some(figure) => push(out, format_args!("<td>{}</td>", escape(figure))),
                None => out.push_str("<td class=\"silent\">–</td>"),
            }
        }
        let difference = self.difference.as_deref().unwrap_or_default();
        push(
            out,
            format_args!(
                "<td class=\"rule\">{}</td><td class=\"rule\">{}</td><td class=\"mark\">{mark}</td></tr>\n",
                escape(difference),
                escape(&self.tolerance)
            ),
        );
    }
}

fn checks(count: usize) -> String {
    match count {
        1 => "1 check".to_owned(),
        count => format!("{count} checks"),
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _unfailing = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Marks, Plot, Scale, Series, Unit};

    fn row(what: &str, cells: &[Option<&str>], mark: LabMark) -> LabRow {
        LabRow {
            what: what.to_owned(),
            cells: cells.iter().map(|cell| cell.map(str::to_owned)).collect(),
            difference: (mark != LabMark::Shown).then(|| "1".to_owned()),
            tolerance: "none".to_owned(),
            mark,
        }
    }

    fn report(rows: Vec<LabRow>) -> LabReport {
        LabReport {
            title: "web <x>".to_owned(),
            facts: vec![("seed".to_owned(), "<7>".to_owned())],
            tables: vec![LabTable {
                title: "traffic".to_owned(),
                observers: vec!["load".to_owned(), "nginx".to_owned()],
                rows,
            }],
            program: "linkweir 1".to_owned(),
            ..LabReport::default()
        }
    }

    #[test]
    fn a_row_has_its_figures_and_a_mark() {
        let html = report(vec![
            row("requests", &[Some("10"), Some("11")], LabMark::Differs),
            row("  apart", &[Some("3"), None], LabMark::Agrees),
            row("seen", &[Some("5")], LabMark::Shown),
        ])
        .render();
        for line in [
            "<tr class=\"differs\"><th scope=\"row\">requests</th><td>10</td><td>11</td>\
             <td class=\"rule\">1</td><td class=\"rule\">none</td><td class=\"mark\">✗ DIFFERS</td></tr>",
            "<tr class=\"agrees\"><th scope=\"row\" class=\"inset\">apart</th><td>3</td>\
             <td class=\"silent\">–</td><td class=\"rule\">1</td><td class=\"rule\">none</td>\
             <td class=\"mark\">✓ ok</td></tr>",
            "<tr class=\"shown\"><th scope=\"row\">seen</th><td>5</td><td class=\"silent\">–</td>\
             <td class=\"rule\"></td><td class=\"rule\">none</td><td class=\"mark\"></td></tr>",
            "<dt>seed</dt><dd>&lt;7&gt;</dd>",
            "<b>Checks failed</b><span>1 of 2 checks: the figures differ by more than the tolerance</span>\
             <ul><li>traffic: requests</li></ul>",
        ] {
            assert!(html.contains(line), "{line}\nin: {html}");
        }
    }

    #[test]
    fn what_was_interrupted_has_not_failed() {
        let html = LabReport {
            is_interrupted: true,
            ..report(vec![row(
                "requests",
                &[Some("10"), Some("11")],
                LabMark::Differs,
            )])
        }
        .render();
        assert!(
            html.contains("<b>Interrupted</b><span>0 of 1 check passed</span>"),
            "{html}"
        );
        assert!(!html.contains("Checks failed"));
    }

    #[test]
    fn a_table_of_long_lines_has_the_whole_width() {
        let table = |what: &str| report(vec![row(what, &[Some("1")], LabMark::Agrees)]).tables;
        assert!(table("requests").iter().all(|table| !table.is_wide()));
        let long = "responses, with those that were blocked";
        assert!(table(long).iter().all(LabTable::is_wide));
    }

    #[test]
    fn the_verdict_counts_what_is_compared() {
        let verdict = |marks: &[LabMark]| {
            let rows = marks.iter().map(|mark| row("r", &[Some("1")], *mark));
            report(rows.collect()).verdict()
        };
        let good = verdict(&[LabMark::Agrees, LabMark::Shown]);
        assert!(
            good.contains("All checks passed</b><span>1 check:"),
            "{good}"
        );
        assert!(!good.contains("<ul>"));
        // Where nothing was compared, nothing is known.
        let none = verdict(&[LabMark::Shown]);
        assert!(none.contains("Nothing compared") && none.contains("verdict differs"));
    }

    #[test]
    fn text_does_not_become_markup_and_nothing_is_fetched() {
        let wild = "<script src=\"http://x/\">";
        let mut report = report(vec![row(wild, &[Some(wild)], LabMark::Differs)]);
        report.notes = vec![wild.to_owned()];
        report.command_line = wild.to_owned();
        report.tables[0].observers[0] = wild.to_owned();
        report.plots = vec![Plot {
            title: wild.to_owned(),
            x: Axis::new(wild, Scale::Log, Unit::Seconds),
            y: Axis::new("y", Scale::Linear, Unit::Share),
            series: (0..9)
                .map(|number| Series {
                    name: format!("{wild}{number}"),
                    marks: Marks::Line,
                    points: vec![(0.1, 1.0), (0.2, 0.5)],
                })
                .collect(),
            guides: Vec::new(),
        }];
        let html = report.render();
        assert!(!html.contains("<script") && !html.contains(" src=\""));
        // Eight curves are distinguished by colour; the ninth has the first one again.
        let drawn = |class: &str| html.matches(&format!("class=\"line {class}\"")).count();
        assert_eq!((drawn("s0"), drawn("s7")), (2, 1));
        assert!(html.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn what_limits_the_verdict_stands_beside_it() {
        let mut report = report(vec![row("requests", &[Some("1")], LabMark::Agrees)]);
        report.notes = vec!["The generator says INVALID".to_owned()];
        let html = report.render();
        let at = |text: &str| html.find(text).unwrap();
        assert!(at("All checks passed") < at("says INVALID"));
        assert!(at("says INVALID") < at("<h2>traffic</h2>"));
    }

    #[test]
    fn a_run_without_anything_is_a_page_too() {
        let html = LabReport::default().render();
        assert!(html.contains("Nothing compared") && html.ends_with("</html>\n"));
    }
}
