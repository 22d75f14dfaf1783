//! Tables as people have them.

use super::*;

fn args(column: Option<&str>, events: bool) -> SeriesArgs {
    SeriesArgs {
        bin: None,
        column: column.map(str::to_owned),
        events,
        spread: None,
        mean: None,
    }
}

const ALL: SpanArgs = SpanArgs {
    max_gap: std::time::Duration::MAX,
    from: None,
    to: None,
};

fn table(text: &str, args: &SeriesArgs) -> anyhow::Result<Table> {
    let opened = Opened::begin(
        "t.csv".to_owned(),
        Box::new(std::io::Cursor::new(text.as_bytes().to_vec())),
    )?;
    read(opened, args, ALL, 1_000_000_000)
}

fn counts(text: &str) -> Vec<(Option<u64>, u64)> {
    match table(text, &args(None, false)).unwrap() {
        Table::Counts(counts) => counts,
        Table::Events(_) => panic!("events: {text}"),
    }
}

fn events(text: &str, args: &SeriesArgs) -> Vec<u64> {
    match table(text, args).unwrap() {
        Table::Events(bins) => bins.into_counts().1,
        Table::Counts(_) => panic!("counts: {text}"),
    }
}

#[test]
fn counts_in_many_forms() {
    let plain = vec![(None, 31), (None, 28)];
    for text in [
        "31\n28\n",
        "count\r\n31\r\n28\r\n",
        "# made by hand\n\n31\n28",
        "bin,count\n0,31\n1,28\n",
        "0;31\n1;28\n",
        "31.0\n28.0\n",
    ] {
        assert_eq!(counts(text), plain, "{text}");
    }
    let start = 897_343_200_000_000_000;
    let timed = vec![(Some(start), 31), (Some(start + 60_000_000_000), 28)];
    for text in [
        "minute,requests\n1998-06-08 22:00,31\n1998-06-08 22:01,28\n",
        "bin_start,count\n1998-06-08T22:00:00Z,31\n1998-06-08T22:01:00Z,28\n",
        "897343200,31\n897343260,28\n",
        "start_ms,n\n897343200000,31\n897343260000,28\n",
    ] {
        assert_eq!(counts(text), timed, "{text}");
    }
}

#[test]
fn events_in_many_forms() {
    for text in [
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:05.0319600,3180,8\n",
        "session_start\n2023-11-16T18:17:03Z\n2023-11-16T18:17:05Z\n",
        "request_ts_ns\n1700158623979960000\n1700158625031960000\n",
        "1700158623.5\n1700158625.9\n",
    ] {
        assert_eq!(events(text, &args(None, false)), [1, 0, 1], "{text}");
    }
    assert_eq!(events("a,b\n1,5\n2,7\n", &args(Some("b"), true)), [1, 0, 1]);
}

#[test]
fn columns_can_be_named() {
    let text = "day,hits,pages\n1,5,50\n2,6,60\n";
    assert!(table(text, &args(None, false)).is_err());
    for column in ["pages", "Pages", "3"] {
        match table(text, &args(Some(column), false)).unwrap() {
            Table::Counts(counts) => assert_eq!(counts, [(None, 50), (None, 60)]),
            Table::Events(_) => panic!(),
        }
    }
    let error = table(text, &args(Some("4"), false)).unwrap_err();
    assert!(error.to_string().contains("no column `4`"));
}

#[test]
fn what_is_no_table_is_told_by_line() {
    for (text, what) in [
        ("", "it is empty"),
        ("count\n", "a heading and no rows"),
        ("5\n-3\n", "line 2: `-3` is not a valid count"),
        ("-5\n3\n", "line 1: `-5` is not a valid count"),
        (
            "5\n99999999999999999999\n",
            "line 2: `99999999999999999999` is not a valid count",
        ),
        (
            "time,count\n1998-06-08,1\nyesterday,2\n",
            "line 3: `yesterday` is not a valid time",
        ),
        ("a,b,c\n1,2,3\n", "--column"),
        ("5\nx\n", "line 2: `x` is not a valid count"),
    ] {
        let error = table(text, &args(None, false)).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(what), "{text:?}: {error}");
    }
    let long = format!("5\n{}\n", "1".repeat(MOST_LINE_BYTES));
    assert!(table(&long, &args(None, false)).is_err());
}
