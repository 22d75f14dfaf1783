//! Keys of one direction, and records opened with them (RFC 8446 sec. 5.2, 5.3, 7.3; RFC 5246 sec. 6.2.3, 6.3).

use aes::cipher::{Array, BlockCipherEncrypt, BlockModeDecrypt, KeyInit, KeyIvInit};
use linkweir_proto::tls::{ContentType, RecordHeader};
use ring::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{hkdf, hmac};
use zeroize::Zeroizing;

use crate::log::Secret;
use crate::suite::{Cipher, Hash, Mac, Suite};

/// The part of a nonce that is in the record (RFC 5288 sec. 3).
const EXPLICIT: usize = 8;
/// A block of AES.
const BLOCK: usize = 16;
/// The tag of any of the AEADs.
pub const TAG: usize = 16;

/// Which of the rules hold for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// TLS 1.3.
    Thirteen,
    /// TLS 1.2 with a nonce whose last part is in the record: GCM.
    Explicit,
    /// TLS 1.2 with a nonce from the number: ChaCha20-Poly1305 (RFC 7905).
    Implicit,
}

enum Keys {
    Aead {
        key: Box<LessSafeKey>,
        iv: Zeroizing<[u8; NONCE_LEN]>,
        form: Form,
        /// Of TLS 1.3 with AES: the cipher without its tag.
        counter: Option<Counter>,
    },
    Cbc {
        key: Zeroizing<Vec<u8>>,
        mac: hmac::Key,
        /// Whether the MAC is of the ciphertext (RFC 7366).
        encrypts_first: bool,
    },
}

/// AES in counter mode, which GCM is without its tag: any bytes of a record by themselves (NIST SP 800-38D sec. 6.5).
enum Counter {
    Aes128(Box<aes::Aes128Enc>),
    Aes256(Box<aes::Aes256Enc>),
}

impl Counter {
    fn of(cipher: Cipher, key: &[u8]) -> Option<Self> {
        match cipher {
            Cipher::Aes128Gcm => Some(Self::Aes128(Box::new(KeyInit::new_from_slice(key).ok()?))),
            Cipher::Aes256Gcm => Some(Self::Aes256(Box::new(KeyInit::new_from_slice(key).ok()?))),
            _ => None,
        }
    }

    /// Decrypts bytes that begin at `at` of what was encrypted with this nonce.
    fn apply(&self, nonce: &[u8; NONCE_LEN], at: usize, bytes: &mut [u8]) {
        let mut rest = bytes;
        // The first block is of the tag.
        let mut number = u32::try_from(at / BLOCK).unwrap_or_default() + 2;
        let mut from = at % BLOCK;
        while !rest.is_empty() {
            let mut block = Array::from([0; BLOCK]);
            for (to, from) in block
                .iter_mut()
                .zip(nonce.iter().chain(&number.to_be_bytes()))
            {
                *to = *from;
            }
            match self {
                Self::Aes128(key) => key.encrypt_block(&mut block),
                Self::Aes256(key) => key.encrypt_block(&mut block),
            }
            let stream = block.get(from..).unwrap_or_default();
            let (part, behind) = rest.split_at_mut(stream.len().min(rest.len()));
            for (byte, stream) in part.iter_mut().zip(stream) {
                *byte ^= stream;
            }
            (rest, number, from) = (behind, number.wrapping_add(1), 0);
        }
    }
}

/// What a record carries, and where behind its header the content lies.
pub(crate) type Place = (ContentType, std::ops::Range<usize>);

/// The keys of one direction: opens its records, each by its number.
pub struct RecordKeys(Keys);

impl std::fmt::Debug for RecordKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordKeys(..)")
    }
}

/// The two directions of TLS 1.2, from one master secret.
#[derive(Debug)]
pub struct Pair {
    /// Of what the client sends.
    pub client: RecordKeys,
    /// Of what the server sends.
    pub server: RecordKeys,
}

/// What both hellos of TLS 1.2 come to.
#[derive(Debug, Clone, Copy)]
pub struct Agreed<'a> {
    /// The suite.
    pub suite: Suite,
    /// The random of the `ClientHello`.
    pub client_random: &'a [u8; 32],
    /// The random of the `ServerHello`.
    pub server_random: &'a [u8; 32],
    /// Whether both have the extension `encrypt_then_mac` (RFC 7366).
    pub encrypts_first: bool,
}

impl RecordKeys {
    /// Of TLS 1.3, from a traffic secret (RFC 8446 sec. 7.3); `None` where it is not one of this suite.
    ///
    /// Cost: some microseconds.
    #[must_use]
    pub fn thirteen(suite: Suite, secret: &Secret) -> Option<Self> {
        let algorithm = aead_of(suite.cipher)?;
        let mut key = Zeroizing::new([0; 32]);
        let key = key.get_mut(..algorithm.key_len())?;
        expand(suite.hash, secret, b"key", key)?;
        let mut iv = Zeroizing::new([0; NONCE_LEN]);
        expand(suite.hash, secret, b"iv", iv.as_mut())?;
        let counter = Counter::of(suite.cipher, key);
        let key = UnboundKey::new(algorithm, key).ok()?;
        Some(Self(Keys::Aead {
            key: Box::new(LessSafeKey::new(key)),
            iv,
            form: Form::Thirteen,
            counter,
        }))
    }

    /// Whether [`RecordKeys::peek`] decrypts.
    pub(crate) const fn can_peek(&self) -> bool {
        matches!(
            self.0,
            Keys::Aead {
                counter: Some(_),
                ..
            }
        )
    }

    /// Decrypts bytes that begin at `at` of a record, whose tag is not looked at.
    ///
    /// Cost: that of the blocks of 16 bytes that they touch.
    pub(crate) fn peek(&self, number: u64, at: usize, bytes: &mut [u8]) {
        if let Keys::Aead {
            counter: Some(counter),
            iv,
            ..
        } = &self.0
        {
            counter.apply(&nonce_of(iv, number), at, bytes);
        }
    }

    /// The same as [`RecordKeys::open`], but says where in `sealed` the content is.
    pub(crate) fn place(
        &self,
        number: u64,
        header: RecordHeader,
        sealed: &mut [u8],
    ) -> Option<Place> {
        let (kind, content) = self.open(number, header, sealed)?;
        let from = match &self.0 {
            Keys::Aead {
                form: Form::Explicit,
                ..
            } => EXPLICIT,
            Keys::Aead { .. } => 0,
            Keys::Cbc { .. } => BLOCK,
        };
        Some((kind, from..from + content.len()))
    }

    /// The content of a record and its type, where the record is the one of this number; `sealed` is then decrypted,
    /// else it is not what it was any more.
    ///
    /// Cost: that of the cipher; nothing is copied.
    pub fn open<'a>(
        &self,
        number: u64,
        header: RecordHeader,
        sealed: &'a mut [u8],
    ) -> Option<(ContentType, &'a [u8])> {
        match &self.0 {
            Keys::Aead {
                key,
                iv,
                form: Form::Thirteen,
                ..
            } => {
                let [high, low] = header.len.to_be_bytes();
                let [major, minor] = header.version.to_be_bytes();
                let aad = Aad::from([header.content as u8, major, minor, high, low]);
                let inner = key.open_in_place(nonce(iv, number), aad, sealed).ok()?;
                // Zeros behind the type are padding (RFC 8446 sec. 5.4).
                let at = inner.iter().rposition(|byte| *byte != 0)?;
                let (content, kind) = (inner.get(..at)?, *inner.get(at)?);
                Some((ContentType::of(kind)?, content))
            }
            Keys::Aead { key, iv, form, .. } => {
                let (nonce, sealed) = if *form == Form::Explicit {
                    let (explicit, sealed) = sealed.split_first_chunk_mut::<EXPLICIT>()?;
                    let mut nonce = **iv;
                    nonce.get_mut(4..)?.copy_from_slice(explicit);
                    (Nonce::assume_unique_for_key(nonce), sealed)
                } else {
                    (nonce(iv, number), sealed)
                };
                let len = sealed.len().checked_sub(TAG)?;
                let aad = Aad::from(pseudo_header(number, header, len)?);
                let content = key.open_in_place(nonce, aad, sealed).ok()?;
                Some((header.content, content))
            }
            Keys::Cbc {
                key,
                mac,
                encrypts_first,
            } => {
                let content = open_cbc(key, mac, *encrypts_first, number, header, sealed)?;
                Some((header.content, content))
            }
        }
    }
}

impl Pair {
    /// Of TLS 1.2 (RFC 5246 sec. 6.3); `None` where the secret is not a master secret.
    ///
    /// Cost: some ten microseconds.
    #[must_use]
    pub fn twelve(agreed: Agreed<'_>, master: &Secret) -> Option<Self> {
        let (key_len, mac, iv_len) = match agreed.suite.cipher {
            Cipher::Aes128Gcm => (16, None, 4),
            Cipher::Aes256Gcm => (32, None, 4),
            Cipher::ChaCha20Poly1305 => (32, None, NONCE_LEN),
            Cipher::Aes128Cbc(mac) => (16, Some(mac), 0),
            Cipher::Aes256Cbc(mac) => (32, Some(mac), 0),
        };
        let mac = mac.map(hmac_of);
        let mac_len = mac.map_or(0, |mac| mac.digest_algorithm().output_len());
        let mut block = Zeroizing::new([0; 2 * (48 + 32 + NONCE_LEN)]);
        expand_twelve(agreed, master, block.as_mut());
        let mut rest = block.as_ref();
        let mut next = |len| {
            let (part, behind) = rest.split_at_checked(len)?;
            rest = behind;
            Some(part)
        };
        let [client_mac, server_mac] = [next(mac_len)?, next(mac_len)?];
        let [client_key, server_key] = [next(key_len)?, next(key_len)?];
        let [client_iv, server_iv] = [next(iv_len)?, next(iv_len)?];
        let keys = |mac_key: &[u8], key: &[u8], fixed: &[u8]| {
            if let Some(mac) = mac {
                return Some(RecordKeys(Keys::Cbc {
                    key: Zeroizing::new(key.to_vec()),
                    mac: hmac::Key::new(mac, mac_key),
                    encrypts_first: agreed.encrypts_first,
                }));
            }
            let mut iv = Zeroizing::new([0; NONCE_LEN]);
            iv.get_mut(..fixed.len())?.copy_from_slice(fixed);
            let key = UnboundKey::new(aead_of(agreed.suite.cipher)?, key).ok()?;
            Some(RecordKeys(Keys::Aead {
                key: Box::new(LessSafeKey::new(key)),
                iv,
                form: match fixed.len() {
                    NONCE_LEN => Form::Implicit,
                    _ => Form::Explicit,
                },
                counter: None,
            }))
        };
        Some(Self {
            client: keys(client_mac, client_key, client_iv)?,
            server: keys(server_mac, server_key, server_iv)?,
        })
    }
}

pub(crate) const fn aead_of(cipher: Cipher) -> Option<&'static aead::Algorithm> {
    match cipher {
        Cipher::Aes128Gcm => Some(&aead::AES_128_GCM),
        Cipher::Aes256Gcm => Some(&aead::AES_256_GCM),
        Cipher::ChaCha20Poly1305 => Some(&aead::CHACHA20_POLY1305),
        Cipher::Aes128Cbc(_) | Cipher::Aes256Cbc(_) => None,
    }
}

const fn hmac_of(mac: Mac) -> hmac::Algorithm {
    match mac {
        Mac::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Mac::Sha256 => hmac::HMAC_SHA256,
        Mac::Sha384 => hmac::HMAC_SHA384,
    }
}

/// The nonce of a record (RFC 8446 sec. 5.3, RFC 7905 sec. 2) or packet (RFC 9001 sec. 5.3).
pub(crate) fn nonce(iv: &[u8; NONCE_LEN], number: u64) -> Nonce {
    Nonce::assume_unique_for_key(nonce_of(iv, number))
}

fn nonce_of(iv: &[u8; NONCE_LEN], number: u64) -> [u8; NONCE_LEN] {
    let mut nonce = *iv;
    for (byte, number) in nonce.iter_mut().skip(4).zip(number.to_be_bytes()) {
        *byte ^= number;
    }
    nonce
}

/// What a MAC or AEAD of TLS 1.2 covers before the content: number, type, version, length (RFC 5246 sec. 6.2.3).
fn pseudo_header(number: u64, header: RecordHeader, len: usize) -> Option<[u8; 13]> {
    let len = u16::try_from(len).ok()?.to_be_bytes();
    let mut bytes = [0; 13];
    let (first, rest) = bytes.split_first_chunk_mut::<8>()?;
    *first = number.to_be_bytes();
    let [major, minor] = header.version.to_be_bytes();
    rest.copy_from_slice(&[header.content as u8, major, minor, len[0], len[1]]);
    Some(bytes)
}

fn open_cbc<'a>(
    key: &[u8],
    mac: &hmac::Key,
    encrypts_first: bool,
    number: u64,
    header: RecordHeader,
    sealed: &'a mut [u8],
) -> Option<&'a [u8]> {
    let mac_len = mac.algorithm().digest_algorithm().output_len();
    let is_of = |covered: &[u8], tag: &[u8]| -> Option<bool> {
        let mut context = hmac::Context::with_key(mac);
        context.update(&pseudo_header(number, header, covered.len())?);
        context.update(covered);
        Some(context.sign().as_ref() == tag)
    };
    let sealed = if encrypts_first {
        let (covered, tag) = sealed.split_at_mut_checked(sealed.len().checked_sub(mac_len)?)?;
        if !is_of(covered, tag)? {
            return None;
        }
        covered
    } else {
        sealed
    };
    let (iv, blocks) = sealed.split_first_chunk_mut::<BLOCK>()?;
    decrypt(key, iv, blocks)?;
    let padding = usize::from(*blocks.last()?) + 1;
    let unpadded = blocks.get(..blocks.len().checked_sub(padding)?)?;
    if encrypts_first {
        return Some(unpadded);
    }
    let (content, tag) = unpadded.split_at_checked(unpadded.len().checked_sub(mac_len)?)?;
    is_of(content, tag)?.then_some(content)
}

/// AES in CBC, in place; `None` where it is not of whole blocks.
fn decrypt(key: &[u8], iv: &[u8; BLOCK], bytes: &mut [u8]) -> Option<()> {
    let (blocks, rest) = Array::slice_as_chunks_mut(bytes);
    if !rest.is_empty() {
        return None;
    }
    match key.len() {
        16 => cbc::Decryptor::<aes::Aes128>::new_from_slices(key, iv)
            .ok()?
            .decrypt_blocks(blocks),
        _ => cbc::Decryptor::<aes::Aes256>::new_from_slices(key, iv)
            .ok()?
            .decrypt_blocks(blocks),
    }
    Some(())
}

/// A length for `ring`.
struct Len(usize);

impl hkdf::KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// `HKDF-Expand-Label` with an empty context (RFC 8446 sec. 7.1).
pub(crate) fn expand(hash: Hash, secret: &Secret, label: &[u8], into: &mut [u8]) -> Option<()> {
    let (algorithm, secret_len) = match hash {
        Hash::Sha256 => (hkdf::HKDF_SHA256, 32),
        Hash::Sha384 => (hkdf::HKDF_SHA384, 48),
    };
    if secret.bytes().len() != secret_len {
        return None;
    }
    let len = u16::try_from(into.len()).ok()?.to_be_bytes();
    let label_len = [u8::try_from(6 + label.len()).ok()?];
    hkdf::Prk::new_less_safe(algorithm, secret.bytes())
        .expand(&[&len, &label_len, b"tls13 ", label, &[0]], Len(into.len()))
        .ok()?
        .fill(into)
        .ok()
}

/// The secret after a `KeyUpdate` (RFC 8446 sec. 7.2).
pub(crate) fn next_generation(hash: Hash, secret: &Secret) -> Option<Secret> {
    let mut bytes = Zeroizing::new([0; 48]);
    let bytes = bytes.get_mut(..secret.bytes().len())?;
    expand(hash, secret, b"traffic upd", bytes)?;
    Secret::new(bytes)
}

/// The key block (RFC 5246 sec. 5 and 6.3).
fn expand_twelve(agreed: Agreed<'_>, master: &Secret, into: &mut [u8]) {
    let algorithm = match agreed.suite.hash {
        Hash::Sha256 => hmac::HMAC_SHA256,
        Hash::Sha384 => hmac::HMAC_SHA384,
    };
    let key = hmac::Key::new(algorithm, master.bytes());
    let seed: [&[u8]; 3] = [b"key expansion", agreed.server_random, agreed.client_random];
    let sign = |parts: &[&[u8]]| {
        let mut context = hmac::Context::with_key(&key);
        for part in parts {
            context.update(part);
        }
        context.sign()
    };
    let [label, server, client] = seed;
    let mut a = sign(&seed);
    for part in into.chunks_mut(algorithm.digest_algorithm().output_len()) {
        let block = sign(&[a.as_ref(), label, server, client]);
        for (to, from) in part.iter_mut().zip(block.as_ref()) {
            *to = *from;
        }
        a = sign(&[a.as_ref()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text
            .chars()
            .filter_map(|digit| digit.to_digit(16))
            .collect();
        let byte = |pair: &[u32]| u8::try_from(pair[0] << 4 | pair[1]).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// RFC 8448 section 3: the first record of data of the client, the second of the server, behind its ticket, and what
    /// ends their sides.
    #[test]
    fn records_of_the_rfc() {
        let suite = Suite::of(0x1301).unwrap();
        let client = "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
        let server = "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
        let data: Vec<u8> = (0..50).collect();
        for (secret, number, record, expected) in [
            (
                client,
                0,
                "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b
                 62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4",
                (ContentType::ApplicationData, data.as_slice()),
            ),
            (
                server,
                1,
                "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc4
                 9c4bf2e5f0a21c0047c2abf332540dd032e167c2955d",
                (ContentType::ApplicationData, data.as_slice()),
            ),
            (
                client,
                1,
                "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3",
                (ContentType::Alert, &[1, 0]),
            ),
            (
                server,
                2,
                "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9",
                (ContentType::Alert, &[1, 0]),
            ),
        ] {
            let secret = Secret::new(&hex(secret)).unwrap();
            let keys = RecordKeys::thirteen(suite, &secret).unwrap();
            let mut record = hex(record);
            let (header, sealed) = record.split_first_chunk_mut().unwrap();
            let header = RecordHeader::parse(*header).unwrap();
            assert_eq!(usize::from(header.len), sealed.len());
            assert_eq!(keys.open(number, header, sealed), Some(expected));
        }
    }

    #[test]
    fn any_bytes_of_a_record_are_those_of_the_whole() {
        let secret = |len| Secret::new(&vec![7; len]).unwrap();
        for (number, len) in [(0x1301, 32), (0x1302, 48)] {
            let suite = Suite::of(number).unwrap();
            let keys = RecordKeys::thirteen(suite, &secret(len)).unwrap();
            assert!(keys.can_peek());
            let Keys::Aead { key, iv, .. } = &keys.0 else {
                panic!("an AEAD");
            };
            let plain: Vec<u8> = (0..1000_u32).map(|at| at.to_le_bytes()[0]).collect();
            let mut sealed = plain.clone();
            key.seal_in_place_append_tag(nonce(iv, 300), Aad::empty(), &mut sealed)
                .unwrap();
            for (at, len) in [
                (0, 9),
                (7, 9),
                (16, 1),
                (15, 2),
                (500, 300),
                (999, 1),
                (3, 0),
            ] {
                let mut bytes = sealed[at..at + len].to_vec();
                keys.peek(300, at, &mut bytes);
                assert_eq!(bytes, plain[at..at + len], "{at}");
            }
        }
        let chacha = RecordKeys::thirteen(Suite::of(0x1303).unwrap(), &secret(32)).unwrap();
        assert!(!chacha.can_peek());
    }
}
