//! A script that is ready to be sent: requests as the bytes that go out, prebuilt and shared by all sessions.

use linkweir_model::Random;

use super::plan::Method;
use super::span::Span;

/// A request that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub(super) from: u32,
    pub(super) len: u32,
    /// Where the target ends; it begins behind the method and a blank.
    pub(super) target_end: u32,
    /// Bytes of the body.
    pub body_len: u32,
    /// Its method.
    pub method: Method,
    /// How long the response may take, nanoseconds; `None`: as the run says.
    pub timeout_ns: Option<u64>,
}

/// Part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Part {
    pub(super) from: u32,
    pub(super) len: u32,
}

impl Part {
    fn of<T>(self, list: &[T]) -> &[T] {
        let from = self.from as usize;
        list.get(from..from.saturating_add(self.len as usize))
            .unwrap_or_default()
    }
}

/// A page that is ready.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Page {
    /// Number of its base request.
    pub base: u32,
    pub(super) objects: Part,
    pub(super) offsets: Part,
    /// What follows the target in a request for an object that was found in the page.
    pub(super) found_tail: Part,
    /// Whether objects are looked for in its response.
    pub is_parsed: bool,
    /// Between its end and the next page.
    pub think: Span,
    /// Before each object.
    pub pause: Span,
}

impl Page {
    /// Whether its objects have times of their own and do not wait for the base.
    #[must_use]
    pub const fn is_timed(&self) -> bool {
        self.offsets.len > 0
    }

    /// How many objects the script names.
    #[must_use]
    pub const fn objects(&self) -> u32 {
        self.objects.len
    }
}

/// A session that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionScript {
    pub(super) pages: Part,
    /// Most connections at a time.
    pub parallel: u8,
    /// Whether a connection is used again.
    pub keep_alive: bool,
}

impl SessionScript {
    /// How many pages it has.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.pages.len
    }
}

/// All that sessions ask for. Shared by workers; never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// All requests and tails.
    pub(super) bytes: Vec<u8>,
    pub(super) requests: Vec<Request>,
    pub(super) objects: Vec<u32>,
    pub(super) offsets: Vec<u64>,
    pub(super) pages: Vec<Page>,
    pub(super) sessions: Vec<SessionScript>,
    /// Sums of the weights up to each session; empty where they take turns.
    pub(super) weights: Vec<u64>,
    /// `Host` of the site.
    pub(super) host: String,
}

impl Script {
    /// How many sessions it has.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The `Host` of the site: links to other hosts are not followed.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Which session the one of this number in the schedule plays; `random` is its own.
    #[must_use]
    pub fn choose(&self, number: u64, random: &mut Random) -> u32 {
        let chosen = match self.weights.last() {
            Some(sum) => {
                let drawn = random.below(*sum);
                self.weights.partition_point(|upto| *upto <= drawn)
            }
            None => {
                let turn = number.checked_rem(self.sessions.len() as u64);
                usize::try_from(turn.unwrap_or(0)).unwrap_or(0)
            }
        };
        u32::try_from(chosen).unwrap_or(0)
    }

    /// A session; `None` beyond the last.
    #[must_use]
    pub fn session(&self, session: u32) -> Option<&SessionScript> {
        self.sessions.get(session as usize)
    }

    /// A page of a session; `None` beyond its last.
    #[must_use]
    pub fn page(&self, session: u32, page: u32) -> Option<&Page> {
        let session = self.session(session)?;
        session.pages.of(&self.pages).get(page as usize)
    }

    /// The number of the request for an object of a page.
    #[must_use]
    pub fn object(&self, page: &Page, object: u32) -> Option<u32> {
        page.objects.of(&self.objects).get(object as usize).copied()
    }

    /// When an object of a timed page begins, nanoseconds from the planned begin of its session.
    #[must_use]
    pub fn offset_ns(&self, page: &Page, object: u32) -> Option<u64> {
        page.offsets.of(&self.offsets).get(object as usize).copied()
    }

    /// What follows the target in a `GET` of an object that was found in a page.
    #[must_use]
    pub fn found_tail(&self, page: &Page) -> &[u8] {
        page.found_tail.of(&self.bytes)
    }

    /// A request by its number.
    #[must_use]
    pub fn request(&self, request: u32) -> Option<&Request> {
        self.requests.get(request as usize)
    }

    /// The bytes of a request, head and body.
    #[must_use]
    pub fn bytes(&self, request: &Request) -> &[u8] {
        let part = Part {
            from: request.from,
            len: request.len,
        };
        part.of(&self.bytes)
    }

    /// The target of a request.
    #[must_use]
    pub fn target(&self, request: &Request) -> &[u8] {
        let behind_method = request.method.as_str().len() + 1;
        self.bytes(request)
            .get(behind_method..request.target_end as usize)
            .unwrap_or_default()
    }

    /// Bytes that it holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.requests.capacity() * size_of::<Request>()
            + self.objects.capacity() * size_of::<u32>()
            + (self.offsets.capacity() + self.weights.capacity()) * size_of::<u64>()
            + self.pages.capacity() * size_of::<Page>()
            + self.sessions.capacity() * size_of::<SessionScript>()
    }
}
