//! `ExportTraceServiceRequest` in protobuf's binary form, encoded without a library. The field numbers are those of
//! `opentelemetry/proto/trace/v1/trace.proto`.

use crate::span::{AttributeValue, Span};

/// The wire types that occur.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
/// `STATUS_CODE_ERROR`
const ERROR: u64 = 2;

/// Returns the message that carries these spans, from this service.
pub fn request(service: &str, spans: &[Span]) -> Vec<u8> {
    let mut resource = ProtobufMessage::default();
    resource.message(
        1,
        &attribute("service.name", &AttributeValue::Text(service.to_owned())),
    );
    let version = AttributeValue::Text(env!("CARGO_PKG_VERSION").to_owned());
    resource.message(1, &attribute("service.version", &version));
    let mut scope = ProtobufMessage::default();
    scope.bytes(1, b"tollgate");
    let mut scope_spans = ProtobufMessage::default();
    scope_spans.message(1, &scope);
    for span in spans {
        scope_spans.message(2, &encoded(span));
    }
    let mut resource_spans = ProtobufMessage::default();
    resource_spans.message(1, &resource);
    resource_spans.message(2, &scope_spans);
    let mut request = ProtobufMessage::default();
    request.message(1, &resource_spans);
    request.0
}

fn encoded(span: &Span) -> ProtobufMessage {
    let mut message = ProtobufMessage::default();
    message.bytes(1, &span.trace.to_be_bytes());
    message.bytes(2, &span.id.to_be_bytes());
    if span.parent != 0 {
        message.bytes(4, &span.parent.to_be_bytes());
    }
    message.bytes(5, span.name.as_bytes());
    message.number(6, span.kind as u64);
    message.fixed(7, span.start);
    message.fixed(8, span.end);
    for (name, value) in &span.attributes {
        message.message(9, &attribute(name, value));
    }
    if span.failed {
        let mut status = ProtobufMessage::default();
        status.number(3, ERROR);
        message.message(15, &status);
    }
    message
}

fn attribute(name: &str, value: &AttributeValue) -> ProtobufMessage {
    let mut inner = ProtobufMessage::default();
    match value {
        AttributeValue::Text(text) => inner.bytes(1, text.as_bytes()),
        AttributeValue::Number(number) => inner.number(3, number.cast_unsigned()),
    }
    let mut attribute = ProtobufMessage::default();
    attribute.bytes(1, name.as_bytes());
    attribute.message(2, &inner);
    attribute
}

/// A message under construction.
#[derive(Debug, Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    fn varint(&mut self, mut value: u64) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            if value == 0 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::SpanKind;

    #[test]
    fn the_bytes_are_those_of_protobuf() {
        let mut message = ProtobufMessage::default();
        message.number(1, 150);
        message.bytes(2, b"testing");
        message.number(3, u64::MAX);
        // The examples of protobuf's own description of its encoding.
        assert_eq!(message.0[..3], [0x08, 0x96, 0x01]);
        assert_eq!(message.0[3..12], *b"\x12\x07testing");
        assert_eq!(
            message.0[12..],
            [0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
    }

    #[test]
    fn a_span_without_a_parent_names_none() {
        let span = Span {
            trace: 7,
            id: 9,
            parent: 0,
            name: "decide",
            kind: SpanKind::Internal,
            start: 1,
            end: 2,
            attributes: vec![("n", AttributeValue::Number(-1))],
            failed: true,
        };
        let bytes = encoded(&span).0;
        assert_eq!(bytes[..2], [0x0a, 16]);
        assert_eq!(bytes[17], 7);
        assert_eq!(bytes[18..20], [0x12, 8]);
        assert_eq!(bytes[28..37], *b"\x2a\x06decide\x30");
        assert_eq!(
            bytes[bytes.len() - 4..],
            [0x7a, 2, 0x18, 2],
            "the status is an error"
        );
    }
}
