//! The summary of a run: one JSON object for programs, one screen for people.

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
