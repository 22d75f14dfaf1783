//! Parses arbitrary bytes as heads: whatever they are, slices stay inside, and a head that is whole
//! is the same head however it is cut.

use linkweir_proto::http1::{
    MAX_HEAD, Outcome, chunked_length, classify, parse_request, parse_response,
};

pub(crate) fn target(input: &[u8]) {
    let _ = classify(input);
    if let Outcome::Complete(head, len) = parse_request(input) {
        assert!(len <= input.len().min(MAX_HEAD));
        assert!(!head.method.is_empty() && !head.target.is_empty());
        assert_eq!(parse_request(&input[..len]), Outcome::Complete(head, len));
        if len > 1 {
            assert!(!matches!(
                parse_request(&input[..len - 1]),
                Outcome::Complete(..)
            ));
        }
    }
    if let Outcome::Complete(head, len) = parse_response(input) {
        assert!(len <= input.len().min(MAX_HEAD));
        assert!((100..=999).contains(&head.status_code));
        assert_eq!(parse_response(&input[..len]), Outcome::Complete(head, len));
    }
    if let Some(len) = chunked_length(input) {
        assert!(len <= input.len());
        assert_eq!(chunked_length(&input[..len]), Some(len));
    }
}
