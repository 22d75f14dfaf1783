//! The stream of intervals, and browsers that read it slowly or not at all.

use super::*;

/// Reads events until one with this name, or until the stream closes.
fn events(reader: &mut impl BufRead, until: &str, most: usize) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    let (mut id, mut event, mut data) = Default::default();
    for line in reader.lines() {
        let Ok(line) = line else { break };
        match line.split_once(": ") {
            Some(("id", value)) => id = value.to_owned(),
            Some(("event", value)) => event = value.to_owned(),
            Some(("data", value)) => data = value.to_owned(),
            _ if line.is_empty() && !event.is_empty() => {
                all.push((
                    std::mem::take(&mut id),
                    std::mem::take(&mut event),
                    std::mem::take(&mut data),
                ));
                if all.last().is_some_and(|(_, event, _)| event == until) || all.len() == most {
                    break;
                }
            }
            _ => {}
        }
    }
    all
}

pub(super) fn open_stream(console: &Console, fields: &str) -> BufReader<Socket> {
    let mut socket = connect(console);
    write!(
        socket,
        "GET /api/stream HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
    )
    .unwrap();
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 "), "{line}");
    reader
}

#[test]
fn a_stream_resumes_where_it_broke_and_ends_with_the_run() {
    let live = live(5);
    let console = console(&live, None);
    let mut resumed = open_stream(&console, "Last-Event-ID: 2\r\n");
    let seen = events(&mut resumed, "", 3);
    assert_eq!(
        seen.iter()
            .map(|(id, _, _)| id.as_str())
            .collect::<Vec<_>>(),
        ["3", "4", "5"]
    );
    let tick: serde_json::Value = serde_json::from_str(&seen[2].2).unwrap();
    assert_eq!(tick["id"], 5);

    // A new one gets what comes from now on.
    let mut fresh = open_stream(&console, "");
    advance(&live, 5, 7);
    for reader in [&mut resumed, &mut fresh] {
        let seen = events(reader, "", 2);
        assert_eq!(
            seen.iter()
                .map(|(id, _, _)| id.as_str())
                .collect::<Vec<_>>(),
            ["6", "7"]
        );
    }
    // Both places are taken.
    assert_eq!(ask(&console, "/api/stream", "").0, 503);
    live.finish(&RunReport::default());
    let last = events(&mut fresh, "end", 10);
    assert_eq!(last.last().unwrap().1, "end");
    let mut rest = Vec::new();
    fresh.read_to_end(&mut rest).unwrap();
    drop(resumed);
    // Ids of another run: everything is new, and the run has ended.
    let mut stale = open_stream(&console, "Last-Event-ID: 900\r\n");
    let seen = events(&mut stale, "end", 100);
    assert_eq!(seen[0].0, "1");
    assert_eq!(seen.last().unwrap().1, "end");
}

#[test]
fn a_silent_stream_shows_that_it_lives() {
    let console = console(&live(1), None);
    let reader = open_stream(&console, "");
    let comment = reader
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with(':'));
    assert_eq!(comment.as_deref(), Some(": still here"));
}

#[test]
fn a_browser_that_does_not_read_holds_up_nobody() {
    let live = live(0);
    let console = console(&live, None);
    let asleep = connect(&console);
    let mut asking = &asleep;
    for _ in 0..200 {
        // Answers of a megabyte in all, that nobody takes.
        if asking
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .is_err()
        {
            break;
        }
    }
    let idle = open_stream(&console, "Last-Event-ID: 0\r\n");
    // The run goes on all the same.
    advance(&live, 0, 5000);
    assert_eq!(live.last_id(), 5000);
    assert_eq!(live.wait_tick(4999, Duration::from_secs(5)).len(), 1);
    let (status, _, body) = ask(&console, "/api/snapshot", "");
    assert_eq!(status, 200);
    assert!(body.contains("\"id\":5000"));
    drop((asleep, idle));
}

#[test]
fn one_that_does_not_read_is_given_up() {
    let live = live(900);
    let console = console(&live, None);
    let socket = connect(&console);
    let mut asking = &socket;
    let (sender, pause) = std::sync::mpsc::channel::<()>();
    // Nothing is read. Answers are far more than the buffers of both ends hold (900 intervals are some 700 kB), so that
    // the server comes to wait, and goes when it has waited for long enough: then nothing can be written any more.
    let is_cut = (0..400).any(|_| {
        pause.recv_timeout(Duration::from_millis(25)).unwrap_err();
        asking
            .write_all(b"GET /api/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .is_err()
    });
    drop(sender);
    assert!(is_cut);
    assert_eq!(ask(&console, "/healthz", "").0, 200);
}
