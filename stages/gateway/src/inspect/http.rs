//! http.

use super::{Found, Side};

/// State of the connection.
#[derive(Debug, Default)]
pub struct HttpInspector {}

impl HttpInspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, bytes: &[u8], found: &mut F) {
        found.text(sender, bytes);
    }

    /// A side has sent all it will.
    pub fn finish<F: Found>(&mut self, _sender: Side, _found: &mut F) {}
}
