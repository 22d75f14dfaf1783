//! Connections that the target for the peers' inspectors starts from.

/// Bytes of a part are counted in steps of so many.
const STEP: usize = 16;

/// The inputs: which inspector it is, then parts, each with a byte in front for the side (the lowest
/// bit) and the length, and spaces behind it up to a whole step.
pub(super) fn all() -> Vec<Vec<u8>> {
    let conversations = CONVERSATIONS.iter().map(|(kind, parts)| {
        let mut bytes = vec![*kind];
        for (side, part) in parts {
            let steps = part.len().div_ceil(STEP);
            bytes.push(u8::try_from(steps << 1).unwrap_or(0xFE) | side);
            let end = bytes.len() + steps * STEP;
            bytes.extend_from_slice(part);
            bytes.resize(end, b' ');
        }
        bytes
    });
    conversations.collect()
}

/// What the client (0) and the server (1) send.
type Parts = [(u8, &'static [u8]); 2];

/// MSN, MSNFTP, eDonkey, BitTorrent: their numbers, and 16 bytes as length of the pieces.
const CONVERSATIONS: [(u8, Parts); 4] = [
    (
        0x3C,
        [
            (
                0,
                b"USR 1 a@example.test 1\r\nCAL 2 b@example.test\r\nMSG 3 N 221\r\n\
                Content-Type: text/x-msmsgsinvite; charset=UTF-8\r\n\r\n\
                Application-GUID: {5D3E02AB-6190-11d3-BBBB-00C04F795683}\r\n\
                Invitation-Command: INVITE\r\nInvitation-Cookie: 33267\r\n\
                Application-File: photo.jpg\r\nApplication-FileSize: 14\r\n\r\n",
            ),
            (
                1,
                b"JOI b@example.test B\r\nMSG b@example.test B 122\r\n\
                Content-Type: text/plain; charset=UTF-8\r\nMessage-ID: {1}\r\nChunks: 2\r\n\
                Content-Transfer-Encoding: base64\r\n\r\nc2VjcmV0IHBsYW4=",
            ),
        ],
    ),
    (
        0x3D,
        [
            (0, b"VER MSNFTP\r\nUSR a@example.test 93301\r\nTFR\r\n"),
            (1, b"VER MSNFTP\r\nFIL 11\r\n\0\x0B\0hello world\x01\0\0"),
        ],
    ),
    (
        0x3E,
        [
            (
                0,
                b"\xE3\x28\0\0\0\x01\x10AAAAAAAAAAAAAAAA\x7F\0\0\x01\x36\x12\
                \x01\0\0\0\x02\x01\0\x01\x06\0Joe Q.",
            ),
            (
                1,
                b"\xE3\x1B\0\0\0\x59BBBBBBBBBBBBBBBB\x08\0test.avi\xE3\x05\0\0\0\x4E\x02\0hi",
            ),
        ],
    ),
    (
        0x3F,
        [
            (
                0,
                b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05HHHHHHHHHHHHHHHHHHHH-TR3000-abcdefghijkl\
                \0\0\0\x1A\x14\0d1:md11:ut_metadatai3eee",
            ),
            (
                1,
                b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05HHHHHHHHHHHHHHHHHHHH-AA1360-abcdefghijkl\
                \0\0\0\x38\x14\x03d8:msg_typei1e5:piecei0eed6:lengthi9e4:name8:some.isoe",
            ),
        ],
    ),
];
