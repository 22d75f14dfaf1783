//! Packets of QUIC opened with the secrets of a key log (RFC 9001 sec. 5 and 6, RFC 9369).

use linkweir_proto::quic::Version;
use ring::aead::quic::{self, HeaderProtectionKey};
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, UnboundKey};
use zeroize::Zeroizing;

use crate::log::Secret;
use crate::record::{aead_of, expand, nonce};
use crate::suite::{Cipher, Hash, Suite};

/// Bytes of ciphertext that header protection takes (RFC 9001 sec. 5.4.2).
const SAMPLE: usize = 16;
/// The longest packet number, bytes.
const NUMBER: usize = 4;

/// Labels of a version: key, IV, header protection, key update (RFC 9001 sec. 5.1 and 6.1, RFC 9369 sec. 3.3.2).
struct Labels {
    key: &'static [u8],
    iv: &'static [u8],
    header: &'static [u8],
    update: &'static [u8],
}

const fn labels(version: Version) -> Labels {
    match version {
        Version::Two => Labels {
            key: b"quicv2 key",
            iv: b"quicv2 iv",
            header: b"quicv2 hp",
            update: b"quicv2 ku",
        },
        _ => Labels {
            key: b"quic key",
            iv: b"quic iv",
            header: b"quic hp",
            update: b"quic ku",
        },
    }
}

/// The form of a packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Before the handshake is over.
    Long,
    /// Behind it; the bit that says which keys are in use is in it.
    Short,
}

/// A packet that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened<'a> {
    /// Its number.
    pub number: u64,
    /// Its frames.
    pub frames: &'a [u8],
}

/// The header of a packet without its protection.
#[derive(Debug, Clone, Copy)]
struct Plain {
    number: u64,
    /// Bytes of the header, the number included.
    len: usize,
    /// The bit of the key phase; of a long header without meaning.
    phase: bool,
}

/// Removes the protection of headers: the same through all key updates.
struct HeaderKey(HeaderProtectionKey);

impl HeaderKey {
    fn new(version: Version, suite: Suite, secret: &Secret) -> Option<Self> {
        let algorithm = match suite.cipher {
            Cipher::Aes128Gcm => &quic::AES_128,
            Cipher::Aes256Gcm => &quic::AES_256,
            Cipher::ChaCha20Poly1305 => &quic::CHACHA20,
            Cipher::Aes128Cbc(_) | Cipher::Aes256Cbc(_) => return None,
        };
        let mut key = Zeroizing::new([0; 32]);
        let key = key.get_mut(..algorithm.key_len())?;
        expand(suite.hash, secret, labels(version).header, key)?;
        HeaderProtectionKey::new(algorithm, key).ok().map(Self)
    }

    /// Reads the header of a packet whose number stands at `number_at` (RFC 9001 sec. 5.4.1); `largest` is the largest
    /// number of the direction so far. The packet has then its header without protection.
    fn remove(
        &self,
        packet: &mut [u8],
        number_at: usize,
        form: Form,
        largest: Option<u64>,
    ) -> Option<Plain> {
        // The sample begins as if the number had four bytes.
        let sample_at = number_at.checked_add(NUMBER)?;
        let sample = packet.get(sample_at..sample_at.checked_add(SAMPLE)?)?;
        let [mask, number_mask @ ..] = self.0.new_mask(sample).ok()?;
        let bits = match form {
            Form::Long => 0x0f,
            Form::Short => 0x1f,
        };
        let first = packet.first_mut()?;
        *first ^= mask & bits;
        let (number_len, phase) = (usize::from(*first & 3) + 1, *first & 4 != 0);
        let len = number_at + number_len;
        let mut truncated = 0_u64;
        for (byte, mask) in packet.get_mut(number_at..len)?.iter_mut().zip(number_mask) {
            *byte ^= mask;
            truncated = truncated << 8 | u64::from(*byte);
        }
        Some(Plain {
            number: whole_number(truncated, number_len, largest),
            len,
            phase,
        })
    }
}

/// The number of which these are the last bytes: the one nearest to the next (RFC 9000 appendix A.3).
fn whole_number(truncated: u64, len: usize, largest: Option<u64>) -> u64 {
    let expected = largest.map_or(0, |largest| largest + 1);
    let window = 1_u64 << (8 * len);
    let candidate = expected & !(window - 1) | truncated;
    if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// Opens what packets carry.
struct Payload {
    key: LessSafeKey,
    iv: Zeroizing<[u8; NONCE_LEN]>,
}

impl Payload {
    fn new(version: Version, suite: Suite, secret: &Secret) -> Option<Self> {
        let algorithm = aead_of(suite.cipher)?;
        let labels = labels(version);
        let mut key = Zeroizing::new([0; 32]);
        let key = key.get_mut(..algorithm.key_len())?;
        expand(suite.hash, secret, labels.key, key)?;
        let mut iv = Zeroizing::new([0; NONCE_LEN]);
        expand(suite.hash, secret, labels.iv, iv.as_mut())?;
        let key = UnboundKey::new(algorithm, key).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
            iv,
        })
    }

    fn open<'a>(&self, packet: &'a mut [u8], plain: Plain) -> Option<&'a [u8]> {
        let (header, sealed) = packet.split_at_mut_checked(plain.len)?;
        let nonce = nonce(&self.iv, plain.number);
        let frames = self.key.open_in_place(nonce, Aad::from(header), sealed);
        Some(frames.ok()?)
    }
}

/// The keys of one direction before the handshake is over.
pub struct PacketKeys {
    header: HeaderKey,
    payload: Payload,
    largest: Option<u64>,
}

impl std::fmt::Debug for PacketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PacketKeys(..)")
    }
}

impl PacketKeys {
    /// From a traffic secret; `None` where it is not one of this suite.
    ///
    /// Cost: some microseconds.
    #[must_use]
    pub fn new(version: Version, suite: Suite, secret: &Secret) -> Option<Self> {
        Some(Self {
            header: HeaderKey::new(version, suite, secret)?,
            payload: Payload::new(version, suite, secret)?,
            largest: None,
        })
    }

    /// Opens a packet with a long header, whose number stands at `number_at`; it is then decrypted, or, where it is not
    /// one of these keys, not what it was any more.
    pub fn open<'a>(&mut self, packet: &'a mut [u8], number_at: usize) -> Option<Opened<'a>> {
        let plain = self
            .header
            .remove(packet, number_at, Form::Long, self.largest)?;
        let frames = self.payload.open(packet, plain)?;
        self.largest = self.largest.max(Some(plain.number));
        Some(Opened {
            number: plain.number,
            frames,
        })
    }
}

/// The keys of one direction behind the handshake, which change when an end wants it (RFC 9001 sec. 6).
pub struct Phases {
    version: Version,
    suite: Suite,
    header: HeaderKey,
    /// Of the phase before: packets of it may come late.
    before: Option<Payload>,
    now: Payload,
    next: Payload,
    /// From which the keys behind the next follow.
    next_secret: Secret,
    phase: bool,
    largest: Option<u64>,
    /// The first packet of this phase.
    first: u64,
}

impl std::fmt::Debug for Phases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Phases(..)")
    }
}

impl Phases {
    /// From the first traffic secret; `None` where it is not one of this suite.
    ///
    /// Cost: some ten microseconds.
    #[must_use]
    pub fn new(version: Version, suite: Suite, secret: &Secret) -> Option<Self> {
        let next_secret = updated(version, suite.hash, secret)?;
        Some(Self {
            version,
            suite,
            header: HeaderKey::new(version, suite, secret)?,
            before: None,
            now: Payload::new(version, suite, secret)?,
            next: Payload::new(version, suite, &next_secret)?,
            next_secret,
            phase: false,
            largest: None,
            first: 0,
        })
    }

    /// Opens a packet with a short header, whose number stands at `number_at`; it is then decrypted, or, where it is
    /// not one of these keys, not what it was any more.
    pub fn open<'a>(&mut self, packet: &'a mut [u8], number_at: usize) -> Option<Opened<'a>> {
        let plain = self
            .header
            .remove(packet, number_at, Form::Short, self.largest)?;
        let is_late = plain.number < self.first;
        let (keys, is_update) = match plain.phase == self.phase {
            true => (&self.now, false),
            // The bit alone does not say whether it is of the phase before or of the next: the number does.
            false if is_late => (self.before.as_ref()?, false),
            false => (&self.next, true),
        };
        let frames = keys.open(packet, plain)?;
        if is_update {
            self.update(plain.number)?;
        }
        self.largest = self.largest.max(Some(plain.number));
        Some(Opened {
            number: plain.number,
            frames,
        })
    }

    /// Goes on to the next phase, which begins with this packet.
    fn update(&mut self, first: u64) -> Option<()> {
        let secret = updated(self.version, self.suite.hash, &self.next_secret)?;
        let next = Payload::new(self.version, self.suite, &secret)?;
        self.next_secret = secret;
        let now = std::mem::replace(&mut self.next, next);
        self.before = Some(std::mem::replace(&mut self.now, now));
        self.phase = !self.phase;
        self.first = first;
        Some(())
    }
}

/// The secret of the next phase (RFC 9001 sec. 6.1).
fn updated(version: Version, hash: Hash, secret: &Secret) -> Option<Secret> {
    let mut bytes = Zeroizing::new([0; 48]);
    let bytes = bytes.get_mut(..secret.bytes().len())?;
    expand(hash, secret, labels(version).update, bytes)?;
    Secret::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.map(|pair| byte(pair).unwrap()).collect()
    }

    fn chacha() -> (Suite, Secret) {
        let suite = Suite::of(0x1303).unwrap();
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        (suite, Secret::new(&secret).unwrap())
    }

    /// RFC 9001 appendix A.5.
    #[test]
    fn a_packet_of_the_rfc_with_a_short_header() {
        let (suite, secret) = chacha();
        let mut keys = Phases::new(Version::One, suite, &secret).unwrap();
        keys.largest = Some(654_360_563);
        let packet = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
        let mut sealed = packet.clone();
        let opened = keys.open(&mut sealed, 1).unwrap();
        assert_eq!((opened.number, opened.frames), (654_360_564, &[1][..]));
        assert_eq!(sealed[..4], hex("4200bff4"));
        // Of another version, and with a bit turned.
        let mut other = Phases::new(Version::Two, suite, &secret).unwrap();
        assert_eq!(other.open(&mut packet.clone(), 1), None);
        let mut turned = packet;
        turned[20] ^= 1;
        assert_eq!(keys.open(&mut turned, 1), None);
        assert_eq!(keys.open(&mut [0x40; 18], 1), None);
    }

    /// RFC 9001 appendix A.5: the secret behind an update.
    #[test]
    fn the_secret_of_the_next_phase() {
        let (suite, secret) = chacha();
        let next = updated(Version::One, suite.hash, &secret).unwrap();
        let expected = hex("1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9");
        assert_eq!(next.bytes(), expected);
    }

    /// A packet as a sender makes it.
    fn sealed(secret: &Secret, header: &Secret, number: u64, phase: bool) -> Vec<u8> {
        let suite = Suite::of(0x1301).unwrap();
        let payload = Payload::new(Version::One, suite, secret).unwrap();
        let header = HeaderKey::new(Version::One, suite, header).unwrap();
        let mut packet = vec![0x41 | u8::from(phase) << 2];
        packet.extend(&number.to_be_bytes()[6..]);
        let mut frames = vec![1; 20];
        let tag = payload.key.seal_in_place_separate_tag(
            nonce(&payload.iv, number),
            Aad::from(packet.as_slice()),
            &mut frames,
        );
        frames.extend(tag.unwrap().as_ref());
        packet.extend(frames);
        let mask = header.0.new_mask(&packet[5..21]).unwrap();
        packet[0] ^= mask[0] & 0x1f;
        packet[1] ^= mask[1];
        packet[2] ^= mask[2];
        packet
    }

    #[test]
    fn keys_are_updated_and_late_packets_still_opened() {
        let suite = Suite::of(0x1301).unwrap();
        let first = Secret::new(&[7; 32]).unwrap();
        let second = updated(Version::One, suite.hash, &first).unwrap();
        let third = updated(Version::One, suite.hash, &second).unwrap();
        let mut keys = Phases::new(Version::One, suite, &first).unwrap();
        let mut open = |secret: &Secret, number, phase| {
            let mut packet = sealed(secret, &first, number, phase);
            keys.open(&mut packet, 1).map(|opened| opened.number)
        };
        assert_eq!(open(&first, 0, false), Some(0));
        assert_eq!(open(&first, 2, false), Some(2));
        assert_eq!(open(&second, 3, true), Some(3));
        assert_eq!(open(&first, 1, false), Some(1));
        assert_eq!(
            open(&second, 70_000, true),
            None,
            "beyond what two bytes can say"
        );
        assert_eq!(open(&second, 30_000, true), Some(30_000));
        assert_eq!(open(&third, 30_001, false), Some(30_001));
        assert_eq!(open(&second, 29_000, true), Some(29_000));
    }

    #[test]
    fn numbers_from_their_last_bytes() {
        // RFC 9000 appendix A.3.
        assert_eq!(whole_number(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(whole_number(0, 1, None), 0);
        assert_eq!(whole_number(0xff, 1, Some(0x1ff)), 0x1ff);
        assert_eq!(whole_number(0x02, 1, Some(0x1ff)), 0x202);
        assert_eq!(whole_number(0xfe, 1, Some(0x200)), 0x1fe);
    }
}
