//! Inputs that are one set of records, and what is said of them.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::bail;
use linkweir_record::{RecordKind, StoredBatch};
use linkweir_report::ReportMeta;
use linkweir_report::stored::StoredReport;

use super::choice::Choice;
use super::source::{self, Found, Input, OTHER_FILES, Passed, Source};
use crate::exit::{Wrong, warn};
use crate::files::command_line;
use crate::signals::is_stopping;

/// Inputs that are one set of records.
pub(super) struct Set {
    pub(super) name: String,
    /// Files in their order, and one that is open.
    files: Vec<(PathBuf, Option<Box<Input>>)>,
    pub(super) read: Vec<Source>,
    /// Files that are no records, or of another kind.
    pub(super) passed: Vec<Passed>,
    /// Names of columns with header fields.
    pub(super) headers: Vec<String>,
}

impl Set {
    /// Looks at all files; the first of records decides the kind.
    pub(super) fn open(
        paths: &[PathBuf],
        kind: &mut Option<&'static str>,
        is_asked: bool,
    ) -> anyhow::Result<Self> {
        let names: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let mut set = Self {
            name: names.join(", "),
            files: Vec::new(),
            read: Vec::new(),
            passed: Vec::new(),
            headers: Vec::new(),
        };
        for (path, is_named) in source::files(paths)? {
            match Input::open(&path) {
                Found::Input(input) => {
                    let wanted = *kind.get_or_insert(input.kind);
                    if input.kind != wanted && is_asked {
                        if is_named {
                            warn(&format!(
                                "{}: no records of {wanted}, but of {}",
                                input.name, input.kind
                            ));
                        }
                        set.passed.push(Passed::of_kind(&path, input.kind));
                    } else if input.kind != wanted {
                        bail!(Wrong(format!(
                            "{}: records of {}, others are of {wanted}; say which with --kind",
                            input.name, input.kind
                        )));
                    } else {
                        set.headers.extend_from_slice(&input.headers);
                        // A pipe cannot be opened again; of many files not all can be open.
                        let is_file = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file());
                        set.files.push((path, (!is_file).then_some(input)));
                    }
                }
                Found::Empty => {}
                Found::Damaged(source) => set.read.push(source),
                Found::Unknown if is_named => {
                    bail!(
                        "{}: no records of linkweir (JSON lines, Parquet, a stream of Arrow)",
                        path.display()
                    )
                }
                Found::Unknown => set.passed.push(Passed::unreadable(&path)),
            }
        }
        Ok(set)
    }

    /// Reads all files, until `each` has enough.
    pub(super) fn read<K: RecordKind>(
        &mut self,
        wanted: &dyn Fn(usize) -> bool,
        each: &mut source::Each<'_, K>,
    ) -> anyhow::Result<()> {
        let mut begun = HashMap::new();
        for (path, input) in std::mem::take(&mut self.files) {
            let input = match input {
                Some(input) => input,
                None => match Input::open(&path) {
                    Found::Input(input) => input,
                    Found::Damaged(source) => {
                        self.read.push(source);
                        continue;
                    }
                    Found::Empty | Found::Unknown => {
                        let name = path.display().to_string();
                        let why = "it has changed meanwhile".to_owned();
                        self.read.push(Source::unread(name, why));
                        continue;
                    }
                },
            };
            let mut is_first = true;
            let mut seen = |batch: &StoredBatch<K>, name: &str, place: &dyn Fn(usize) -> u64| {
                if std::mem::take(&mut is_first) {
                    source::warn_of_twice(batch, name, &mut begun);
                }
                each(batch, name, place)
            };
            let (source, flow) = input.read::<K>(wanted, &mut seen)?;
            self.read.push(source);
            if is_stopping() {
                warn("ended by a signal: what was read until then is reported");
            }
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Says what was not read; whether that is nothing.
    pub(super) fn complain(&self) -> bool {
        for source in &self.read {
            source.complaints().iter().for_each(|text| warn(text));
            if !source.unknown.is_empty() {
                warn(&format!(
                    "{}: columns that this version does not know: {}",
                    source.name,
                    source.unknown.join(", ")
                ));
            }
        }
        self.read.iter().all(Source::is_complete)
    }

    /// What a page says of the run.
    pub(super) fn meta<K: RecordKind>(
        &self,
        report: &StoredReport,
        choice: &Choice<K>,
    ) -> ReportMeta {
        let sum = |of: fn(&Source) -> u64| self.read.iter().map(of).sum();
        let damaged: u64 = sum(|source| source.damaged);
        let ended: u64 = sum(|source| u64::from(source.ended.is_some()));
        let mut notes = vec![("records left out".to_owned(), choice.left_out)];
        if choice.said_again > 0 {
            notes.push(("partial records".to_owned(), choice.said_again));
        }
        if !self.passed.is_empty() {
            notes.push((OTHER_FILES.to_owned(), self.passed.len() as u64));
        }
        ReportMeta {
            title: format!("Report of {}", report.subject.noun),
            inputs: self.read.iter().map(|source| source.name.clone()).collect(),
            command_line: command_line(),
            program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
            first_ts_ns: report.time_ns.map(|(first, _)| first),
            last_ts_ns: report.time_ns.map(|(_, last)| last),
            drops: vec![
                ("records not read".to_owned(), damaged),
                ("files that end too early".to_owned(), ended),
            ],
            notes,
            ..ReportMeta::default()
        }
    }
}
