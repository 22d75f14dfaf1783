//! The frame of a report page: head, style sheet, number cards, tables; and the escaping of text.
//!
//! A page is one file without references to anything outside it: the content security policy allows
//! the style sheet in the page and nothing else, no script and no image, whatever the text holds.

use std::fmt::Write;

/// Text as HTML: markup characters become entities; control characters and those that change the
/// direction of what follows become U+FFFD, for text from the network must not rearrange the page.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {
                out.push('\u{fffd}');
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Bytes from the network as HTML.
#[must_use]
pub fn escape_bytes(bytes: &[u8]) -> String {
    escape(&String::from_utf8_lossy(bytes))
}

const STYLE: &str = "\
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#5b6678;--rule:#e2e6ec;--grid:#eceff3;\
--s0:#2563a8;--s1:#c2571a;--s2:#2f855a;--s3:#7a4fa3;--s4:#b0307a;--s5:#0f8b9d;--s6:#8a6d1a;--s7:#6b7280;--bar:#c9dbef;--ok:#2f855a;--info:#2563a8;--warn:#b7791f;--bad:#c53030;--muted:#8a94a6}\
@media(prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1a2028;--ink:#e4e8ee;--soft:#98a3b3;--rule:#2b333f;--grid:#252c37;\
--s0:#6aa7e8;--s1:#e8955a;--s2:#63b98b;--s3:#b493d8;--s4:#e887bd;--s5:#5cc4d2;--s6:#d3b35a;--s7:#a3adbb;--bar:#274565;--ok:#63b98b;--info:#6aa7e8;--warn:#dcaa4b;--bad:#ef7b7b;--muted:#6c7787}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif}\
main{max-width:1240px;margin:0 auto;padding:28px 20px 48px}\
h1{font-size:1.55rem;margin:0 0 4px;font-weight:650;letter-spacing:-.01em}\
h2{font-size:1.02rem;margin:0 0 10px;font-weight:620}\
.about{color:var(--soft);margin:0 0 20px;overflow-wrap:anywhere}\
.about code{font:13px/1.5 ui-monospace,'DejaVu Sans Mono',monospace}\
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin:0 0 16px}\
.card{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:11px 14px}\
.card b{display:block;font-size:1.32rem;font-weight:620;font-variant-numeric:tabular-nums;letter-spacing:-.01em}\
.card span{color:var(--soft);font-size:.84rem}\
.card.lost{border-color:var(--bad)}.card.lost b{color:var(--bad)}\
.grid2{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px}\
section{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:16px 18px;min-width:0}\
section.wide{grid-column:1/-1}\
@media(max-width:860px){.grid2{grid-template-columns:minmax(0,1fr)}main{padding:18px 12px 32px}section{padding:13px 12px}}\
.note{color:var(--soft);font-size:.86rem;margin:8px 0 0}.none{color:var(--soft);margin:0}\
.scroll{overflow-x:auto}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.9rem}\
caption{text-align:left;color:var(--soft);padding:4px 0}\
th{color:var(--soft);font-weight:560;text-align:right;vertical-align:bottom;padding:3px 0 5px 12px;border-bottom:1px solid var(--rule)}\
td{text-align:right;padding:4px 0 4px 12px;border-bottom:1px solid var(--grid);white-space:nowrap}\
th:first-child,td:first-child{text-align:left;padding-left:0;white-space:normal}\
.key{position:relative;display:block;padding:1px 6px;margin-left:-2px;min-width:150px;overflow-wrap:anywhere}\
.key i{position:absolute;inset:0 auto 0 0;background:var(--bar);border-radius:3px;min-width:2px}\
.key em{position:relative;font-style:normal}\
.c1 i{background:var(--muted)}.c2 i{background:var(--ok)}.c3 i{background:var(--info)}.c4 i{background:var(--warn)}.c5 i{background:var(--bad)}\
.c1 i,.c2 i,.c3 i,.c4 i,.c5 i{opacity:.34}\
svg{display:block;width:100%;height:auto}\
svg text{fill:var(--soft);font:11.5px system-ui,'Liberation Sans',sans-serif}\
svg text.label{fill:var(--ink)}svg text.guide{font-size:10.5px}\
.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}line.guide{stroke:var(--soft);stroke-dasharray:2 3;opacity:.7}\
.hover{fill:transparent}.hover:hover{fill:var(--s0);fill-opacity:.35}\
.legend{margin:4px 0 0;color:var(--soft);font-size:.86rem}.legend span{margin-right:14px}\
.legend i{display:inline-block;width:14px;height:3px;border-radius:2px;vertical-align:middle;margin-right:6px}\
i.s0{background:var(--s0)}i.s1{background:var(--s1)}i.s2{background:var(--s2)}i.s3{background:var(--s3)}\
i.s4{background:var(--s4)}i.s5{background:var(--s5)}i.s6{background:var(--s6)}i.s7{background:var(--s7)}\
.verdict{display:flex;gap:14px;align-items:flex-start;background:var(--card);border:1px solid var(--rule);border-left-width:5px;\
border-radius:8px;padding:12px 16px;margin:0 0 16px}\
.verdict>i{font-style:normal;font-size:1.7rem;line-height:1.25;font-weight:700}.verdict b{display:block;font-size:1.2rem;font-weight:650}\
.verdict span{color:var(--soft)}.verdict ul{margin:6px 0 0;padding-left:18px}\
.verdict.agrees{border-left-color:var(--ok)}.verdict.agrees>i{color:var(--ok)}\
.verdict.differs{border-left-color:var(--bad)}.verdict.differs>i{color:var(--bad)}\
.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:1px 16px;margin:8px 0 18px;font-size:.92rem}\
.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}\
.lab tbody th{color:var(--ink);font-weight:400;border-bottom:1px solid var(--grid);padding:4px 0;min-width:9em;overflow-wrap:normal}.lab th.inset{padding-left:14px}\
.curves .line.s1{stroke-dasharray:10 5}.curves .line.s2{stroke-dasharray:2 5;stroke-width:2.4}.curves .line.s4{stroke-dasharray:6 3}\
.lab .silent,.lab .rule{color:var(--soft)}.lab .mark{width:7em;font-weight:620}\
.lab .agrees .mark{color:var(--ok)}.lab .differs .mark{color:var(--bad)}.lab .differs td,.lab .differs th{color:var(--bad)}\
@media(max-width:640px){.rows thead{display:none}.rows tr{display:block;padding:5px 0;border-bottom:1px solid var(--grid)}\
.rows td{display:flex;justify-content:space-between;gap:12px;padding:1px 0;border:0}.rows td:first-child{display:block;font-weight:560;overflow-wrap:anywhere}\
.rows td+td::before{content:attr(data-of);color:var(--soft);text-align:left}.key{min-width:0}}\
tr:has(+tr.below)>td{border-bottom:0}tr.below>td{padding:0 0 6px;text-align:left;white-space:normal}tr.below details{margin:0}\
tr.below code{font:12.5px/1.5 ui-monospace,'DejaVu Sans Mono',monospace;overflow-wrap:anywhere}tr.below table{font-size:.84rem}tr.below td,tr.below th{text-align:left}\
details{margin-top:8px}summary{cursor:pointer;color:var(--soft);font-size:.86rem}\
footer{color:var(--soft);font-size:.84rem;margin-top:20px}\
@media print{body{background:#fff}section,.card{break-inside:avoid}}";

/// Colours of plots, after which they begin again.
pub(super) const COLOURS: usize = 8;

/// What the classes of a plot look like; `colour` gives that of a number below [`COLOURS`].
pub(super) fn plot_rules(colour: impl Fn(usize) -> String) -> String {
    let mut out = String::from(
        ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.line.thick{stroke-width:3.2}\
         .area{fill-opacity:.3}",
    );
    for number in 0..COLOURS {
        let colour = colour(number);
        // Writing to a string cannot fail.
        let _unfailing = write!(
            out,
            ".line.s{number}{{stroke:{colour}}}\
             .dot.s{number},.bar.s{number},.area.s{number}{{fill:{colour}}}"
        );
    }
    out
}

/// A page under construction.
#[derive(Debug)]
pub struct Page {
    html: String,
}

impl Page {
    /// Begins a page.
    #[must_use]
    pub fn new(title: &str) -> Self {
        let title = escape(title);
        let rules = plot_rules(|number| format!("var(--s{number})"));
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{title}</title>\n<style>{STYLE}{rules}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        Self { html }
    }

    /// Appends HTML as it is; all text in it has been escaped.
    pub fn raw(&mut self, html: &str) -> &mut Self {
        self.html.push_str(html);
        self
    }

    /// A row of numbers: value, name, whether it stands for lost data. Those of which there is none come
    /// last.
    pub fn cards(&mut self, cards: &[(String, &str, bool)]) -> &mut Self {
        self.html.push_str("<div class=\"cards\">\n");
        let is_none = |card: &&(String, &str, bool)| matches!(card.0.as_str(), "0" | "0 B");
        let some = cards.iter().filter(|card| !is_none(card));
        for (value, name, is_loss) in some.chain(cards.iter().filter(is_none)) {
            let class = if *is_loss { "card lost" } else { "card" };
            self.push(format_args!(
                "<div class=\"{class}\"><b>{}</b><span>{}</span></div>\n",
                escape(value),
                escape(name)
            ));
        }
        self.raw("</div>\n")
    }

    /// A box with a heading; `body` is HTML.
    pub fn section(&mut self, heading: &str, is_wide: bool, body: &str) -> &mut Self {
        let class = if is_wide { " class=\"wide\"" } else { "" };
        self.push(format_args!(
            "<section{class}>\n<h2>{}</h2>\n{body}</section>\n",
            escape(heading)
        ));
        self
    }

    /// The whole page.
    #[must_use]
    pub fn finish(mut self, footer: &str) -> String {
        self.push(format_args!(
            "<footer>{}</footer>\n</main>\n</body>\n</html>\n",
            escape(footer)
        ));
        self.html
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _unfailing = self.html.write_fmt(text);
    }
}

/// One row of a [`bar_table`].
#[derive(Debug, Clone)]
pub struct BarRow {
    /// What the row is about; escaped by the table.
    pub key: String,
    /// Length of the bar, 0 to 1.
    pub share: f64,
    /// Class of the bar's colour: `c1` to `c5`, or empty.
    pub class: &'static str,
    /// The other cells; escaped by the table.
    pub cells: Vec<String>,
}

/// A table whose first column carries a bar behind its text.
#[must_use]
pub fn bar_table(head: &[&str], rows: &[BarRow]) -> String {
    bar_table_with(head, rows, &[])
}

/// The same with HTML below each row, over the width of the table; none where it is empty.
#[must_use]
pub fn bar_table_with(head: &[&str], rows: &[BarRow], below: &[String]) -> String {
    if rows.is_empty() {
        return "<p class=\"none\">No data.</p>\n".to_owned();
    }
    let below = below.iter().map(String::as_str);
    let below = below.chain(std::iter::repeat(""));
    let rows = rows.iter().zip(below).map(|(row, below)| {
        let width = row.share.clamp(0.0, 1.0) * 100.0;
        let key = format!(
            "<span class=\"key {}\"><i style=\"width:{width:.2}%\"></i><em>{}</em></span>",
            row.class,
            escape(&row.key)
        );
        (key, row.cells.clone(), below)
    });
    rows_of(head, rows)
}

/// A table of texts, which are escaped here; a line feed in one begins a line. The first column names
/// the rows.
#[must_use]
pub fn table(head: &[&str], rows: impl Iterator<Item = (String, Vec<String>)>) -> String {
    rows_of(head, rows.map(|(key, cells)| (escape(&key), cells, "")))
}

/// Rows of a key, which is HTML, of texts, and of what is below, HTML too. On a narrow screen each row becomes a list of its texts, with
/// the heading before each: nothing is cut.
fn rows_of<'a>(
    head: &[&str],
    rows: impl Iterator<Item = (String, Vec<String>, &'a str)>,
) -> String {
    let mut out = String::from("<div class=\"scroll\"><table class=\"rows\"><thead><tr>");
    for name in head {
        // Writing to a string cannot fail.
        let _unfailing = write!(out, "<th scope=\"col\">{}</th>", escape(name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for (key, cells, below) in rows {
        let _unfailing = write!(out, "<tr><td>{key}</td>");
        let of = head.iter().skip(1).chain(std::iter::repeat(&""));
        for (cell, of) in cells.iter().zip(of) {
            let lines: Vec<String> = cell.split('\n').map(escape).collect();
            let _unfailing = write!(
                out,
                "<td data-of=\"{}\">{}</td>",
                escape(of),
                lines.join("<br>")
            );
        }
        out.push_str("</tr>\n");
        if !below.is_empty() {
            let _unfailing = writeln!(
                out,
                "<tr class=\"below\"><td colspan=\"{}\">{below}</td></tr>",
                head.len()
            );
        }
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Names and texts of any length, a line each.
#[must_use]
pub fn facts(facts: &[(String, String)]) -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    for (name, text) in facts {
        let _unfailing = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(text));
    }
    out.push_str("</dl>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_names_each_of_its_figures() {
        let row = BarRow {
            key: "a<b".to_owned(),
            share: 0.5,
            class: "",
            cells: vec!["1,000".to_owned(), "27 ms".to_owned()],
        };
        let bars = bar_table(&["URL", "responses", "p50"], &[row]);
        let plain = (
            "a<b".to_owned(),
            vec!["1,000".to_owned(), "27 ms".to_owned()],
        );
        let plain = table(&["", "responses", "p50"], std::iter::once(plain));
        for html in [bars, plain] {
            let cells = "<td data-of=\"responses\">1,000</td><td data-of=\"p50\">27 ms</td></tr>";
            assert!(html.contains(cells) && html.contains("a&lt;b"), "{html}");
        }
        let narrow = STYLE.split("@media(max-width:640px)").nth(1).unwrap();
        assert!(narrow.contains("content:attr(data-of)"));
        // A label that may break anywhere is as narrow as a letter.
        assert!(!STYLE.contains("td:first-child{text-align:left;padding-left:0;white-space:normal;overflow-wrap:anywhere"));
    }

    #[test]
    fn empty_tiles_come_last() {
        let tile = |value: &str, name| (value.to_owned(), name, false);
        let mut page = Page::new("t");
        page.cards(&[
            tile("0", "lost"),
            tile("7", "packets"),
            tile("0 B", "bytes"),
            tile("0.5", "rate"),
        ]);
        let html = page.finish("");
        let at = |name: &str| html.find(&format!("<span>{name}</span>")).unwrap();
        assert!(at("packets") < at("rate") && at("rate") < at("lost") && at("lost") < at("bytes"));
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escape("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
        assert_eq!(escape("a\u{202e}b\n\u{0}c"), "a\u{fffd}b\u{fffd}\u{fffd}c");
        assert_eq!(escape_bytes(b"\xff<"), "\u{fffd}&lt;");
    }
}
