//! A parser of protobuf's binary form that needs no schema: enough to check what a collector receives, by the field
//! numbers of `opentelemetry/proto/trace/v1/trace.proto`.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(BTreeMap<u64, Vec<Field>>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint that does not end");
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

impl Message {
    pub fn parse(mut bytes: &[u8]) -> Self {
        let mut message = Self::default();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    Field::Bytes(take(&mut bytes, length).to_owned())
                }
                other => panic!("wire type {other}"),
            };
            message.0.entry(tag >> 3).or_default().push(field);
        }
        message
    }

    pub fn messages(&self, number: u64) -> Vec<Self> {
        let fields = self.0.get(&number).into_iter().flatten();
        fields
            .map(|field| match field {
                Field::Bytes(bytes) => Self::parse(bytes),
                Field::Number(_) => panic!("field {number} is a number"),
            })
            .collect()
    }

    pub fn bytes(&self, number: u64) -> Option<&[u8]> {
        match self.0.get(&number)?.first()? {
            Field::Bytes(bytes) => Some(bytes),
            Field::Number(_) => None,
        }
    }

    pub fn text(&self, number: u64) -> String {
        String::from_utf8(self.bytes(number).unwrap_or_default().to_owned()).unwrap()
    }

    pub fn number(&self, number: u64) -> u64 {
        match self.0.get(&number).and_then(|fields| fields.first()) {
            Some(Field::Number(value)) => *value,
            _ => 0,
        }
    }
}

#[test]
fn the_examples_of_protobuf_are_read() {
    let message = Message::parse(b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
    assert_eq!((message.number(1), message.text(2)), (150, "testing".to_owned()));
    assert_eq!(message.messages(3)[0].number(1), 150);
}
