//! The distribution of hash values as a drawing and as a page.

use linkweir_engine::{RunReport, SinkError};
use linkweir_sink::human::thousands;
use linkweir_sink::report::page::{Page, escape};
use linkweir_sink::report::plot::{Axis, Marks, Plot, Scale, Series, Unit};
use linkweir_sink::report::write_report_file;

use super::histogram::{BINS, HashSpread, SHARDS, Spread};

/// The figure's two or three hashes in one drawing; a point is a bin.
fn plot(hashes: &[&HashSpread]) -> Plot {
    let bin_width = 2_f64.powi(32) / to_f64(BINS as u64);
    let points = |hash: &HashSpread| {
        hash.bins
            .iter()
            .zip(0_u32..)
            .filter(|(count, _)| **count > 0)
            .map(|(count, bin)| {
                let middle = (f64::from(bin) + 0.5) * bin_width - 2_f64.powi(31);
                (middle, to_f64(*count))
            })
            .collect()
    };
    Plot {
        title: "Packets by hash value".to_owned(),
        x: Axis::new(
            "hash value as a signed number: one consumer left of 0, the other right",
            Scale::Linear,
            Unit::Count,
        ),
        y: Axis::new("packets of a bin", Scale::Log, Unit::Count),
        series: hashes
            .iter()
            .map(|hash| Series {
                name: hash.name.to_owned(),
                marks: Marks::Points,
                points: points(hash),
            })
            .collect(),
        guides: vec![(0.0, "0".to_owned())],
    }
}

#[expect(clippy::cast_precision_loss, reason = "a coordinate")]
const fn to_f64(number: u64) -> f64 {
    number as f64
}

fn all(spread: &Spread) -> Vec<&HashSpread> {
    spread.hashes.iter().collect()
}

/// Writes the drawing alone.
pub(super) fn write_svg(destination: &str, spread: &Spread) -> Result<(), SinkError> {
    write_report_file(destination, &plot(&all(spread)).standalone_svg())
}

/// Writes the drawing with its numbers.
pub(super) fn write_html(
    destination: &str,
    spread: &Spread,
    report: &RunReport,
) -> Result<(), SinkError> {
    let mut page = Page::new("Distribution of hash values");
    let lost = report.drops.kernel + report.drops.unusable_records;
    page.cards(&[
        (thousands(lost), "packets lost", lost > 0),
        (thousands(report.packets), "packets", false),
        (thousands(spread.packets), "of TCP, which are spread", false),
        (thousands(spread.requests), "HTTP requests", false),
    ]);
    let plot = plot(&all(spread));
    let figure = format!(
        "{}{}<p class=\"note\">The figure of merit for a hash: an even band means even consumers. \
         Eq. (1) has one value a connection; Eqs. (2) and (3) have one a transaction.</p>\n",
        plot.svg(),
        plot.table()
    );
    page.raw("<div class=\"grid2\">\n");
    page.section("Packets by hash value", true, &figure);
    page.section("Numbers", true, &numbers(spread));
    page.raw("</div>\n");
    write_report_file(
        destination,
        &page.finish(concat!("linkweir ", env!("CARGO_PKG_VERSION"))),
    )
}

fn numbers(spread: &Spread) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table><thead><tr><th>hash</th>\
         <th>values</th><th>packets of the most frequent</th><th>fullest bin</th><th>chi-square</th>",
    );
    for count in SHARDS {
        html.push_str(&format!(
            "<th>packets, {count} consumers</th><th>transactions, {count} consumers</th>"
        ));
    }
    html.push_str("</tr></thead><tbody>\n");
    for hash in &spread.hashes {
        html.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.2} %</td><td>{:.1}</td>",
            escape(hash.name),
            thousands(hash.distinct()),
            thousands(hash.most_frequent()),
            hash.fullest_bin() * 100.0,
            hash.chi_square()
        ));
        for at in 0..SHARDS.len() {
            for shares in hash.shares(at) {
                let shares: Vec<String> = shares
                    .iter()
                    .map(|share| format!("{:.2}", share * 100.0))
                    .collect();
                html.push_str(&format!("<td>{}</td>", shares.join(" ")));
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str(&format!(
        "</tbody></table></div><p class=\"note\">Shares in per cent. The chi-square of an even spread \
         over {BINS} bins is about {}.</p>\n",
        BINS - 1
    ));
    html
}
