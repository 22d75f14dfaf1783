//! Requests from the bytes of a log, however they are cut into pieces.
//!
//! Which form a log has, by its beginning.

use super::transactions::{self, Columns, RECORD_BYTES};
use super::{Cause, Faults, LogFormat, Request, common};

/// The longest line that is held; longer ones are counted and passed over.
pub const MOST_LINE_BYTES: usize = 64 << 10;

/// What lines are read as.
#[derive(Debug, Clone, Copy)]
enum Form {
    Common,
    WorldCup,
    Json,
    Text,
    /// Nothing until the heading was read.
    Csv(Option<Columns>),
}

/// Reads one log.
#[derive(Debug)]
pub struct Decoder {
    form: Form,
    /// The beginning of a line or record whose end has not come.
    held: Vec<u8>,
    /// Whether the rest of a line that is too long is passed over.
    is_passing: bool,
    /// Lines or records so far.
    number: u64,
    faults: Faults,
}

impl Decoder {
    /// A decoder for one log.
    #[must_use]
    pub fn new(format: LogFormat) -> Self {
        let form = match format {
            LogFormat::Common => Form::Common,
            LogFormat::WorldCup => Form::WorldCup,
            LogFormat::HttpJson => Form::Json,
            LogFormat::HttpText => Form::Text,
            LogFormat::HttpCsv => Form::Csv(None),
        };
        Self {
            form,
            held: Vec::new(),
            is_passing: false,
            number: 0,
            faults: Faults::default(),
        }
    }

    /// Takes the next bytes and appends the requests that are complete.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Request>) {
        if matches!(self.form, Form::WorldCup) {
            self.feed_records(bytes, out);
        } else {
            self.feed_lines(bytes, out);
        }
    }

    /// The log has ended: the last line may lack its line feed, a record may not lack anything.
    pub fn finish(&mut self, out: &mut Vec<Request>) {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        if matches!(self.form, Form::WorldCup) {
            self.number += 1;
            self.faults.add(Cause::Truncated, self.number);
        } else {
            self.line(&held, out);
        }
    }

    /// What could not be used so far.
    #[must_use]
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Lines or records so far.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.number
    }

    fn feed_records(&mut self, mut bytes: &[u8], out: &mut Vec<Request>) {
        if !self.held.is_empty() {
            let missing = RECORD_BYTES
                .saturating_sub(self.held.len())
                .min(bytes.len());
            let (here, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
            self.held.extend_from_slice(here);
            bytes = rest;
            if let Some(record) = self.held.first_chunk::<RECORD_BYTES>() {
                self.number += 1;
                let line = self.number;
                out.push(Request {
                    line,
                    ..transactions::world_cup(record)
                });
                self.held.clear();
            }
        }
        let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
        let numbered = records
            .iter()
            .map(transactions::world_cup)
            .zip(self.number + 1..);
        out.extend(numbered.map(|(request, line)| Request { line, ..request }));
        self.number += records.len() as u64;
        self.held.extend_from_slice(rest);
    }

    fn feed_lines(&mut self, mut bytes: &[u8], out: &mut Vec<Request>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
            bytes = rest.get(1..).unwrap_or_default();
            if std::mem::take(&mut self.is_passing) {
                continue;
            }
            if self.held.is_empty() {
                self.line(line, out);
            } else {
                self.held.extend_from_slice(line);
                let mut whole = std::mem::take(&mut self.held);
                self.line(&whole, out);
                // The room is kept.
                whole.clear();
                self.held = whole;
            }
        }
        if self.is_passing {
            return;
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() > MOST_LINE_BYTES {
            self.held.clear();
            self.is_passing = true;
            self.number += 1;
            self.faults.add(Cause::Length, self.number);
        }
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<Request>) {
        self.number += 1;
        if line.len() > MOST_LINE_BYTES {
            self.faults.add(Cause::Length, self.number);
            return;
        }
        if line.trim_ascii().is_empty() {
            return;
        }
        let request = match self.form {
            Form::Common => common::parse(line),
            Form::Json => transactions::json(line),
            Form::Text => transactions::text(line),
            Form::Csv(Some(columns)) => columns.request(line),
            Form::Csv(None) => {
                self.form = Form::Csv(Columns::of_heading(line));
                if matches!(self.form, Form::Csv(None)) {
                    self.faults.add(Cause::Record, self.number);
                }
                return;
            }
            Form::WorldCup => return,
        };
        match request {
            Ok(request) => out.push(Request {
                line: self.number,
                ..request
            }),
            Err(cause) => self.faults.add(cause, self.number),
        }
    }
}

/// How much of a log [`detect`] should see, where it is so long.
pub const DETECT_BYTES: usize = 64 << 10;

/// The form of a log that begins so; nothing where it is none.
///
/// A line in Common Log Format may stand anywhere in the beginning: logs that were cut start within
/// a line.
#[must_use]
pub fn detect(beginning: &[u8]) -> Option<LogFormat> {
    if transactions::is_world_cup(beginning) {
        return Some(LogFormat::WorldCup);
    }
    let mut lines = beginning
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty());
    let first = lines.next()?;
    let is_read = |read: Result<_, Cause>| !read.is_err_and(Cause::is_damage);
    if first.starts_with(b"{") && is_read(transactions::json(first)) {
        return Some(LogFormat::HttpJson);
    }
    if Columns::of_heading(first).is_some() {
        return Some(LogFormat::HttpCsv);
    }
    if is_read(transactions::text(first)) {
        return Some(LogFormat::HttpText);
    }
    let mut lines = std::iter::once(first).chain(lines);
    lines
        .any(|line| is_read(common::parse(line)))
        .then_some(LogFormat::Common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(format: LogFormat, bytes: &[u8]) -> (Vec<Request>, Faults, u64) {
        let mut decoder = Decoder::new(format);
        let mut out = Vec::new();
        decoder.feed(bytes, &mut out);
        decoder.finish(&mut out);
        (out, decoder.faults().clone(), decoder.lines())
    }

    const FORMS: [LogFormat; 5] = [
        LogFormat::Common,
        LogFormat::WorldCup,
        LogFormat::HttpJson,
        LogFormat::HttpCsv,
        LogFormat::HttpText,
    ];

    #[test]
    fn faults_have_lines() {
        let good = "a - - [01/Jul/1995:00:00:01 +0000] \"GET /\" 200 1";
        let long = "x".repeat(MOST_LINE_BYTES + 1);
        let log = format!("{good}\nnone\n\n{long}\nb c\n{good}");
        let (requests, faults, lines) = whole(LogFormat::Common, log.as_bytes());
        let at: Vec<u64> = requests.iter().map(|request| request.line).collect();
        assert_eq!((at, lines), (vec![1, 6], 6));
        let seen: Vec<_> = faults.iter().collect();
        assert_eq!(
            seen,
            [
                (Cause::Client, 1, 2),
                (Cause::Time, 1, 5),
                (Cause::Length, 1, 4)
            ]
        );
        assert_eq!(faults.damaged(), 3);
    }

    #[test]
    fn a_cut_record_is_counted() {
        let mut bytes = 897_343_200_u32.to_be_bytes().to_vec();
        bytes.extend([0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 1, 33]);
        bytes.extend([1; 7]);
        let (requests, faults, _) = whole(LogFormat::WorldCup, &bytes);
        let expected = Request {
            time_ns: 897_343_200_000_000_000,
            client: super::super::Client::Number(9),
            line: 1,
        };
        assert_eq!(requests, [expected]);
        assert_eq!(
            faults.iter().collect::<Vec<_>>(),
            [(Cause::Truncated, 1, 2)]
        );
    }

    proptest! {
        #[test]
        fn the_cut_does_not_matter(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                "(a - - \\[01/Jul/1995:00:00:0[0-9] \\+0000\\] \"GET /\" 200 1\n|::1\\|1\\|::2\\|80\\|5.0\\|6\\|\\|\\|\\|\\|\\|\\|\n|[{\"]?client_ip,request_ts_ns\n|x\n){0,8}"
                    .prop_map(String::into_bytes),
            ],
            piece in 1..50_usize,
            form in 0..FORMS.len(),
        ) {
            let expected = whole(FORMS[form], &bytes);
            let mut decoder = Decoder::new(FORMS[form]);
            let mut out = Vec::new();
            for piece in bytes.chunks(piece) {
                decoder.feed(piece, &mut out);
            }
            decoder.finish(&mut out);
            prop_assert_eq!((out, decoder.faults().clone(), decoder.lines()), expected);
        }
    }

    #[test]
    fn forms_are_told_by_content() {
        let clf = b"cut\" 200 5\na - - [01/Jul/1995:00:00:01 -0400] \"GET /\" 200 1\n";
        assert_eq!(detect(clf), Some(LogFormat::Common));
        let json = b"{\"client_ip\":\"::1\",\"request_ts_ns\":5}\n";
        assert_eq!(detect(json), Some(LogFormat::HttpJson));
        let csv = b"client_ip,request_ts_ns\n";
        assert_eq!(detect(csv), Some(LogFormat::HttpCsv));
        let text = b"::1|1|::2|80|5.0|5.0|||200||||\n";
        assert_eq!(detect(text), Some(LogFormat::HttpText));
        let mut record = 897_343_200_u32.to_be_bytes().to_vec();
        record.extend([0; 16]);
        assert_eq!(detect(&record), Some(LogFormat::WorldCup));
        record.extend([255; 20]);
        assert_eq!(detect(&record), None);
        for other in [
            &b""[..],
            b"bin_start,count\n",
            b"5\n6\n",
            b"\0\0\0\0",
            b"{}",
        ] {
            assert_eq!(detect(other), None);
        }
    }
}
