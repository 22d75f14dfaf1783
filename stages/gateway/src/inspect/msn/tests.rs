use linkweir_proto::application::Application;
use proptest::prelude::*;

use super::*;
use crate::inspect::recorder::{Event, File, Recorder};

const ANNA: &str = "anna@example.test";
const BOB: &str = "bob@example.test";

/// A command with its end.
fn line(sender: Side, line: &str) -> (Side, Vec<u8>) {
    (sender, format!("{line}\r\n").into_bytes())
}

/// A message with its length: to the server, or from Bob.
fn message(sender: Side, payload: &str) -> (Side, Vec<u8>) {
    let length = payload.len();
    let head = match sender {
        Side::Client => format!("MSG 7 N {length}\r\n"),
        Side::Server => format!("MSG {BOB} Bob%20B {length}\r\n"),
    };
    (sender, [head.as_bytes(), payload.as_bytes()].concat())
}

fn chat(text: &str) -> String {
    format!(
        "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=UTF-8\r\n\
         X-MMS-IM-Format: FN=Arial; EF=; CO=0; CS=0; PF=22\r\n\r\n{text}"
    )
}

fn invite(fields: &str) -> String {
    format!(
        "MIME-Version: 1.0\r\nContent-Type: text/x-msmsgsinvite; charset=UTF-8\r\n\r\n{fields}\r\n"
    )
}

/// Anna's connection to a switchboard: she calls Bob, they chat, Bob offers a file, she accepts, and
/// he says where to fetch it.
fn conversation() -> Vec<(Side, Vec<u8>)> {
    use Side::{Client, Server};
    vec![
        line(Client, &format!("USR 1 {ANNA} 17262740.1050826919.32308")),
        line(Server, &format!("USR 1 OK {ANNA} Anna")),
        line(Client, &format!("CAL 2 {BOB}")),
        line(Server, "CAL 2 RINGING 17342299"),
        line(Server, &format!("JOI {BOB} Bob%20B")),
        message(
            Client,
            &format!(
                "MIME-Version: 1.0\r\nContent-Type: text/x-msmsgscontrol\r\nTypingUser: {ANNA}\r\n\r\n\r\n"
            ),
        ),
        message(Client, &chat("Hallo Bob, schöne Grüße")),
        line(Server, "ACK 7"),
        message(
            Server,
            &chat("Hi.\r\n\r\nTwo lines, and MSG 5 N 3 in the text"),
        ),
        message(
            Server,
            &invite(
                "Application-Name: File Transfer\r\n\
                 Application-GUID: {5D3E02AB-6190-11d3-BBBB-00C04F795683}\r\n\
                 Invitation-Command: INVITE\r\nInvitation-Cookie: 33267\r\n\
                 Application-File: holiday photo.jpg\r\nApplication-FileSize: 14\r\nConnectivity: N\r\n",
            ),
        ),
        message(
            Client,
            &invite(
                "Invitation-Command: ACCEPT\r\nInvitation-Cookie: 33267\r\n\
                 Launch-Application: FALSE\r\nRequest-Data: IP-Address:\r\n",
            ),
        ),
        message(
            Server,
            &invite(
                "Invitation-Command: ACCEPT\r\nInvitation-Cookie: 33267\r\nIP-Address: 192.0.2.7\r\n\
                 Port: 6891\r\nAuthCookie: 93301\r\nLaunch-Application: FALSE\r\n\
                 Request-Data: IP-Address:\r\n",
            ),
        ),
        line(Server, &format!("BYE {BOB}")),
        line(Client, "OUT"),
    ]
}

fn said(sender: Side, from: &str, to: &str, text: &str) -> Event {
    Event::Message {
        sender,
        from: from.to_owned(),
        to: to.to_owned(),
        text: text.to_owned(),
    }
}

fn photo() -> File {
    File {
        name: "holiday photo.jpg".to_owned(),
        size: Some(14),
        identifier: "33267".to_owned(),
        from: BOB.to_owned(),
        to: ANNA.to_owned(),
    }
}

#[test]
fn a_conversation_is_understood() {
    let found = Recorder::of(Application::Msn, &conversation());
    assert_eq!(
        found.events,
        [
            said(Side::Client, ANNA, BOB, "Hallo Bob, schöne Grüße"),
            said(
                Side::Server,
                BOB,
                ANNA,
                "Hi.\r\n\r\nTwo lines, and MSG 5 N 3 in the text"
            ),
            Event::Named(Side::Server, photo()),
            Event::Invited(Side::Server, "93301".to_owned(), photo()),
        ]
    );
    for (place, side) in [Side::Client, Side::Server].into_iter().enumerate() {
        assert_eq!(found.texts[place], Recorder::sent(&conversation(), side));
    }
}

/// The file that was offered comes over a connection of its own.
#[test]
fn the_transfer_knows_the_name_from_the_invitation() {
    use Side::{Client, Server};
    let found = Recorder::of(Application::Msn, &conversation());
    let transfer = [
        line(Client, "VER MSNFTP"),
        line(Server, "VER MSNFTP"),
        line(Client, &format!("USR {ANNA} 93301")),
        line(Server, "FIL 14"),
        line(Client, "TFR"),
        (Server, b"\0\x0e\0holiday photo!\x01\0\0".to_vec()),
        line(Client, "BYE 16777989"),
    ];
    let events = found.events.len();
    let found = found.watch(Application::MsnFtp, &transfer, &[]);
    let file = File {
        identifier: "93301".to_owned(),
        ..photo()
    };
    assert_eq!(
        found.events[events..],
        [Event::Begin(Server, file), Event::End(Server, true)]
    );
    assert_eq!(found.data[1], b"holiday photo!");
}

#[test]
fn a_message_in_base64_is_decoded() {
    let payload = "Content-Type: text/plain; charset=UTF-8\r\n\
                   Content-Transfer-Encoding: base64\r\n\r\nc2VjcmV0IHBsYW4=";
    let found = Recorder::of(Application::Msn, &[message(Side::Client, payload)]);
    assert_eq!(found.events, [said(Side::Client, "", "", "secret plan")]);
    assert!(found.texts[0].ends_with(b"c2VjcmV0IHBsYW4=secret plan"));
}

#[test]
fn a_keyword_over_two_parts_of_a_message_is_text() {
    let first =
        "Content-Type: text/plain; charset=UTF-8\r\nMessage-ID: {A-1}\r\nChunks: 2\r\n\r\nthe sec";
    let second = "Message-ID: {A-1}\r\nChunk: 1\r\n\r\nret plan";
    let connection = [message(Side::Server, first), message(Side::Server, second)];
    let found = Recorder::of(Application::Msn, &connection);
    assert_eq!(
        found.events,
        [
            said(Side::Server, BOB, "", "the sec"),
            said(Side::Server, BOB, "", "ret plan"),
        ]
    );
    assert!(found.texts[1].ends_with(b"the secret plan"));
}

#[test]
fn a_connection_met_in_its_middle_learns_who_speaks() {
    let typing = format!("Content-Type: text/x-msmsgscontrol\r\nTypingUser: {ANNA}\r\n\r\n\r\n");
    let connection = [
        message(Side::Client, &typing),
        message(Side::Server, &chat("one")),
        message(Side::Client, &chat("two")),
    ];
    assert_eq!(
        Recorder::of(Application::Msn, &connection).events,
        [
            said(Side::Server, BOB, ANNA, "one"),
            said(Side::Client, ANNA, BOB, "two"),
        ]
    );
}

#[test]
fn payloads_that_are_no_messages_are_passed_over_by_their_length() {
    let connection = [
        (
            Side::Server,
            b"UBX bob@example.test 20\r\nMSG 1 N 5\r\n<Data/>\r\n".to_vec(),
        ),
        (Side::Client, b"UUX 8 9\r\n<PSM/>\r\n\n".to_vec()),
        (Side::Server, b"UUX 8 0\r\nQNG 45\r\n".to_vec()),
        message(Side::Server, &chat("still in step")),
    ];
    assert_eq!(
        Recorder::of(Application::Msn, &connection).events,
        [said(Side::Server, BOB, "", "still in step")]
    );
}

#[test]
fn of_a_message_beyond_the_bound_the_beginning_counts() {
    let text = "x".repeat(MAX_KEPT + 1000);
    let connection = [
        message(Side::Client, &chat(&text)),
        message(Side::Client, &chat("next")),
    ];
    let found = Recorder::of(Application::Msn, &connection);
    let [Event::Message { text, .. }, next] = &found.events[..] else {
        panic!("{} events", found.events.len());
    };
    assert!(text.len() < MAX_KEPT && text.len() > MAX_KEPT - 300);
    assert_eq!(next, &said(Side::Client, "", "", "next"));
    assert_eq!(found.texts[0], Recorder::sent(&connection, Side::Client));
}

#[test]
fn a_withdrawn_invitation_is_forgotten() {
    let offer = "Invitation-Command: INVITE\r\nInvitation-Cookie: 5\r\nApplication-File: a.exe\r\n";
    let cancel = "Invitation-Command: CANCEL\r\nInvitation-Cookie: 5\r\nCancel-Code: REJECT\r\n";
    let accept = "Invitation-Command: ACCEPT\r\nInvitation-Cookie: 5\r\nAuthCookie: 9\r\n";
    let connection = [
        message(Side::Client, &invite(offer)),
        message(Side::Server, &invite(cancel)),
        message(Side::Client, &invite(accept)),
    ];
    let events = Recorder::of(Application::Msn, &connection).events;
    assert!(matches!(&events[..], [Event::Named(Side::Client, file)] if file.name == "a.exe"));
}

#[test]
fn what_is_not_msnp_is_malformed_once_and_text() {
    let connection = [
        (Side::Client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        (Side::Server, b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
    ];
    let found = Recorder::of(Application::Msn, &connection);
    assert_eq!(
        found.events,
        [Event::Malformed(Side::Client, "not a command of MSNP")]
    );
    let long = [(Side::Client, vec![b'A'; 20_000])];
    let found = Recorder::of(Application::Msn, &long);
    assert_eq!(
        found.events,
        [Event::Malformed(Side::Client, "a line of MSNP is too long")]
    );
    assert_eq!(found.texts[0].len(), 20_000);
}

proptest! {
    #[test]
    fn how_it_is_cut_changes_nothing(pieces in proptest::collection::vec(1_usize..60, 1..20)) {
        let whole = Recorder::of(Application::Msn, &conversation());
        let cut = Recorder::default().watch(Application::Msn, &conversation(), &pieces);
        prop_assert_eq!(cut, whole);
    }

    #[test]
    fn damage_is_text_all_the_same(at in 0_usize..2000, value: u8, from_server: bool) {
        let mut connection = conversation();
        let side = if from_server { Side::Server } else { Side::Client };
        let bytes = connection.iter_mut().filter(|(sender, _)| *sender == side);
        if let Some(byte) = bytes.flat_map(|(_, bytes)| bytes).nth(at) {
            *byte = value;
        }
        let found = Recorder::of(Application::Msn, &connection);
        for (place, side) in [Side::Client, Side::Server].into_iter().enumerate() {
            prop_assert_eq!(&found.texts[place], &Recorder::sent(&connection, side));
        }
        let malformed = found.events.iter().filter(|e| matches!(e, Event::Malformed(..)));
        prop_assert!(malformed.count() <= 1);
    }

    #[test]
    fn any_bytes_are_text(
        parts in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..20),
        lines: bool,
    ) {
        let connection: Vec<(Side, Vec<u8>)> = parts
            .into_iter()
            .map(|(is_client, mut bytes)| {
                if lines {
                    bytes.splice(0..0, *b"MSG 1 N 40\r\n");
                }
                (if is_client { Side::Client } else { Side::Server }, bytes)
            })
            .collect();
        let found = Recorder::of(Application::Msn, &connection);
        prop_assert_eq!(&found.texts[0], &Recorder::sent(&connection, Side::Client));
        prop_assert_eq!(&found.texts[1], &Recorder::sent(&connection, Side::Server));
    }
}
