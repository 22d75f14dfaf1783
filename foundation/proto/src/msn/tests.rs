use proptest::prelude::*;

use super::*;

fn payload_of(line: &[u8]) -> Payload {
    Command::parse(line).unwrap().payload()
}

#[test]
fn commands_have_three_letters() {
    let command = Command::parse(b"IRO 89 1 2 a@example.test nick%20name").unwrap();
    assert_eq!(command.verb(), b"IRO");
    assert_eq!(command.argument(3), Some(&b"a@example.test"[..]));
    assert_eq!(command.argument(5), None);
    assert!(Command::parse(b"217 5").is_some() && Command::parse(b"OUT").is_some());
    for line in [
        &b""[..],
        b"MS",
        b"msg 1",
        b"MSGS 1",
        b"GET / HTTP/1.1",
        b"\0\0\0",
    ] {
        let parsed = Command::parse(line);
        assert!(
            parsed.is_none() || line.starts_with(b"GET "),
            "{}",
            line.escape_ascii()
        );
    }
}

#[test]
fn payloads_are_counted_in_the_forms_that_have_them() {
    assert_eq!(payload_of(b"MSG 77 U 89"), Payload::Length(89));
    assert_eq!(
        payload_of(b"MSG a@example.test nick 141"),
        Payload::Length(141)
    );
    assert_eq!(payload_of(b"MSG 77 U x"), Payload::Unknown);
    assert_eq!(payload_of(b"MSG 77 U -1"), Payload::Unknown);
    assert_eq!(payload_of(b"UBX a@example.test 53"), Payload::Length(53));
    assert_eq!(payload_of(b"UUX 8 53"), Payload::Length(53));
    assert_eq!(payload_of(b"UUX 8 0"), Payload::Length(0));
    assert_eq!(payload_of(b"NOT 1024"), Payload::Length(1024));
    assert_eq!(payload_of(b"GCF 0 4096"), Payload::Length(4096));
    assert_eq!(payload_of(b"GCF 5 Shields.xml"), Payload::None);
    assert_eq!(
        payload_of(b"QRY 9 PROD0038W!61ZTF9 32"),
        Payload::Length(32)
    );
    assert_eq!(payload_of(b"QRY 9"), Payload::None);
    assert_eq!(
        payload_of(b"UUN 5 a@example.test 3 120"),
        Payload::Length(120)
    );
    assert_eq!(payload_of(b"UUN 5 OK"), Payload::None);
    assert_eq!(payload_of(b"ADL 7 OK"), Payload::None);
    assert_eq!(payload_of(b"USR 3 TWN I a@example.test"), Payload::None);
}

#[test]
fn a_message_is_fields_and_a_body() {
    let message = MimeMessage::parse(
        b"MIME-Version: 1.0\r\ncontent-type:  text/plain; charset=UTF-8\r\n\r\nHi\r\n\r\nthere",
    );
    assert_eq!(message.media_type(), b"text/plain");
    assert_eq!(message.body, b"Hi\r\n\r\nthere");
    assert_eq!(message.field(b"mime-version"), Some(&b"1.0"[..]));
    assert_eq!(message.field(b"Chunk"), None);
    assert!(!message.is_base64());
    let coded = MimeMessage::parse(b"Content-Transfer-Encoding: BASE64\n\nSGk=");
    assert!(coded.is_base64());
    assert_eq!(coded.body, b"SGk=");
    let headless = MimeMessage::parse(b"\r\nbody");
    assert_eq!(
        (headless.media_type(), headless.body),
        (&b""[..], &b"body"[..])
    );
    assert_eq!(MimeMessage::parse(b"A: b\r\n").body, b"");
}

fn invitation(body: &str) -> Option<Invitation<'_>> {
    Invitation::parse(body.as_bytes())
}

#[test]
fn invitations() {
    let offer = invitation(
        "Application-Name: File Transfer\r\n\
         Application-GUID: {5D3E02AB-6190-11d3-BBBB-00C04F795683}\r\n\
         Invitation-Command: INVITE\r\nInvitation-Cookie: 33267\r\n\
         Application-File: Autoexec.bat\r\nApplication-FileSize: 187\r\n\r\n",
    )
    .unwrap();
    assert_eq!(offer.command, InvitationCommand::Invite);
    assert!(offer.is_file);
    assert_eq!(
        (offer.cookie, offer.file_name),
        (&b"33267"[..], &b"Autoexec.bat"[..])
    );
    assert_eq!((offer.file_size, offer.auth_cookie), (Some(187), &b""[..]));
    let accept = invitation(
        "Invitation-Command: Accept\r\nInvitation-Cookie: 33267\r\nIP-Address: 192.0.2.1\r\n\
         Port: 6891\r\nAuthCookie: 93301\r\nLaunch-Application: FALSE\r\n\r\n",
    )
    .unwrap();
    assert_eq!(accept.command, InvitationCommand::Accept);
    assert_eq!(accept.auth_cookie, b"93301");
    assert!(!accept.is_file);
    assert_eq!(invitation("Invitation-Command: INVITE\r\n"), None);
    assert_eq!(invitation("Invitation-Cookie: 1\r\n"), None);
}

#[test]
fn base64_is_that_of_mime() {
    // RFC 4648 section 10.
    let cases: [(&[u8], &[u8]); 7] = [
        (b"", b""),
        (b"Zg==", b"f"),
        (b"Zm8=", b"fo"),
        (b"Zm9v", b"foo"),
        (b"Zm9vYg==", b"foob"),
        (b"Zm9v\r\nYmE=", b"fooba"),
        (b"Zm9vYmFy\r\n", b"foobar"),
    ];
    for (text, bytes) in cases {
        assert_eq!(Base64::new(text).collect::<Vec<_>>(), bytes);
    }
    assert_eq!(
        Base64::new(b"Zm9v!YmFy").collect::<Vec<_>>(),
        b"foo",
        "ends at what is no letter"
    );
    assert_eq!(Base64::new(b"+/+/").collect::<Vec<_>>(), [0xFB, 0xFF, 0xBF]);
}

/// Codes as the clients did, for the tests.
fn coded(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let value = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap();
            text.push(if place <= group.len() {
                char::from(LETTERS[value])
            } else {
                '='
            });
        }
    }
    text
}

/// The first message of MSNSLP that offers a file, with so many letters of its context.
fn slp(name: &str, size: u64, letters: usize) -> Vec<u8> {
    let mut context = vec![0x3E, 2, 0, 0, 2, 0, 0, 0];
    context.extend(size.to_le_bytes());
    context.extend([1, 0, 0, 0]);
    context.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
    context.resize(0x23E, 0);
    let context = coded(&context);
    let text = format!(
        "INVITE MSNMSGR:b@example.test MSNSLP/1.0\r\nTo: <msnmsgr:b@example.test>\r\n\
         From: <msnmsgr:a@example.test>\r\nCSeq: 0\r\n\r\n\
         EUF-GUID: {{5D3E02AB-6190-11D3-BBBB-00C04F795683}}\r\nSessionID: 7\r\nAppID: 2\r\nContext: {}",
        context.get(..letters).expect("a shorter prefix")
    );
    let mut body = vec![0; 8];
    body.extend([0; 8]);
    body.extend(900_u64.to_le_bytes());
    body.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    body.extend([0; 20]);
    body.extend(text.as_bytes());
    body.extend([0; 4]);
    body
}

#[test]
fn an_slp_invitation_names_its_file() {
    let body = slp("Größe 1.exe", 5_000_000_000, 700);
    let file = SlpFile::parse(&body).unwrap();
    assert_eq!(file.name().collect::<String>(), "Größe 1.exe");
    assert_eq!(file.size(), Some(5_000_000_000));
    // Cut within the name: nothing is better than a part.
    let body = slp("abcdefgh.exe", 1, 56);
    assert_eq!(SlpFile::parse(&body).unwrap().name().count(), 0);
    let mut other = slp("a", 1, 700);
    other[8] = 1;
    assert_eq!(SlpFile::parse(&other), None, "not the first part");
    assert_eq!(SlpFile::parse(&other[..47]), None);
}

proptest! {
    #[test]
    fn base64_decodes_what_was_coded(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(Base64::new(coded(&bytes).as_bytes()).collect::<Vec<_>>(), bytes);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some(command) = Command::parse(&bytes) {
            std::hint::black_box(command.payload());
        }
        let message = MimeMessage::parse(&bytes);
        prop_assert!(message.body.len() <= bytes.len());
        std::hint::black_box((message.media_type(), Invitation::parse(&bytes)));
        if let Some(file) = SlpFile::parse(&bytes) {
            prop_assert!(file.name().count() <= NAME_LIMIT);
        }
    }
}

const NAME_LIMIT: usize = 260;
