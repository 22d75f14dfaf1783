//! Reads arbitrary bytes as messages of DNS, and as a stream of them: no name is longer than names
//! are, and there are no more records than the header says.

use linkweir_proto::dns::{Data, MAX_NAME, Message, Name, take_framed};

fn read(bytes: &[u8]) {
    let Some(message) = Message::parse(bytes) else {
        return;
    };
    let mut name = Name::default();
    let question = message.question(&mut name);
    assert!(name.as_bytes().len() <= MAX_NAME);
    assert!(question.is_some() || !message.is_certain());
    let [_, announced, ..] = message.counts();
    let mut records = 0;
    for answer in message.answers() {
        records += 1;
        let mut is_whole = message.read_name(answer.owner, &mut name);
        if let Data::Cname(target) = answer.data {
            is_whole |= message.read_name(target, &mut name);
        }
        assert!(is_whole || name.as_bytes().is_empty());
        assert!(name.as_bytes().len() <= MAX_NAME);
    }
    assert!(records <= usize::from(announced));
}

pub(crate) fn target(input: &[u8]) {
    read(input);
    let mut rest = input;
    while let Some((message, behind)) = take_framed(rest) {
        read(message);
        rest = behind;
    }
}
