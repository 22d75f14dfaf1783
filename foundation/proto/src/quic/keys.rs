//! Keys of Initial packets (RFC 9001 sec. 5.2 to 5.4).

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use hkdf::Hkdf;
use sha2::Sha256;

use super::header::{LongHeader, Version};

/// Bytes of the tag behind the ciphertext.
const TAG: usize = 16;
/// Bytes of ciphertext that header protection takes (RFC 9001 sec. 5.4.2).
const SAMPLE: usize = 16;
/// The longest packet that is decrypted: datagrams of an Ethernet, and room for larger ones.
const MAX_LEN: usize = 4096;

/// Salts (RFC 9001 sec. 5.2, RFC 9369 sec. 3.3.1, and the drafts').
const SALT_ONE: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
const SALT_TWO: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];
const SALT_DRAFT_29: [u8; 20] = [
    0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0,
    0x43, 0x90, 0xa8, 0x99,
];
const SALT_DRAFT_23: [u8; 20] = [
    0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65,
    0xbe, 0xf9, 0xf5, 0x02,
];
const SALT_DRAFT_22: [u8; 20] = [
    0x7f, 0xbc, 0xdb, 0x0e, 0x7c, 0x66, 0xbb, 0xe9, 0x19, 0x3a, 0x96, 0xcd, 0x21, 0x51, 0x9e, 0xbd,
    0x7a, 0x02, 0x64, 0x4a,
];
const SALT_Q050: [u8; 20] = [
    0x50, 0x45, 0x74, 0xef, 0xd0, 0x66, 0xfe, 0x2f, 0x9d, 0x94, 0x5c, 0xfc, 0xdb, 0xd3, 0xa7, 0xf0,
    0xd3, 0xb5, 0x6b, 0x45,
];
const SALT_T050: [u8; 20] = [
    0x7f, 0xf5, 0x79, 0xe5, 0xac, 0xd0, 0x72, 0x91, 0x55, 0x80, 0x30, 0x4c, 0x43, 0xa2, 0x36, 0x7c,
    0x60, 0x48, 0x83, 0x10,
];
const SALT_T051: [u8; 20] = [
    0x7a, 0x4e, 0xde, 0xf4, 0xe7, 0xcc, 0xee, 0x5f, 0xa4, 0x50, 0x6c, 0x19, 0x12, 0x4f, 0xc8, 0xcc,
    0xda, 0x6e, 0x03, 0x3d,
];

const fn salt(version: Version) -> &'static [u8; 20] {
    match version {
        Version::One => &SALT_ONE,
        Version::Two => &SALT_TWO,
        Version::Draft29 => &SALT_DRAFT_29,
        Version::Draft23 => &SALT_DRAFT_23,
        Version::Draft22 => &SALT_DRAFT_22,
        Version::Q050 => &SALT_Q050,
        Version::T050 => &SALT_T050,
        Version::T051 => &SALT_T051,
    }
}

/// Keys of the Initial packets of one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct InitialKeys {
    key: [u8; 16],
    iv: [u8; 12],
    header: [u8; 16],
}

impl std::fmt::Debug for InitialKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InitialKeys(..)")
    }
}

/// `HKDF-Expand-Label` of RFC 8446 sec. 7.1 with an empty context; `label` has `tls13 ` in front.
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &[u8]) -> Option<[u8; N]> {
    let mut okm = [0; N];
    let len = u16::try_from(N).ok()?.to_be_bytes();
    let label_len = [u8::try_from(label.len()).ok()?];
    secret
        .expand_multi_info(&[&len, &label_len, label, &[0]], &mut okm)
        .ok()?;
    Some(okm)
}

impl InitialKeys {
    /// Of what the client sends to the connection id that it chose first.
    ///
    /// Cost: ten blocks of SHA-256 and more, about two microseconds.
    #[must_use]
    pub fn client(version: Version, destination_id: &[u8]) -> Option<Self> {
        Self::derive(version, destination_id, b"tls13 client in")
    }

    /// Of what the server answers to a client that chose this connection id first.
    #[must_use]
    pub fn server(version: Version, destination_id: &[u8]) -> Option<Self> {
        Self::derive(version, destination_id, b"tls13 server in")
    }

    fn derive(version: Version, destination_id: &[u8], direction: &[u8]) -> Option<Self> {
        let initial = Hkdf::<Sha256>::new(Some(salt(version)), destination_id);
        let secret: [u8; 32] = expand(&initial, direction)?;
        let secret = Hkdf::<Sha256>::from_prk(&secret).ok()?;
        // RFC 9369 sec. 3.3.2: other labels.
        let labels: [&[u8]; 3] = if version == Version::Two {
            [b"tls13 quicv2 key", b"tls13 quicv2 iv", b"tls13 quicv2 hp"]
        } else {
            [b"tls13 quic key", b"tls13 quic iv", b"tls13 quic hp"]
        };
        let [key, iv, header] = labels;
        Some(Self {
            key: expand(&secret, key)?,
            iv: expand(&secret, iv)?,
            header: expand(&secret, header)?,
        })
    }

    #[cfg(test)]
    pub(super) const fn parts(&self) -> ([u8; 16], [u8; 12], [u8; 16]) {
        (self.key, self.iv, self.header)
    }

    /// Decrypts an Initial packet at the start of `datagram` and gives its frames to `on_frames`;
    /// `None` where the packet is cut, too long, or not encrypted with these keys.
    pub fn open<T>(
        &self,
        datagram: &[u8],
        header: &LongHeader<'_>,
        on_frames: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let packet = datagram.get(..header.len)?;
        let mut room = [0; MAX_LEN];
        let room = room.get_mut(..packet.len())?;
        room.copy_from_slice(packet);
        // RFC 9001 sec. 5.4.2: the sample begins as if the packet number had four bytes.
        let sample_at = header.number_at + 4;
        let sample: [u8; SAMPLE] = *packet.get(sample_at..)?.first_chunk()?;
        let mut block = sample.into();
        Aes128::new(&self.header.into()).encrypt_block(&mut block);
        let [mask, number_mask @ ..] = <[u8; 16]>::from(block);
        let (first, _) = room.split_first_mut()?;
        *first ^= mask & 0x0f;
        let number_len = usize::from(*first & 3) + 1;
        let number = room.get_mut(header.number_at..header.number_at + number_len)?;
        let mut nonce = self.iv;
        let mut value = 0_u32;
        for (byte, mask) in number.iter_mut().zip(number_mask) {
            *byte ^= mask;
            value = value << 8 | u32::from(*byte);
        }
        for (byte, number) in nonce.iter_mut().rev().zip(value.to_be_bytes().iter().rev()) {
            *byte ^= number;
        }
        let (associated, protected) = room.split_at_mut_checked(header.number_at + number_len)?;
        let (frames, tag) = protected.split_last_chunk_mut::<TAG>()?;
        Aes128Gcm::new(&self.key.into())
            .decrypt_inout_detached(
                &nonce.into(),
                associated,
                (&mut *frames).into(),
                &(*tag).into(),
            )
            .ok()?;
        Some(on_frames(frames))
    }
}
