//! Keywords in what belongs to no file, and names of files.

use linkweir_record::gateway::GatewayEventKind;

use super::found::Findings;
use super::of;
use crate::inspect::Side;

/// What systems leave out at the end of a name (dots and blanks) or around it (quotes), and what ends it
/// (NUL): a pattern is for the name that is left.
fn bare_name(name: &[u8]) -> &[u8] {
    let name = name.split(|byte| *byte == 0).next().unwrap_or(name);
    let is_edge = |byte: &u8| matches!(byte, b'\'' | b'"' | b' ' | b'.' | b'\t');
    let end = name
        .iter()
        .rposition(|byte| !is_edge(byte))
        .map_or(0, |at| at + 1);
    let name = name.get(..end).unwrap_or(name);
    let start = name
        .iter()
        .position(|byte| !matches!(byte, b'\'' | b'"'))
        .unwrap_or(0);
    name.get(start..).unwrap_or(name)
}

impl Findings<'_, '_> {
    /// Looks for keywords in bytes that belong to no file.
    pub(super) fn find_in_head(&mut self, sender: Side, bytes: &[u8]) {
        let Some(keywords) = &self.rule.inspect.keywords else {
            return;
        };
        let state = of(&mut self.state.keywords, sender).get_or_insert_with(|| keywords.start());
        if let Some(keyword) = keywords.find(state, bytes) {
            self.on_match(GatewayEventKind::Keyword, sender, b"", keyword.as_bytes());
        }
    }

    /// A name of a file that is asked for, offered or sent.
    pub(super) fn check_name(&mut self, sender: Side, name: &[u8]) {
        if name.is_empty() {
            return;
        }
        let rule = self.rule;
        let names = &rule.inspect.file_names;
        if let Some(pattern) = names.find(name).or_else(|| names.find(bare_name(name))) {
            self.on_match(GatewayEventKind::FileName, sender, name, pattern.as_bytes());
        } else if let Some(keyword) = rule
            .inspect
            .keywords
            .as_ref()
            .and_then(|keywords| keywords.find_in(name))
        {
            self.on_match(GatewayEventKind::Keyword, sender, name, keyword.as_bytes());
        }
    }
}
