//! What generators must have alike, from the command line and the files it names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use linkweir_load::arrivals::Word;

use super::wire::Terms;
use crate::load::args::{LoadArgs, Role};

/// The terms of a run. Files count by their content, for their names may differ from host to host.
///
/// # Errors
/// Where a file cannot be read.
pub(in crate::load) fn terms(args: &LoadArgs) -> anyhow::Result<Terms> {
    let mut terms = Terms::new();
    let mut put = |name: &str, value: String| {
        terms.insert(name.to_owned(), value);
    };
    let schedule = &args.schedule;
    put("url", args.url.clone());
    put("seed", schedule.seed.to_string());
    put("duration", format!("{:?}", schedule.duration));
    put("sessions", format!("{:?}", schedule.sessions));
    let (arrivals, file) = match &schedule.arrivals {
        Word::Constant { rate } => (format!("constant:{rate}"), None),
        Word::Poisson { rate } => (format!("poisson:{rate}"), None),
        Word::Model {
            path,
            rate,
            is_exact,
        } => {
            let exactly = if *is_exact { " exactly" } else { "" };
            (format!("mmpp at {rate:?}{exactly}"), Some(path))
        }
        Word::Replay { path } => ("replay".to_owned(), Some(path)),
    };
    put("arrivals", arrivals);
    if args.roles.role == Role::Controller {
        return Ok(terms);
    }
    if let Some(path) = file {
        put("file of arrivals", digest(Path::new(path))?);
    }
    put("model bin", format!("{:?}", schedule.model_bin));
    // Workers may have clients of their own, each on its link; the two hosts of a pair have the same.
    if args.roles.role != Role::Worker {
        put("clients", shown(&args.clients.clients));
        put("line", format!("{:?}", args.clients.line));
        put("groups", format!("{:?}", args.clients.group));
        put("mac", format!("{:?}", args.link.mac));
        put("vlan", format!("{:?}", args.link.vlan));
    }
    let sessions = &args.sessions;
    for (name, path) in [("script", &sessions.script), ("targets", &sessions.targets)] {
        if let Some(path) = path {
            put(name, digest(path)?);
        }
    }
    put(
        "sessions' settings",
        format!(
            "preset {:?}, embedded {}, think {:?}, host {:?}, keep-alive {:?}, parallel {:?}, timeout {:?}",
            sessions.preset,
            sessions.embedded,
            sessions.think,
            sessions.host,
            sessions.keeps_alive(),
            sessions.parallel,
            sessions.timeout
        ),
    );
    Ok(terms)
}

fn shown(clients: &[linkweir_record::Prefix]) -> String {
    let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
    clients.join(",")
}

/// Length and FNV-1a of a file: enough to notice that two are not the same.
fn digest(path: &Path) -> anyhow::Result<String> {
    let shown = || path.display().to_string();
    let mut file = File::open(path).with_context(shown)?;
    let mut chunk = vec![0; 64 << 10];
    let (mut hash, mut len) = (0xcbf2_9ce4_8422_2325_u64, 0_usize);
    loop {
        let read = file.read(&mut chunk).with_context(shown)?;
        if read == 0 {
            return Ok(format!("{len} bytes, {hash:016x}"));
        }
        len += read;
        for byte in chunk.iter().take(read) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_by_their_content() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            digest(&path).unwrap()
        };
        assert_eq!(file("a", "/index.html\n"), file("b", "/index.html\n"));
        assert_ne!(file("a", "/index.html\n"), file("b", "/index.htm\n"));
        // The well-known value of FNV-1a for "a".
        assert_eq!(file("c", "a"), "1 bytes, af63dc4c8601ec8c");
        assert!(digest(&directory.path().join("none")).is_err());
    }
}
