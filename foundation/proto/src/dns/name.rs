//! Domain names (RFC 1035 sections 3.1 and 4.1.4).

/// The longest name, bytes of text: 255 on the wire less the first length and the root.
pub const MAX_NAME: usize = 253;

/// What the two highest bits of a length byte say.
enum Step {
    End,
    /// A label of so many bytes.
    Label(usize),
    /// Go on there.
    Pointer(usize),
}

/// The step at `at`, and where the bytes behind its length or pointer begin.
#[inline]
fn step(bytes: &[u8], at: usize) -> Option<(Step, usize)> {
    let length = *bytes.get(at)?;
    match length {
        0 => Some((Step::End, at + 1)),
        1..=63 => Some((Step::Label(usize::from(length)), at + 1)),
        // 01 and 10 are reserved (RFC 6891 section 5 gave up the extended labels).
        64..=191 => None,
        _ => {
            let low = *bytes.get(at + 1)?;
            let target = usize::from(length & 0x3F) << 8 | usize::from(low);
            Some((Step::Pointer(target), at + 2))
        }
    }
}

/// Where what follows the name at `at` begins; `None` where the name is cut or broken.
pub(super) fn skip_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    let start = at;
    loop {
        match step(bytes, at)? {
            (Step::End | Step::Pointer(_), after) => return Some(after),
            (Step::Label(length), after) => at = after + length,
        }
        if at - start > MAX_NAME + 1 {
            return None;
        }
    }
}

/// A name as text: labels with dots between them, in lower case, without the last dot.
///
/// Lower case, since names are equal whatever their case (RFC 1035 section 2.3.3) and resolvers
/// mix it on purpose. Other bytes of labels stay what they are: a label may hold any.
#[derive(Clone)]
pub struct Name {
    bytes: [u8; MAX_NAME],
    len: u8,
}

impl Default for Name {
    fn default() -> Self {
        Self {
            bytes: [0; MAX_NAME],
            len: 0,
        }
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Name({})", self.as_bytes().escape_ascii())
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Name {}

impl Name {
    /// The text; empty is the root, or nothing read yet.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Makes it empty.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        let from = usize::from(self.len);
        let to = from + bytes.len();
        let Some(room) = self.bytes.get_mut(from..to) else {
            return false;
        };
        for (place, byte) in room.iter_mut().zip(bytes) {
            *place = byte.to_ascii_lowercase();
        }
        // At most 253.
        self.len = u8::try_from(to).unwrap_or(self.len);
        true
    }

    /// Reads the name at `at` of `message`; where it is broken, `false`, and it is empty.
    pub(super) fn read(&mut self, message: &[u8], at: usize) -> bool {
        self.clear();
        let is_whole = self.read_labels(message, at).is_some();
        if !is_whole {
            self.clear();
        }
        is_whole
    }

    fn read_labels(&mut self, message: &[u8], mut at: usize) -> Option<()> {
        // Pointers lead backwards only: each to before where the last run of labels began.
        let mut run = at;
        loop {
            match step(message, at)? {
                (Step::End, _) => return Some(()),
                (Step::Pointer(target), _) => {
                    if target >= run {
                        return None;
                    }
                    run = target;
                    at = target;
                }
                (Step::Label(length), after) => {
                    let label = message.get(after..after + length)?;
                    let is_kept = (self.len == 0 || self.push(b".")) && self.push(label);
                    if !is_kept {
                        return None;
                    }
                    at = after + length;
                }
            }
        }
    }
}
