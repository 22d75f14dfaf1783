//! The texts of a flow, one after the other in one allocation, of bounded total size.

/// Which text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Text {
    /// Server name of the `ClientHello`.
    Sni,
    /// Common name of the certificate.
    CertificateName,
    /// What the client offered.
    ClientAlpn,
    /// What the server chose.
    ServerAlpn,
    /// Name of the server by DNS.
    Fqdn,
    /// Host of the first request.
    HttpHost,
    /// User agent of QUIC.
    UserAgent,
    /// Fingerprint of the client.
    Ja4,
}

const COUNT: usize = 8;

/// The longest text that is kept, bytes: a name of DNS has at most 255 (RFC 1035 sec. 3.1).
const LONGEST: usize = 255;

/// Bytes that the texts of all flows may have together.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    #[cfg(test)]
    whole: usize,
    /// Texts that found no room.
    pub(super) refused: u64,
}

impl Budget {
    pub(super) const fn new(bytes: usize) -> Self {
        Self {
            left: bytes,
            #[cfg(test)]
            whole: bytes,
            refused: 0,
        }
    }

    /// Whether no text is kept.
    #[cfg(test)]
    pub(super) const fn is_whole(&self) -> bool {
        self.left == self.whole
    }
}

/// The texts of one flow. Freed entries keep their allocation for the next flow.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    ends: [u16; COUNT],
}

impl Texts {
    /// A text; empty where there is none.
    pub(super) fn get(&self, which: Text) -> &[u8] {
        let end = |at: usize| self.ends.get(at).copied().map_or(0, usize::from);
        let at = which as usize;
        let from = at.checked_sub(1).map_or(0, end);
        self.bytes.get(from..end(at)).unwrap_or_default()
    }

    /// Keeps a text, cut to [`LONGEST`] bytes, unless there is one already.
    pub(super) fn set(&mut self, which: Text, text: &[u8], budget: &mut Budget) {
        if text.is_empty() || !self.get(which).is_empty() {
            return;
        }
        let text = text.get(..LONGEST).unwrap_or(text);
        if budget.left < text.len() {
            budget.refused += 1;
            return;
        }
        budget.left -= text.len();
        let at = which as usize;
        let place = self.ends.get(at).copied().map_or(0, usize::from);
        let place = place.min(self.bytes.len());
        self.bytes.splice(place..place, text.iter().copied());
        // At most eight texts of 255 bytes: fits.
        let len = u16::try_from(text.len()).unwrap_or(0);
        for end in self.ends.iter_mut().skip(at) {
            *end += len;
        }
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets all texts.
    pub(super) fn clear(&mut self, budget: &mut Budget) {
        budget.left += self.bytes.len();
        self.bytes.clear();
        self.ends = [0; COUNT];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_any_order_within_the_budget() {
        let mut budget = Budget::new(300);
        let mut texts = Texts::default();
        texts.set(Text::HttpHost, b"host", &mut budget);
        texts.set(Text::Sni, b"name", &mut budget);
        texts.set(Text::UserAgent, b"agent", &mut budget);
        texts.set(Text::Fqdn, b"", &mut budget);
        texts.set(Text::Sni, b"second", &mut budget);
        assert_eq!(texts.get(Text::Sni), b"name");
        assert_eq!(texts.get(Text::HttpHost), b"host");
        assert_eq!(texts.get(Text::UserAgent), b"agent");
        assert_eq!(texts.get(Text::Fqdn), b"");
        texts.set(Text::ClientAlpn, &[b'x'; 400], &mut budget);
        assert_eq!(texts.get(Text::ClientAlpn).len(), 255);
        texts.set(Text::Fqdn, &[b'y'; 40], &mut budget);
        assert_eq!((texts.get(Text::Fqdn), budget.refused), (&[][..], 1));
        texts.clear(&mut budget);
        assert_eq!((budget.left, texts.get(Text::Sni)), (300, &[][..]));
    }
}
