use linkweir_load::measure::Limits;
use linkweir_sink::Existing;

use super::*;

fn header() -> Header {
    let mut header = Header::default();
    header.push("target", "http://192.0.2.1/");
    header.push("seed", 7);
    header
}

/// Runs `show` with the report of 400 sessions.
fn with_report<T>(limits: &Limits, show: impl FnOnce(Report<'_>) -> T) -> T {
    let figures = samples::figures(400, 0, 1);
    let verdict = figures.verdict(limits);
    show(Report {
        header: &header(),
        figures: &figures,
        verdict: &verdict,
        rates: Some(Rates {
            asked_per_s: 60.0,
            drawn_per_s: 48.3,
        }),
        is_intermediate: false,
    })
}

#[test]
fn the_summary_has_the_keys_of_the_contract() {
    let load = with_report(&Limits::default(), |report| report.summary());
    assert_eq!(
        (&load["planned"], &load["started"]),
        (&json!(400), &json!(400))
    );
    assert_eq!(
        (&load["completed"], &load["failed"]["reset"]),
        (&json!(360), &json!(40))
    );
    assert_eq!(load["failed"]["no_room"], json!(0));
    let time = |key: &str| load["response_time_s"][key].as_f64().unwrap();
    for key in ["min", "max", "avg", "median", "p90", "p99", "p999"] {
        assert!((time(key) - 0.010).abs() < 1e-5, "{key}: {}", time(key));
    }
    assert!(time("stdev") < 1e-9);
    assert!((load["rate_per_s"].as_f64().unwrap() - 4.0).abs() < 1e-9);
    let lag = |key: &str| load["schedule_lag_us"][key].as_f64().unwrap();
    for key in ["p50", "p99", "max"] {
        assert!((lag(key) - 20.0).abs() < 0.02, "{key}: {}", lag(key));
    }
    assert_eq!(
        (&load["valid"], &load["status_codes"]["200"]),
        (&json!(true), &json!(360))
    );
    assert!(load["little"]["error"].as_f64().unwrap() < 1e-9);
    assert_eq!(load["groups"][1]["name"], "mobile");
    assert!(load["arrivals"]["total_variation"].as_f64().unwrap() < 1e-9);
    assert_eq!(load["tcp"]["data_retransmissions"], json!(2));
}

#[test]
fn the_terminal_shows_the_row_of_the_paper() {
    let text = with_report(&Limits::default(), |report| report.to_screen());
    let row = text.lines().find(|line| line.contains("0.0100")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "response", "time", "0.0100", "0.0100", "0.0100", "0.0000", "0.0100", "4.0"
        ]
    );
    for part in [
        "400 planned",
        "40 failed (10.0 %)",
        "reset 40",
        "error 0.0000 %",
        "asked 60/s, drawn 48.3/s",
        "mobile",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    assert!(!text.contains("INVALID"));
    let strict = Limits { lag_p99_ns: 10_000 };
    let text = with_report(&strict, |report| report.to_screen());
    assert!(
        text.contains("INVALID") && text.contains("schedule was not kept"),
        "{text}"
    );
}

#[test]
fn nothing_that_was_answered_has_no_rate() {
    let mut figures = samples::figures(10, 9, 10);
    figures.requests = 400;
    figures.sending = Some((0, 4_000_000_000));
    let verdict = figures.verdict(&Limits::default());
    let report = Report {
        header: &header(),
        figures: &figures,
        verdict: &verdict,
        rates: None,
        is_intermediate: false,
    };
    assert_eq!((figures.responses, figures.failed.total()), (0, 1));
    let text = report.to_screen();
    let row = text.lines().find(|line| line.contains("response time"));
    let cells: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(cells, ["response", "time", "-", "-", "-", "-", "-", "-"]);
}

#[test]
fn the_series_has_a_row_a_second() {
    let csv = with_report(&Limits::default(), |report| report.series_csv());
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == head.len()));
    // 400 sessions, four a second, the last one ends in the second after.
    assert_eq!(rows.len(), 101);
    let column = |name: &str| head.iter().position(|one| *one == name).unwrap();
    let sum = |name: &str| -> u64 {
        rows.iter()
            .map(|row| row[column(name)].parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!((sum("started"), sum("responses")), (400, 360));
    assert_eq!(rows[50][column("open")], "4.000");
    assert_eq!(rows[50][column("second")], "50");
    assert_eq!(rows[100][column("response_time_avg_s")], "");
}

#[test]
fn files_are_written_by_their_kind() {
    let directory = tempfile::tempdir().unwrap();
    let name = |file: &str| directory.path().join(file).to_str().unwrap().to_owned();
    with_report(&Limits::default(), |report| {
        let open = |flag, file: &str| AtEnd::open(flag, Some(&name(file)), Existing::Refuse);
        let reports = [
            ReportFile::Json(name("r.json")),
            ReportFile::Html(name("r.html")),
        ];
        let opened = ["r.json", "r.html"].map(|file| open("--report", file).unwrap().unwrap());
        let mut files = Files {
            reports: reports.into_iter().zip(opened).collect(),
            series: open("--series", "s.csv").unwrap(),
            ..Files::default()
        };
        assert!(files.write(report).is_empty());
        assert!(open("--report", "no/r.json").is_err());
        let full = AtEnd::open("--series", Some("/dev/full"), Existing::Refuse);
        files.series = full.unwrap();
        let failed = files.write(report);
        assert!(
            matches!(&failed[..], [loss] if loss.has_failed),
            "{failed:?}"
        );
    });
    let read = |file: &str| std::fs::read_to_string(directory.path().join(file)).unwrap();
    let json: Value = serde_json::from_str(&read("r.json")).unwrap();
    assert_eq!(
        (&json["run"]["seed"], &json["load"]["planned"]),
        (&json!("7"), &json!(400))
    );
    assert_eq!(json["series"]["bins"].as_array().unwrap().len(), 101);
    let html = read("r.html");
    for part in [
        "Load of http://192.0.2.1/",
        "Little",
        "schedule lag",
        "mobile",
        "data retransmissions",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(read("s.csv").starts_with("start_ns,second,"));
}

#[test]
fn nothing_measured_is_a_report_too() {
    let (figures, header) = (Figures::default(), Header::default());
    let verdict = figures.verdict(&Limits::default());
    let report = Report {
        header: &header,
        figures: &figures,
        verdict: &verdict,
        rates: None,
        is_intermediate: false,
    };
    assert_eq!(report.summary()["response_time_s"]["median"], Value::Null);
    assert_eq!(report.summary()["rate_per_s"], Value::Null);
    assert!(report.to_screen().contains("0 planned"));
    assert!(page::html(report).contains("No data."));
}
