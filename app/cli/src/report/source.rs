//! Stored records of files, in whatever form they are.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use linkweir_capture::files_below;
use linkweir_record::human::counted;
use linkweir_record::stored::{Lines, kind_of, members};
use linkweir_record::{
    HeaderNames, HttpKind, RecordBatch as _, RecordKind, Stored, StoredBatch, header_of_column,
};

use super::columns::{self, Columns};
use crate::exit::{Wrong, safe, warn};
use crate::opened::Opened;
use crate::signals::is_stopping;

/// Lines that are handed on at once, and bytes of them: fewer where they are long.
const BATCH: usize = 512;
const BATCH_BYTES: usize = 8 << 20;
/// Bytes of the longest line.
const MAX_LINE: usize = 4 << 20;
/// Lines at the beginning of a file by which its kind is recognised.
const FIRST_LINES: usize = 16;

/// Columns with header fields in a file: those of requests and of responses.
const MAX_HEADERS: usize = 2 * linkweir_record::header::MAX_NAMES;

/// Takes a batch, the name of its file, and the line or row of each record of it; says whether there may be more.
pub(super) type Each<'a, K> =
    dyn FnMut(&StoredBatch<K>, &str, &dyn Fn(usize) -> u64) -> anyhow::Result<ControlFlow<()>> + 'a;

/// How notes name the files of [`Passed`].
pub(super) const OTHER_FILES: &str = "other files";
/// Files that are listed by name.
const LISTED: usize = 3;

/// A file of a directory that was not read, and why.
pub(super) struct Passed {
    name: String,
    why: String,
}

impl Passed {
    fn new(path: &Path, why: String) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self {
            name: name.to_string_lossy().into_owned(),
            why,
        }
    }

    /// It has records of another kind than those that are asked for.
    pub(super) fn of_kind(path: &Path, kind: &str) -> Self {
        Self::new(path, format!("records of {kind}"))
    }

    /// It has no records, or in a format that is not read.
    pub(super) fn unreadable(path: &Path) -> Self {
        Self::new(path, "not readable by report".to_owned())
    }
}

/// The files that were not read, for people.
pub(super) fn passed_over(all: &[Passed]) -> String {
    let named = all.iter().take(LISTED);
    let mut named: Vec<String> = named
        .map(|passed| format!("{}: {}", safe(&passed.name), passed.why))
        .collect();
    if all.len() > LISTED {
        named.push("...".to_owned());
    }
    let files = counted(all.len() as u64, "file");
    format!("{files} ({})", named.join(", "))
}

/// The time, the ends and the subject of a record.
type First = (u64, [(IpAddr, u16); 2], u64);

/// Says that a file begins as one before it does: it has the same records in another format, and they count twice.
pub(super) fn warn_of_twice<K: RecordKind>(
    batch: &StoredBatch<K>,
    name: &str,
    begun: &mut HashMap<First, String>,
) {
    let Some(view) = batch.get(0) else { return };
    let time_ns = Stored::<K>::time_ns(&view);
    if time_ns == 0 {
        return;
    }
    let first = (
        time_ns,
        Stored::<K>::endpoints(&view),
        Stored::<K>::subject(&view),
    );
    if let Some(other) = begun.get(&first) {
        warn(&format!(
            "{name} begins with the same record as {other}: if both have the same records, they count twice"
        ));
    } else {
        begun.insert(first, name.to_owned());
    }
}

/// A file of records, and what is wrong with it.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: String,
    /// Lines or rows that were not read, and the place of the first with the cause.
    pub(super) damaged: u64,
    pub(super) first: Option<String>,
    /// Why it ends too early.
    pub(super) ended: Option<String>,
    /// Whether that is before its first record.
    pub(super) is_unread: bool,
    /// Columns that this version does not know.
    pub(super) unknown: Vec<String>,
    /// `line` or `row`.
    pub(super) unit: &'static str,
}

impl Source {
    const fn of(name: String) -> Self {
        Self {
            name,
            damaged: 0,
            first: None,
            ended: None,
            is_unread: false,
            unknown: Vec::new(),
            unit: "line",
        }
    }

    /// One of which no record can be read, and why.
    pub(super) fn unread(name: String, why: String) -> Self {
        Self {
            ended: Some(why),
            is_unread: true,
            ..Self::of(name)
        }
    }

    /// What is wrong with it, one sentence each.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(first) = &self.first {
            all.push(format!(
                "{}: {} not read; {first}",
                self.name,
                counted(self.damaged, self.unit)
            ));
        }
        if let Some(ended) = &self.ended {
            let read = match self.is_unread {
                true => "no record of it was read",
                false => "what is before it was read",
            };
            all.push(format!("{}: {ended}; {read}", self.name));
        }
        all
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.first.is_none() && self.ended.is_none()
    }
}

/// An input that is open, and the kind of its records.
pub(super) struct Input {
    pub(super) name: String,
    form: Form,
    pub(super) kind: &'static str,
    /// Names of columns with header fields (`linkweir http --header`).
    pub(super) headers: Vec<String>,
}

enum Form {
    Lines(Opened),
    Columns(Columns),
}

/// What a path is.
pub(super) enum Found {
    /// A file of records.
    Input(Box<Input>),
    /// A file without a byte: rotation makes such.
    Empty,
    /// One that cannot be read, from its beginning on.
    Damaged(Source),
    /// Something else.
    Unknown,
}

/// The files that paths name, each once; whether the path named the file itself.
pub(super) fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let below = files_below(path);
            if below.is_empty() {
                bail!(Wrong(format!(
                    "{}: no file is in this directory",
                    path.display()
                )));
            }
            // Names that begin with a point are those of files that are still written.
            let is_hidden = |file: &PathBuf| {
                let parts = file.strip_prefix(path).unwrap_or(file).iter();
                let mut parts = parts.map(std::ffi::OsStr::as_encoded_bytes);
                parts.any(|part| part.starts_with(b"."))
            };
            let shown = below.into_iter().filter(|file| !is_hidden(file));
            files.extend(shown.map(|file| (file, false)));
        } else {
            files.push((path.clone(), true));
        }
    }
    let mut seen = HashMap::new();
    let mut once = Vec::new();
    for (file, is_named) in files {
        // The names of one file may be many: links, `/dev/stdin`, `<(command)`.
        let meta = match file.as_path() == Path::new("-") {
            true => std::fs::metadata("/dev/stdin").ok(),
            false => match std::fs::metadata(&file) {
                Err(error) if is_named => {
                    return Err(error).with_context(|| file.display().to_string());
                }
                // Opening it says why.
                meta => meta.ok(),
            },
        };
        let identity = meta.map(|meta| (meta.dev(), meta.ino()));
        match identity.and_then(|identity| seen.insert(identity, is_named)) {
            None => once.push((file, is_named)),
            // Two names of one file below a directory: it is read by the first.
            Some(false) if !is_named => {}
            Some(_) => bail!(Wrong(format!(
                "{} is given twice: its records would count twice",
                file.display()
            ))),
        }
    }
    Ok(once)
}

impl Input {
    /// Opens a file, and tells the kind of its records.
    pub(super) fn open(path: &Path) -> Found {
        let opened = match Opened::open(path) {
            Ok(opened) => opened,
            Err(error) => {
                let name = path.display().to_string();
                return Found::Damaged(Source::unread(name, error.root_cause().to_string()));
            }
        };
        if opened.beginning.is_empty() {
            return Found::Empty;
        }
        if columns::is_one(&opened.beginning) {
            let name = opened.name.clone();
            return match columns::open(opened) {
                Err(error) => Found::Damaged(Source::unread(name, format!("{error:#}"))),
                Ok((columns, Some(kind))) => Found::Input(Box::new(Self {
                    name,
                    headers: of_headers(columns.names()),
                    form: Form::Columns(columns),
                    kind,
                })),
                Ok((_, None)) => Found::Unknown,
            };
        }
        let lines = opened.beginning.split(|byte| *byte == b'\n');
        for line in lines.take(FIRST_LINES) {
            let (names, own) = members(line);
            let own = own.and_then(|own| kind_named(&own));
            let kind = own.or_else(|| kind_of(&names));
            if let Some(kind) = kind {
                return Found::Input(Box::new(Self {
                    name: opened.name.clone(),
                    headers: of_headers(&names),
                    form: Form::Lines(opened),
                    kind,
                }));
            }
        }
        match opened.fault() {
            Some(error) => {
                let why = error.to_string();
                Found::Damaged(Source::unread(opened.name, why))
            }
            None => Found::Unknown,
        }
    }

    /// Hands on all records with their lines or rows, the columns for which `wanted` holds, until `each` has enough.
    pub(super) fn read<K: RecordKind>(
        self,
        wanted: &dyn Fn(usize) -> bool,
        each: &mut Each<'_, K>,
    ) -> anyhow::Result<(Source, ControlFlow<()>)> {
        let mut source = Source::of(self.name);
        let each = &mut |batch: &StoredBatch<K>, name: &str, place: &dyn Fn(usize) -> u64| {
            // What was read until now is reported, as that of a run that a signal ends.
            match is_stopping() {
                true => Ok(ControlFlow::Break(())),
                false => each(batch, name, place),
            }
        };
        let flow = match self.form {
            Form::Columns(columns) => {
                source.unit = "row";
                columns.read(&mut source, wanted, each)?
            }
            Form::Lines(opened) => read_lines(opened, &mut source, wanted, each)?,
        };
        Ok((source, flow))
    }
}

/// Those of columns with header fields.
fn of_headers(names: &[String]) -> Vec<String> {
    let names = names.iter();
    let names = names.filter(|name| header_of_column(name).is_some());
    names.take(MAX_HEADERS).cloned().collect()
}

/// Makes columns with header fields ones of HTTP transactions, as `--header` did when they were written; as many as a run may choose.
pub(super) fn choose_headers<'a>(columns: impl Iterator<Item = &'a String>) {
    let mut names = Vec::new();
    for name in columns.filter_map(|column| header_of_column(column)) {
        names.push(name.to_owned());
        // One that is not a valid name, or too many, stays a column that this version does not know.
        if HeaderNames::new(&names).is_err() {
            names.pop();
        }
    }
    let chosen = HeaderNames::new(&names).unwrap_or_default();
    // Nobody has chosen others before: the command has no flag for it.
    let _chosen = chosen.is_empty() || HttpKind::choose_headers(&chosen);
}

pub(super) fn kind_named(name: &str) -> Option<&'static str> {
    let schemas = linkweir_record::ddl::KindSchema::all();
    let schema = schemas.iter().find(|schema| schema.name == name);
    schema.map(|schema| schema.name)
}

/// The kind of this name; the error lists them.
pub(super) fn known_kind(name: &str) -> anyhow::Result<&'static str> {
    kind_named(name).ok_or_else(|| {
        let schemas = linkweir_record::ddl::KindSchema::all();
        let names: Vec<&str> = schemas.iter().map(|schema| schema.name).collect();
        anyhow!(Wrong(format!("--kind {name}: one of {}", names.join(", "))))
    })
}

/// Reads JSON lines.
fn read_lines<K: RecordKind>(
    opened: Opened,
    source: &mut Source,
    wanted: &dyn Fn(usize) -> bool,
    each: &mut Each<'_, K>,
) -> anyhow::Result<ControlFlow<()>> {
    let name = source.name.clone();
    let mut bytes = BufReader::with_capacity(256 << 10, opened);
    let mut reader = Lines::<K>::new(wanted);
    let mut batch = StoredBatch::<K>::default();
    let (mut line, mut numbers) = (Vec::new(), Vec::new());
    let mut number = 0_u64;
    let mut read_bytes = 0;
    let mut is_more = true;
    while is_more {
        number += 1;
        let end = next_line(&mut bytes, &mut line);
        let mut damage = |what: String| {
            source.damaged += 1;
            source
                .first
                .get_or_insert_with(|| format!("line {number}: {what}"));
        };
        match end {
            Ok(end) => {
                is_more = matches!(end, End::Line);
                if line.is_empty() {
                    // Nothing follows, or an empty line.
                } else if line.len() > MAX_LINE {
                    damage(format!("longer than {} MiB", MAX_LINE >> 20));
                } else {
                    match reader.read(&line, &mut batch) {
                        Ok(()) => {
                            numbers.push(number);
                            read_bytes += line.len();
                        }
                        Err(error) if error.is_cut && matches!(end, End::File) => {
                            source.ended = Some(format!("truncated in line {number}"));
                        }
                        Err(error) => damage(error.to_string()),
                    }
                }
            }
            Err(error) => {
                source.ended = Some(format!("ends in line {number}: {error}"));
                is_more = false;
            }
        }
        let is_full = batch.len() >= BATCH || read_bytes >= BATCH_BYTES;
        if is_full || (!is_more && !batch.is_empty()) {
            let place = |at: usize| numbers.get(at).copied().unwrap_or(0);
            if each(&batch, &name, &place)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            batch.clear();
            numbers.clear();
            read_bytes = 0;
        }
    }
    source.unknown = reader.unknown().to_vec();
    Ok(ControlFlow::Continue(()))
}

/// How a line ends.
enum End {
    Line,
    File,
}

/// Reads a line without its end into `line`: of one that is too long only so much that this is seen.
fn next_line(bytes: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<End> {
    line.clear();
    loop {
        let there = match bytes.fill_buf() {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if there.is_empty() {
            return Ok(End::File);
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let part = there.get(..end.unwrap_or(there.len())).unwrap_or_default();
        if line.len() <= MAX_LINE {
            line.extend_from_slice(part);
        }
        let length = part.len() + usize::from(end.is_some());
        bytes.consume(length);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(End::Line);
        }
    }
}
