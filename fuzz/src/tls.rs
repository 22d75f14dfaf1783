//! Parses arbitrary bytes as hellos, certificates and records: what is whole is the same however
//! much follows, and what is cut is never whole.

use linkweir_proto::tls::{
    Parsed, RecordHeader, Ssl2Hello, certificate_name, parse_client_hello, parse_server_hello,
};

pub(crate) fn target(input: &[u8]) {
    if let Some(header) = input.first_chunk() {
        let _ = (RecordHeader::parse(*header), Ssl2Hello::parse(*header));
    }
    let len = |message: &[u8]| {
        4 + usize::from(message[1]) * 65536
            + usize::from(message[2]) * 256
            + usize::from(message[3])
    };
    if let Parsed::Complete(hello) = parse_client_hello(input) {
        let len = len(input);
        assert!(hello.alpn.count() <= len && hello.session_id.len() <= 32);
        assert_eq!(parse_client_hello(&input[..len]), Parsed::Complete(hello));
        assert!(!matches!(
            parse_client_hello(&input[..len - 1]),
            Parsed::Complete(_)
        ));
    }
    if let Parsed::Complete(hello) = parse_server_hello(input) {
        let len = len(input);
        assert_eq!(parse_server_hello(&input[..len]), Parsed::Complete(hello));
        assert!(!matches!(
            parse_server_hello(&input[..len - 1]),
            Parsed::Complete(_)
        ));
    }
    if let Parsed::Complete(name) = certificate_name(input) {
        // More bytes change nothing.
        let longer = [input, &[0; 8]].concat();
        assert!(matches!(certificate_name(&longer), Parsed::Complete(same) if same == name));
    }
}
