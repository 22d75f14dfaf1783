//! Objects that a page of HTML names.
//!
//! What a link in a page asks for: RFC 3986 sec. 5.2, for targets of one host over HTTP.

use memchr::memchr2;

mod finder;

pub use finder::{Finder, Link};

/// Most objects of one page.
pub const MAX_OBJECTS: usize = 256;

/// Targets that were found in one page, each once, in the order of the page.
///
/// Bounded: 256 targets of at most 2 KiB each, and the caller's bound on all pages together.
#[derive(Debug, Default)]
pub struct Found {
    finder: Finder,
    /// What links are relative to.
    base: Vec<u8>,
    has_base: bool,
    /// The base is elsewhere, and so is what is relative to it.
    is_elsewhere: bool,
    targets: Vec<u8>,
    ends: Vec<u32>,
    link: Vec<u8>,
    /// Targets beyond a bound.
    beyond: u32,
}

impl Found {
    /// Begins a page.
    pub fn begin(&mut self, target: &[u8]) {
        self.finder.reset();
        self.base.clear();
        self.base.extend_from_slice(target);
        self.has_base = false;
        self.is_elsewhere = false;
        self.targets.clear();
        self.ends.clear();
        self.beyond = 0;
    }

    /// Takes the next bytes of the page, from the site `host`; holds at most `max_bytes` of targets.
    pub fn feed(&mut self, bytes: &[u8], host: &[u8], max_bytes: usize) {
        let mut finder = std::mem::take(&mut self.finder);
        finder.feed(bytes, |link, value| self.link(link, value, host, max_bytes));
        self.finder = finder;
    }

    fn link(&mut self, link: Link, value: &[u8], host: &[u8], max_bytes: usize) {
        self.link.clear();
        self.link.extend_from_slice(value);
        unescape(&mut self.link);
        match link {
            // Only the first counts.
            Link::Base if self.has_base => {}
            Link::Base => {
                self.has_base = true;
                let mut base = Vec::new();
                self.is_elsewhere = !resolve(&self.base, host, &self.link, &mut base);
                if !self.is_elsewhere {
                    self.base = base;
                }
            }
            Link::Object => self.object(host, max_bytes),
        }
    }

    fn object(&mut self, host: &[u8], max_bytes: usize) {
        let is_relative = !self.link.starts_with(b"//") && !self.link.contains(&b':');
        if self.is_elsewhere && is_relative {
            return;
        }
        let before = self.targets.len();
        if !resolve(&self.base, host, &self.link, &mut self.targets) {
            return;
        }
        let (known, new) = self.targets.split_at_checked(before).unwrap_or_default();
        let is_beyond = self.ends.len() >= MAX_OBJECTS
            || self.targets.len() > max_bytes
            || new.len() > finder::MAX_LINK;
        let mut from = 0;
        let is_known = self.ends.iter().any(|end| {
            let target = known.get(from..*end as usize);
            from = *end as usize;
            target == Some(new)
        });
        match u32::try_from(self.targets.len()) {
            Ok(end) if !is_beyond && !is_known => self.ends.push(end),
            _ => {
                self.targets.truncate(before);
                self.beyond += u32::from(is_beyond && !is_known);
            }
        }
    }

    /// Ends a page: keeps memory for a small one.
    pub fn release(&mut self) {
        const KEPT_BYTES: usize = 4096;
        self.targets.clear();
        self.targets.shrink_to(KEPT_BYTES);
        self.ends.clear();
    }

    /// How many targets there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A target; empty beyond the last.
    #[must_use]
    pub fn target(&self, number: usize) -> &[u8] {
        let Some(end) = self.ends.get(number) else {
            return &[];
        };
        let from = number
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        let from = from.copied().unwrap_or(0) as usize;
        self.targets.get(from..*end as usize).unwrap_or_default()
    }

    /// Targets that were not kept, for there were too many or they were too long.
    #[must_use]
    pub const fn beyond(&self) -> u32 {
        self.beyond
    }

    /// Bytes of targets.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.targets.len()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.finder.memory_bytes()
            + self.base.capacity()
            + self.targets.capacity()
            + self.link.capacity()
            + self.ends.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests;

/// Appends to `out` the target that `link` names in a page with the target `base`, at the site `host`.
///
/// Says whether there is one: links to other hosts and schemes, and empty ones, are none; then `out` is as
/// it was. Fragments are cut, dot segments removed, and bytes that a request line must not have are
/// written in hexadecimal.
pub fn resolve(base: &[u8], host: &[u8], link: &[u8], out: &mut Vec<u8>) -> bool {
    let link = link.trim_ascii();
    let link = match link.iter().position(|byte| *byte == b'#') {
        Some(fragment) => link.get(..fragment).unwrap_or_default(),
        None => link,
    };
    let Some((has_authority, link)) = without_site(host, link) else {
        return false;
    };
    if link.is_empty() && !has_authority {
        return false;
    }
    let (path, query) = split_query(link);
    let (base_path, _) = split_query(base);
    // The directory of the base: all its segments but the last.
    let directory_end = base_path
        .iter()
        .rposition(|byte| *byte == b'/')
        .unwrap_or(0);
    let directory = base_path.get(..directory_end).unwrap_or_default();
    let floor = out.len();
    match path {
        [b'/', absolute @ ..] => push_path(&[], absolute, out),
        [] if has_authority => out.push(b'/'),
        [] => push_clean(base_path, out),
        relative => push_path(directory, relative, out),
    }
    if let Some(query) = query {
        out.push(b'?');
        push_clean(query, out);
    }
    debug_assert!(out.len() > floor, "a target has a path");
    true
}

/// The link without `http://host`, and whether it had a host; `None` where that is another one.
fn without_site<'l>(host: &[u8], link: &'l [u8]) -> Option<(bool, &'l [u8])> {
    let behind_scheme = match link.iter().position(|byte| !is_scheme(*byte)) {
        Some(end) if link.get(end) == Some(&b':') && end > 0 => {
            let (scheme, rest) = link.split_at_checked(end)?;
            if !scheme.eq_ignore_ascii_case(b"http") {
                return None;
            }
            // `http:path` is not written by anybody who means this site.
            rest.get(1..).filter(|rest| rest.starts_with(b"//"))?
        }
        _ => link,
    };
    let Some(rest) = behind_scheme.strip_prefix(b"//") else {
        return Some((false, behind_scheme));
    };
    let end = memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end)?;
    without_default_port(authority)
        .eq_ignore_ascii_case(without_default_port(host))
        .then_some((true, rest))
}

const fn is_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn without_default_port(authority: &[u8]) -> &[u8] {
    authority.strip_suffix(b":80").unwrap_or(authority)
}

fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (target.get(..at).unwrap_or_default(), target.get(at + 1..)),
        None => (target, None),
    }
}

/// A directory (without its last `/`) and a path below it, without dot segments (RFC 3986 sec. 5.2.4).
fn push_path(directory: &[u8], path: &[u8], out: &mut Vec<u8>) {
    let floor = out.len();
    let directory = directory.strip_prefix(b"/").unwrap_or(directory);
    let above = directory
        .split(|byte| *byte == b'/')
        .filter(|_| !directory.is_empty());
    let mut is_directory = false;
    for segment in above.chain(path.split(|byte| *byte == b'/')) {
        is_directory = matches!(segment, b"." | b"..");
        if segment == b".." {
            let parent = out.iter().rposition(|byte| *byte == b'/');
            out.truncate(parent.unwrap_or(floor).max(floor));
        } else if !is_directory {
            out.push(b'/');
            push_clean(segment, out);
        }
    }
    if is_directory || out.len() == floor {
        out.push(b'/');
    }
}

/// Bytes as they may stand in a target.
fn push_clean(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        match byte {
            b'\t' | b'\n' | b'\r' => {}
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                push_hex(byte, DIGITS, out);
            }
            b'!'..=b'~' => out.push(byte),
            _ => push_hex(byte, DIGITS, out),
        }
    }
}

fn push_hex(byte: u8, digits: &[u8; 16], out: &mut Vec<u8>) {
    let digit = |value: u8| digits.get(usize::from(value)).copied().unwrap_or(b'0');
    out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
}

/// Puts characters in the place of `&amp;`, `&#38;` and `&#x26;`; other references stay as they are.
pub fn unescape(value: &mut Vec<u8>) {
    let mut from = 0;
    while let Some(at) = value
        .get(from..)
        .and_then(|rest| rest.iter().position(|byte| *byte == b'&'))
    {
        let at = from + at;
        from = at + 1;
        let Some((byte, len)) = value.get(from..).and_then(reference) else {
            continue;
        };
        if let Some(place) = value.get_mut(at) {
            *place = byte;
        }
        value.drain(from..from + len);
    }
}

/// The character that follows an `&`, and the bytes of its reference with the semicolon.
fn reference(rest: &[u8]) -> Option<(u8, usize)> {
    let end = rest.iter().take(8).position(|byte| *byte == b';')?;
    let name = str::from_utf8(rest.get(..end)?).ok()?;
    let number = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u8::from_str_radix(digits, 16).ok()?,
            None => digits.parse().ok()?,
        },
        None if name == "amp" => b'&',
        None => return None,
    };
    number.is_ascii().then_some((number, end + 1))
}
