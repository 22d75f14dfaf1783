//! Cipher suites (IANA registry "TLS Cipher Suites").

/// The hash that keys are derived with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
}

/// The hash of a MAC in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mac {
    /// HMAC-SHA-1, 20 bytes.
    Sha1,
    /// HMAC-SHA-256, 32 bytes.
    Sha256,
    /// HMAC-SHA-384, 48 bytes.
    Sha384,
}

/// What records are encrypted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128 in GCM.
    Aes128Gcm,
    /// AES-256 in GCM.
    Aes256Gcm,
    /// `ChaCha20` with Poly1305.
    ChaCha20Poly1305,
    /// AES-128 in CBC.
    Aes128Cbc(Mac),
    /// AES-256 in CBC.
    Aes256Cbc(Mac),
}

/// What a suite says about records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suite {
    /// Of the records.
    pub cipher: Cipher,
    /// Of the derivation of keys.
    pub hash: Hash,
}

impl Suite {
    /// The suite of TLS 1.2 or 1.3 with this number; `None` where its records cannot be opened here.
    #[must_use]
    pub const fn of(number: u16) -> Option<Self> {
        use Cipher::{Aes128Cbc, Aes128Gcm, Aes256Cbc, Aes256Gcm, ChaCha20Poly1305};
        use Hash::{Sha256, Sha384};
        // Key exchange and signature do not matter here; in a row they are RSA, DH, DHE, PSK, ECDH, ECDHE.
        let (cipher, hash) = match number {
            0x1301 => (Aes128Gcm, Sha256),
            0x1302 => (Aes256Gcm, Sha384),
            0x1303 => (ChaCha20Poly1305, Sha256),
            0x009c | 0x009e | 0x00a0 | 0x00a2 | 0x00a4 | 0x00a8 | 0x00aa | 0x00ac | 0xc02b
            | 0xc02d | 0xc02f | 0xc031 | 0xd001 => (Aes128Gcm, Sha256),
            0x009d | 0x009f | 0x00a1 | 0x00a3 | 0x00a5 | 0x00a9 | 0x00ab | 0x00ad | 0xc02c
            | 0xc02e | 0xc030 | 0xc032 | 0xd002 => (Aes256Gcm, Sha384),
            0xcca8..=0xccae => (ChaCha20Poly1305, Sha256),
            0x002f..=0x0033
            | 0x008c
            | 0x0090
            | 0x0094
            | 0xc004
            | 0xc009
            | 0xc00e
            | 0xc013
            | 0xc035 => (Aes128Cbc(Mac::Sha1), Sha256),
            0x0035..=0x0039
            | 0x008d
            | 0x0091
            | 0x0095
            | 0xc005
            | 0xc00a
            | 0xc00f
            | 0xc014
            | 0xc036 => (Aes256Cbc(Mac::Sha1), Sha256),
            0x003c
            | 0x003e..=0x0040
            | 0x0067
            | 0x00ae
            | 0x00b2
            | 0x00b6
            | 0xc023
            | 0xc025
            | 0xc027
            | 0xc029
            | 0xc037 => (Aes128Cbc(Mac::Sha256), Sha256),
            0x003d | 0x0068..=0x006b => (Aes256Cbc(Mac::Sha256), Sha256),
            0x00af | 0x00b3 | 0x00b7 | 0xc024 | 0xc026 | 0xc028 | 0xc02a | 0xc038 => {
                (Aes256Cbc(Mac::Sha384), Sha384)
            }
            _ => return None,
        };
        Some(Self { cipher, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_that_are_in_use() {
        for (number, cipher, hash) in [
            (0x1301, Cipher::Aes128Gcm, Hash::Sha256),
            (0x1302, Cipher::Aes256Gcm, Hash::Sha384),
            (0x1303, Cipher::ChaCha20Poly1305, Hash::Sha256),
            // ECDHE_RSA_WITH_AES_256_GCM_SHA384, DHE_RSA_WITH_AES_128_CBC_SHA, ECDHE_ECDSA_WITH_AES_256_CBC_SHA384
            (0xc030, Cipher::Aes256Gcm, Hash::Sha384),
            (0x0033, Cipher::Aes128Cbc(Mac::Sha1), Hash::Sha256),
            (0xc024, Cipher::Aes256Cbc(Mac::Sha384), Hash::Sha384),
        ] {
            assert_eq!(
                Suite::of(number),
                Some(Suite { cipher, hash }),
                "{number:#06x}"
            );
        }
        // RC4, NULL, CCM and GREASE.
        for number in [0x0005, 0x0002, 0xc09c, 0x1304, 0x0a0a, 0x0034, 0x003a] {
            assert_eq!(Suite::of(number), None, "{number:#06x}");
        }
    }
}
