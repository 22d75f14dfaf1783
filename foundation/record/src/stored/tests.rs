use proptest::prelude::*;

use super::*;
use crate::http::HttpKind;
use crate::{Filter, FlowKind};

type Batch = StoredBatch<HttpKind>;

fn column(name: &str) -> usize {
    HttpKind::column(name).unwrap()
}

fn read(lines: &[&str]) -> (Batch, Vec<Result<(), LineError>>) {
    let mut batch = Batch::default();
    let mut reader = Lines::new(|_| true);
    let read = lines.iter();
    let read = read.map(|line| reader.read(line.as_bytes(), &mut batch));
    let read = read.collect();
    (batch, read)
}

#[test]
fn a_line_is_a_record() {
    let line = r#"{"kind":"http_transaction","client_ip":"10.0.0.1","client_port":1024, "uri":"/a\\xff\n\u00e9\ud83d\ude00","request_ts_ns":1700000000000000001,"status_code":503,"new":{"a":[1,"}"]},"host":null}"#;
    let (batch, read) = read(&[line]);
    assert_eq!(read, [Ok(())]);
    let view = batch.get(0).unwrap();
    assert_eq!(
        view.value(column("client_ip")),
        Value::Ip([10, 0, 0, 1].into())
    );
    assert_eq!(view.value(column("client_port")), Value::Port(1024));
    let uri = b"/a\xff\n\xc3\xa9\xf0\x9f\x98\x80";
    assert_eq!(view.value(column("uri")), Value::Text(uri));
    assert_eq!(view.value(column("host")), Value::Null);
    let time = 1_700_000_000_000_000_001;
    assert_eq!(view.value(column("request_ts_ns")), Value::TimeNs(time));
    assert_eq!(Stored::<HttpKind>::time_ns(&view), time);
    assert_eq!(Stored::<HttpKind>::endpoints(&view)[0].1, 1024);
    let filter = Filter::<Stored<HttpKind>>::read("status >= 500 and uri ~ ^/a").unwrap();
    assert!(filter.matches(&view));
    let mut other = Batch::default();
    other.push_view(&view);
    assert_eq!(other.get(0).unwrap().value(column("uri")), Value::Text(uri));
}

#[test]
fn milliseconds_keep_their_nanoseconds() {
    let mut batch = StoredBatch::<FlowKind>::default();
    let mut reader = Lines::<FlowKind>::new(|_| true);
    let line = br#"{"first":1700000000123.456789,"durat":1.5,"protocol":"udp"}"#;
    reader.read(line, &mut batch).unwrap();
    let view = batch.get(0).unwrap();
    let first = FlowKind::column("first").unwrap();
    assert_eq!(view.value(first), Value::Millis(1_700_000_000_123_456_789));
    let duration = FlowKind::column("durat").unwrap();
    assert_eq!(view.value(duration), Value::Millis(1_500_000));
}

#[test]
fn what_is_wrong_is_located_and_takes_no_room() {
    for (line, at, words, is_cut) in [
        ("", 1, "ends before", true),
        ("[1]", 1, "an object", false),
        (
            r#"{"client_ip":"10.0.0"}"#,
            14,
            "`client_ip` is not an address",
            false,
        ),
        (
            r#"{"client_port":70000}"#,
            16,
            "`client_port` is not a number",
            false,
        ),
        (r#"{"status_code":"200"}"#, 16, "not a number", false),
        (r#"{"host":5}"#, 9, "not a string", false),
        (r#"{"host":true}"#, 9, "of its column", false),
        (r#"{"host":"a"} x"#, 14, "end of the line", false),
        (r#"{"host":"a","#, 13, "ends before", true),
        (r#"{"host":"a\"#, 12, "ends before", true),
        (r#"{"host":"\ud800x"}"#, 16, "second half", false),
        (r#"{"host":nul"#, 12, "ends before", true),
        (r#"{}"#, 2, "a string", false),
        (r#"{"x":1}"#, 1, "no column of http_transaction", false),
    ] {
        let (batch, read) = read(&[line]);
        let error = read[0].clone().unwrap_err();
        assert_eq!((error.at, error.is_cut), (at, is_cut), "{line}: {error}");
        assert!(error.message.contains(words), "{line}: {error}");
        assert_eq!(batch.len(), 0);
    }
    let deep = format!(r#"{{"x":{}}}"#, "[".repeat(100_000));
    assert!(read(&[&deep]).1[0].is_err());
}

#[test]
fn columns_that_are_not_wanted_and_not_known() {
    let mut batch = Batch::default();
    let host = column("host");
    let mut reader = Lines::<HttpKind>::new(|at| at == host);
    let line = br#"{"host":"a","uri":"/","later":1,"record_id":"x"}"#;
    reader.read(line, &mut batch).unwrap();
    let view = batch.get(0).unwrap();
    assert_eq!(view.value(host), Value::Text(b"a"));
    assert_eq!(view.value(column("uri")), Value::Null);
    assert_eq!(reader.unknown(), ["later"]);
}

#[test]
fn kinds_are_told_by_their_columns() {
    for schema in KindSchema::all() {
        let names: Vec<&str> = schema.fields.iter().map(|field| field.name).collect();
        assert_eq!(kind_of(&names), Some(schema.name));
    }
    let line = br#"{"kind":"flow","c_ip":"10.0.0.1","x":[1,{}],"c_port":5"#;
    let (names, kind) = members(line);
    assert_eq!(kind.as_deref(), Some("flow"));
    assert_eq!(names, ["kind", "c_ip", "x", "c_port"]);
    assert_eq!(kind_of(&["a", "b"]), None);
    assert_eq!(kind_of::<&str>(&[]), None);
}

#[test]
fn the_shape_is_that_of_the_columns_that_were_there() {
    let all: Vec<usize> = (0..HttpKind::fields().len()).collect();
    for shape in 0..HttpKind::SHAPES {
        let mut batch = Batch::default();
        batch.grow(1);
        let has: Vec<usize> = all
            .iter()
            .copied()
            .filter(|at| HttpKind::has_column(shape, *at))
            .collect();
        for at in &has {
            batch.set(0, *at, Value::Null);
        }
        let found = Stored::<HttpKind>::shape(&batch.get(0).unwrap());
        let same = all
            .iter()
            .copied()
            .filter(|at| HttpKind::has_column(found, *at));
        assert_eq!(same.collect::<Vec<_>>(), has, "{shape}");
    }
}

proptest! {
    #[test]
    fn no_line_is_too_strange(line in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut batch = Batch::default();
        let _any = Lines::new(|_| true).read(&line, &mut batch);
    }

    #[test]
    fn lines_cut_anywhere_are_refused(cut in 0_usize..95) {
        let line = r#"{"host":"a\u00e9","uri":"/x","status_code":200,"other":[{"a":1}],"request_ts_ns":17,"vlan":null}"#;
        let mut batch = Batch::default();
        let error = Lines::new(|_| true).read(&line.as_bytes()[..cut], &mut batch).unwrap_err();
        prop_assert!(error.is_cut, "{}", error);
    }
}
