//! Objects that a page of HTML names.

mod finder;
mod resolve;

pub use finder::{Finder, Link};
pub use resolve::{resolve, unescape};

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
