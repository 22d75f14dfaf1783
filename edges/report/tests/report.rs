//! The HTML report: right numbers, no reference to anything outside it, no markup from the network.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

use linkweir_engine::Sink;
use linkweir_record::{HttpBatch, HttpKind, HttpRow, HttpState, Text};
use linkweir_report::{HttpReport, ReportMeta};
use linkweir_sink::{Document, Existing};

const T0: u64 = 1_700_000_000_000_000_000;
const ATTACK: &[u8] =
    b"<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\xff\x00\xe2\x80\xae";

fn transaction(at: u64, micros: u64, code: u16) -> HttpRow {
    HttpRow {
        request_ts_ns: Some(T0 + at),
        response_ts_ns: Some(T0 + at + micros * 1000),
        status_code: Some(code),
        response_bytes: Some(1000 + micros),
        ..HttpRow::default()
    }
}

fn records(from: u64, to: u64) -> HttpBatch {
    let mut batch = HttpBatch::default();
    for n in from..to {
        let uri = format!("/item/{}?id={n}", n % 10);
        let text = Text {
            method: b"GET",
            uri: uri.as_bytes(),
            host: b"WWW.example.org",
            ..Text::default()
        };
        let code = if n % 10 == 0 { 404 } else { 200 };
        batch.push(transaction(n * 10_000_000, 100 + n, code), &text);
    }
    batch
}

fn meta() -> ReportMeta {
    ReportMeta {
        title: "Test <b>".to_owned(),
        inputs: vec!["a.pcap".to_owned(), "<i>.pcap".to_owned()],
        command_line: "linkweir http -r '<u>'".to_owned(),
        program: "linkweir 0.1.0".to_owned(),
        packets: 1_234_567,
        bytes: 98_765_432,
        first_ts_ns: Some(T0),
        last_ts_ns: Some(T0 + 10_000_000_000),
        drops: vec![("kernel".to_owned(), 0), ("table full".to_owned(), 7)],
        notes: vec![("decode errors".to_owned(), 0)],
    }
}

/// No element or attribute that loads, runs or leads anywhere.
fn is_self_contained(html: &str) -> bool {
    let lower = html.to_ascii_lowercase();
    let forbidden = [
        "<script",
        "<img",
        "<link",
        "<iframe",
        "<object",
        "<embed",
        "<a ",
        "<base",
        "<form",
        "<image",
        "<use",
        " src=",
        " href=",
        "xlink",
        "url(",
        "@import",
        "javascript:",
        "http://",
        "https://",
        " onerror=\"",
    ];
    let found: Vec<_> = forbidden
        .iter()
        .filter(|word| lower.contains(*word))
        .collect();
    // Escaped text may say ` src=x`; markup may not.
    let in_markup = |word: &str| {
        lower
            .split('<')
            .skip(1)
            .filter_map(|rest| rest.split('>').next())
            .any(|tag| format!("<{tag}").contains(word))
    };
    found
        .iter()
        .all(|word| !word.starts_with('<') && !in_markup(word))
        && lower.contains(
            "content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'",
        )
}

#[test]
fn numbers_are_right() {
    let mut report = HttpReport::new();
    Sink::<HttpKind>::write(&mut report, &records(0, 1000)).unwrap();
    let html = report.render(&meta());
    for expected in [
        "<b>1,000</b><span>requests</span>",
        "<b>0</b><span>unanswered requests</span>",
        "<b>0</b><span>orphan responses</span>",
        "<div class=\"card lost\"><b>7</b><span>packets lost</span>",
        "<b>0</b><span>kernel</span>",
        "<b>1,234,567</b><span>packets</span>",
        "<em>404</em></span></td><td data-of=\"responses\">100</td><td data-of=\"share\">10.0 %</td>",
        "<em>GET</em></span></td><td data-of=\"requests\">1,000</td><td data-of=\"share\">100.0 %</td>",
        "<em>www.example.org</em></span></td><td data-of=\"requests\">1,000</td>",
        "<em>www.example.org/item/0</em></span></td><td data-of=\"requests\">100</td><td data-of=\"share\">10.0 %</td>",
        "<em>minimum</em></span></td><td data-of=\"time\">100 µs</td><td data-of=\"seconds\">0.000100000</td>",
        "<em>maximum</em></span></td><td data-of=\"time\">1.1 ms</td><td data-of=\"seconds\">0.001099000</td>",
        "<em>mean</em></span></td><td data-of=\"time\">600 µs</td><td data-of=\"seconds\">0.000599500</td>",
        "Test &lt;b&gt;",
        "a.pcap, &lt;i&gt;.pcap",
        "2023-11-14 22:13:20 UTC",
        "seconds since 2023-11-14 22:13:20 UTC",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    assert!(!html.contains("?id="), "queries are cut off");
    assert_eq!(
        html.matches("<svg ").count(),
        html.matches("<details>").count()
    );
    assert!(is_self_contained(&html));
}

#[test]
fn server_time_has_a_curve_where_the_round_trip_is_known() {
    let page = |rtt_ns: Option<u32>| {
        let mut batch = HttpBatch::default();
        for n in 1..100 {
            let row = HttpRow {
                rtt_ns,
                ..transaction(n, 1000 * n, 200)
            };
            batch.push(row, &Text::default());
        }
        let mut report = HttpReport::new();
        Sink::<HttpKind>::write(&mut report, &batch).unwrap();
        // What another worker adds has its curve too.
        let mut all = HttpReport::new();
        all.merge(&report);
        all.render(&meta())
    };
    let curve = "<caption>server time</caption>";
    let (without, with) = (page(None), page(Some(500_000)));
    assert!(!without.contains(curve));
    assert!(without.contains("<caption>response time</caption>"));
    let (_, table) = with.split_once(curve).unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    // 1 ms less half a millisecond, of which one response in 99 took no more.
    assert!(table.contains("<tbody>\n<tr><td>500"), "{table}");
    let (_, table) = without.split_once("<caption>response time").unwrap();
    assert!(table.contains("<tbody>\n<tr><td>1"), "{table}");
}

#[test]
fn workers_merge_to_the_same_page() {
    let (mut one, mut two, mut all) = (HttpReport::new(), HttpReport::new(), HttpReport::new());
    Sink::<HttpKind>::write(&mut one, &records(0, 300)).unwrap();
    Sink::<HttpKind>::write(&mut two, &records(300, 1000)).unwrap();
    Sink::<HttpKind>::write(&mut all, &records(0, 1000)).unwrap();
    one.merge(&two);
    assert_eq!(one.render(&meta()), all.render(&meta()));
}

#[test]
fn text_from_the_network_stays_text() {
    let mut batch = HttpBatch::default();
    for n in 0..20 {
        let text = Text {
            method: ATTACK,
            uri: ATTACK,
            host: ATTACK,
            ..Text::default()
        };
        batch.push(transaction(n, 5, 65_535), &text);
        batch.push(
            transaction(n, u64::from(u32::MAX), 200),
            &Text {
                uri: &[b'<'; 5000],
                ..text
            },
        );
        let absolute = b"http://<script>/p?<script>";
        batch.push(
            HttpRow {
                state: HttpState::Unanswered,
                ..transaction(n, 0, 1)
            },
            &Text {
                uri: absolute,
                ..text
            },
        );
    }
    // Absurd times.
    batch.push(
        HttpRow {
            request_ts_ns: Some(0),
            ..transaction(u64::MAX - T0, 0, 0)
        },
        &Text::default(),
    );
    batch.push(
        HttpRow {
            request_ts_ns: Some(u64::MAX - 1),
            ..HttpRow::default()
        },
        &Text::default(),
    );
    batch.push(
        HttpRow {
            state: HttpState::Orphan,
            response_ts_ns: Some(u64::MAX),
            ..HttpRow::default()
        },
        &Text::default(),
    );
    let mut report = HttpReport::new();
    Sink::<HttpKind>::write(&mut report, &batch).unwrap();
    let html = report.render(&ReportMeta {
        first_ts_ns: None,
        last_ts_ns: None,
        ..meta()
    });
    assert!(is_self_contained(&html));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!html.contains('\0') && !html.contains('\u{202e}'));
    assert!(!html.contains("NaN") && !html.contains("\"inf"));
    assert!(html.len() < 1 << 20);
}

#[test]
fn an_empty_run_has_a_page_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.html");
    let html = HttpReport::new().render(&ReportMeta::default());
    assert!(is_self_contained(&html) && html.contains("No request was answered."));
    let document = Document::open(path.to_str().unwrap(), Existing::Refuse, |_| {}).unwrap();
    document.write_whole(html.as_bytes()).unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), html);
}

/// The widths of the curves in the drawing under a heading.
fn curve_width(html: &str, heading: &str) -> f64 {
    let (_, section) = html.split_once(&format!("<h2>{heading}</h2>")).unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let (_, path) = section.split_once("<path").unwrap();
    let (_, path) = path.split_once(" d=\"").unwrap();
    let path = path.split('"').next().unwrap();
    let numbers: Vec<f64> = path
        .split(|c: char| c.is_ascii_alphabetic() || c.is_whitespace())
        .filter_map(|point| point.split(',').next()?.parse().ok())
        .collect();
    let most = numbers.iter().copied().fold(0.0, f64::max);
    most - numbers.iter().copied().fold(most, f64::min)
}

#[test]
fn one_stray_time_does_not_flatten_the_plots() {
    let heading = "Requests over time";
    let report = |stray: Option<u64>| {
        let mut report = HttpReport::new();
        Sink::<HttpKind>::write(&mut report, &records(0, 1000)).unwrap();
        let mut meta = meta();
        if let Some(stray) = stray {
            let mut batch = HttpBatch::default();
            let row = HttpRow {
                request_ts_ns: Some(stray),
                state: HttpState::Unanswered,
                ..HttpRow::default()
            };
            batch.push(row, &Text::default());
            Sink::<HttpKind>::write(&mut report, &batch).unwrap();
            meta.first_ts_ns = Some(T0.min(stray));
            meta.last_ts_ns = Some((T0 + 10_000_000_000).max(stray));
        }
        report.render(&meta)
    };
    let plain = report(None);
    assert!(!plain.contains("far from all others"));
    for stray in [0, 2 * T0] {
        let html = report(Some(stray));
        assert!(html.contains("1 of 1,001 times are far from all others"));
        assert!(html.contains("seconds since 2023-11-14"), "{stray}");
        let (with, without) = (curve_width(&html, heading), curve_width(&plain, heading));
        assert!(with > without * 0.9, "{with} of {without}");
        // As many requests a second as without it.
        assert!(
            html.contains("<b>100</b><span>requests per second"),
            "{stray}"
        );
    }
}
