//! The summary of a run as one JSON object.

use linkweir_engine::SinkError;

/// Writes one JSON object, indented, with a line feed at its end. `-` is standard output; a file
/// appears under its name only when it is whole.
///
/// # Errors
/// Where the destination cannot be written.
pub fn write_summary_file(destination: &str, summary: &serde_json::Value) -> Result<(), SinkError> {
    let mut bytes = format!("{summary:#}").into_bytes();
    bytes.push(b'\n');
    crate::output::write_whole(destination, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_files_are_whole_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.json");
        let value = serde_json::json!({"packets": u64::MAX, "dropped": {"kernel": 0}});
        write_summary_file(path.to_str().unwrap(), &value).unwrap();
        let back: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(back, value);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(
            write_summary_file(folder.path().join("no/s.json").to_str().unwrap(), &value).is_err()
        );
    }
}
