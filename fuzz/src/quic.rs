//! Takes arbitrary bytes as datagrams of a client (each with its length in two bytes in front), as
//! Google's hello and as transport parameters: whatever they are, slices stay inside, and a client
//! is decrypted four times at most.

use linkweir_proto::quic::{
    ClientInitials, Kind, LongHeader, Progress, parse_google_hello, public_version, user_agent,
};

pub(crate) fn target(input: &[u8]) {
    let _ = (
        public_version(input),
        parse_google_hello(input),
        user_agent(input),
    );
    let mut client = ClientInitials::new();
    let mut rest = input;
    let mut initials = 0;
    while let Some(([high, low], behind)) = rest.split_first_chunk() {
        let len = usize::from(*high) << 8 | usize::from(*low);
        let (mut datagram, next) = behind.split_at_checked(len).unwrap_or((behind, &[]));
        rest = next;
        while let Some(header) = LongHeader::parse(datagram) {
            assert!(header.number_at <= datagram.len());
            if header.kind == Kind::Initial {
                initials += 1;
                let progress = client.on_packet(datagram, &header);
                assert!(initials < 4 || progress != Progress::More);
                assert!(client.hello().len() <= 8192);
            }
            if header.len == 0 {
                break;
            }
            datagram = datagram.get(header.len..).unwrap_or_default();
        }
    }
}
