//! A step as Tstat dumps it: a directory with one small text file for each histogram.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use linkweir_engine::SinkError;
use linkweir_sketch::step::{HISTOGRAMS, HistogramDef, HistogramId};
use linkweir_sketch::{LogLinear, Step};

use linkweir_sink::number::push_u64;
use linkweir_sink::{io_error, partial_name};

/// What is added to the name of a histogram for its twin.
const TWIN: &str = ".loglinear";

/// Writes a step into `directory`, which appears when it is complete and replaces that of an earlier
/// run.
///
/// Shape: every histogram that is measured has its file (those of `LEFT_OUT` have none), in `#DESCRIPTION`, `#RANGE: min=.. bin_size=..
/// max=..` and lines of lower edge and value of the bins that are not empty; the last bin has all
/// larger values. Beside those that have one and any value stands `NAME.loglinear` in the same form,
/// without an end of its range; its times are in microseconds.
pub(crate) fn write(directory: &Path, step: &Step) -> Result<(), SinkError> {
    let partial = partial_name(directory);
    let failed = |path: &Path, e: io::Error| io_error(&path.display().to_string(), e);
    clean(&partial).map_err(|e| failed(&partial, e))?;
    match fs::create_dir(&partial) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(failed(&partial, e)),
        _ => {}
    }
    let mut text = Vec::with_capacity(16 << 10);
    let all = HISTOGRAMS.iter().zip((0..).map(HistogramId));
    for (def, id) in all.filter(|(_, id)| id.is_measured()) {
        text.clear();
        push_histogram(&mut text, def, step, id);
        let path = partial.join(def.name);
        fs::write(&path, &text).map_err(|e| failed(&path, e))?;
        let one = step.histograms.get(id);
        if let Some(twin) = one.and_then(|one| one.twin.as_ref()) {
            text.clear();
            push_twin(&mut text, def, id, twin);
            let path = partial.join(format!("{}{TWIN}", def.name));
            fs::write(&path, &text).map_err(|e| failed(&path, e))?;
        }
    }
    clean(directory).map_err(|e| failed(directory, e))?;
    fs::rename(&partial, directory).map_err(|e| failed(directory, e))
}

/// Removes what an earlier run has left of a step: histograms, by their names, and the directory if
/// nothing else is in it.
pub(crate) fn clean(directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let name = entry?.file_name();
        let is_ours = name.to_str().is_some_and(|name| {
            let name = name.strip_suffix(TWIN).unwrap_or(name);
            HistogramId::named(name).is_some()
        });
        if is_ours {
            fs::remove_file(directory.join(name))?;
        }
    }
    match fs::remove_dir(directory) {
        Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        result => result,
    }
}

fn push_range(out: &mut Vec<u8>, description: &str, parts: [(&str, u64); 2]) {
    out.push(b'#');
    out.extend_from_slice(description.as_bytes());
    out.extend_from_slice(b"\n#RANGE:");
    for (name, value) in parts {
        out.push(b' ');
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        push_u64(out, value);
    }
}

fn push_line(out: &mut Vec<u8>, edge: u64, value: u64) {
    push_u64(out, edge);
    out.push(b' ');
    push_u64(out, value);
    out.push(b'\n');
}

fn push_histogram(out: &mut Vec<u8>, def: &HistogramDef, step: &Step, id: HistogramId) {
    let parts = [
        ("min", u64::from(def.min)),
        ("bin_size", u64::from(def.bin_size)),
    ];
    push_range(out, def.description, parts);
    out.extend_from_slice(b" max=");
    push_u64(out, u64::from(def.max));
    out.push(b'\n');
    for (edge, value) in step.lines(id) {
        push_line(out, edge, value);
    }
}

fn push_twin(out: &mut Vec<u8>, def: &HistogramDef, id: HistogramId, twin: &LogLinear) {
    let description = match id.twin_divisor() {
        Some(1000) => def.description.replace("[ms]", "[us]"),
        _ => def.description.to_owned(),
    };
    let ends = [
        ("min", twin.min().unwrap_or_default()),
        ("max", twin.max().unwrap_or_default()),
    ];
    push_range(out, &description, ends);
    out.extend_from_slice(b" bins=loglinear\n");
    for (largest, value) in twin.buckets() {
        push_line(out, lower_edge(largest), value);
    }
}

/// The smallest value of the bucket with this largest one: buckets are single values below 2048, and
/// 1024 in every octave above.
fn lower_edge(largest: u64) -> u64 {
    let bits = u64::BITS - largest.leading_zeros();
    let shift = bits.saturating_sub(11);
    (largest >> shift) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_sketch::step::{LEFT_OUT, LeftOut};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn edges_are_those_of_the_buckets(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let of = |value: u64| {
                let mut twin = LogLinear::new();
                twin.record(value);
                twin.buckets().next().unwrap().0
            };
            let largest = of(value);
            let edge = lower_edge(largest);
            prop_assert!(edge <= value);
            prop_assert_eq!(of(edge), largest);
            if edge > 0 {
                prop_assert_ne!(of(edge - 1), largest);
            }
        }
    }

    #[test]
    fn an_empty_step_has_the_files_of_what_is_measured_and_replaces_an_earlier_one() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("000");
        let mut step = Step {
            to_ns: 1_000_000_000,
            ..Step::default()
        };
        let rtt = HistogramId::named("tcp_rtt_avg_in").unwrap();
        step.histograms.add_fine(rtt, 1_234_567);
        write(&directory, &step).unwrap();
        let read = |name: &str| fs::read_to_string(directory.join(name));
        assert_eq!(
            read("tcp_anomalies_in").unwrap(),
            "#TCP total number of anomalies - incoming flows\n#RANGE: min=0 bin_size=1 max=64\n"
        );
        let text = read("tcp_rtt_avg_in").unwrap();
        assert!(
            text.ends_with("\n#RANGE: min=0 bin_size=1 max=2000\n1234 1\n"),
            "{text}"
        );
        let twin = read("tcp_rtt_avg_in.loglinear").unwrap();
        let end =
            "[us] - incoming flows\n#RANGE: min=1234567 max=1234567 bins=loglinear\n1233920 1\n";
        assert!(twin.ends_with(end), "{twin}");
        fs::write(directory.join("notes.txt"), "mine").unwrap();
        assert!(write(&directory, &Step::default()).is_err());
        fs::remove_file(directory.join("notes.txt")).unwrap();
        write(&directory, &Step::default()).unwrap();
        assert!(read("tcp_rtt_avg_in.loglinear").is_err());
        let left_out: usize = LEFT_OUT.iter().map(LeftOut::count).sum();
        assert_eq!(
            fs::read_dir(&directory).unwrap().count(),
            HISTOGRAMS.len() - left_out
        );
        assert!(left_out > 0 && read("profile_cpu").is_err());
    }
}
