//! Tests of valid bodies, with sizes counted by hand.

use super::super::{COMPLETION_TOKENS_DEFAULT, RequestBody};
use super::{parse, with};
use domain::price::CallShape;
use std::borrow::Cow;

#[track_caller]
fn read(body: &str) -> RequestBody<'_> {
    parse(body.as_bytes()).expect(body)
}

/// Returns bytes, images, audios and files of a message with these members.
#[track_caller]
fn message(members: &str) -> [u64; 4] {
    let body = format!(r#"{{"model":"m","messages":[{{{members}}}]}}"#);
    let read = read(&body);
    [
        read.shape.prompt_bytes,
        read.shape.image_parts,
        read.shape.audio_parts,
        read.shape.file_parts,
    ]
}

#[test]
fn the_plain_call() {
    let body = with("");
    let expected = RequestBody {
        model: "m".into(),
        service_tier: None,
        stream: false,
        shape: CallShape {
            prompt_bytes: 2,
            framed: 1,
            completion_tokens: COMPLETION_TOKENS_DEFAULT,
            unlimited: true,
            ..CallShape::EMPTY
        },
        choice: None,
        limit_key: "max_completion_tokens",
        splice: None,
    };
    assert_eq!(read(&body), expected);
    let nulls = [
        "n",
        "stream",
        "max_tokens",
        "max_completion_tokens",
        "service_tier",
        "modalities",
        "audio",
    ];
    let more = [
        "web_search_options",
        "tools",
        "functions",
        "function_call",
        "tool_choice",
        "response_format",
        "prediction",
    ];
    let nulls: String = nulls
        .iter()
        .chain(&more)
        .map(|key| format!(",\"{key}\":null"))
        .collect();
    assert_eq!(read(&with(&nulls)), expected, "null means absent (D62)");
    let spaced =
        "\n{ \"model\" :\t\"m\" , \"messages\" : [ { \"role\":\"user\" , \"content\" : \"hi\" } ] }\r\n";
    assert_eq!(read(spaced), expected);
}

#[test]
fn texts_are_borrowed_unless_they_are_escaped() {
    let body = with(",\"service_tier\":\"flex\"");
    assert!(matches!(read(&body).model, Cow::Borrowed("m")));
    assert!(matches!(read(&body).service_tier, Some(Cow::Borrowed("flex"))));
    let body = r#"{"\u006dodel":"gpt\u002d4\u006f","messages":[{}],"service_tier":"pri\u006frity"}"#;
    assert_eq!(read(body).model, "gpt-4o");
    assert_eq!(read(body).service_tier.as_deref(), Some("priority"));
    let body = r#"{"model":"\ud83d\ude00\/\"\\é","messages":[{}]}"#;
    assert_eq!(read(body).model, "😀/\"\\é");
}

#[test]
fn limits_and_switches() {
    for (members, tokens) in [
        (",\"max_tokens\":1", 1),
        (",\"max_tokens\":10000000", 10_000_000),
        (",\"max_completion_tokens\":7", 7),
        (",\"max_completion_tokens\":7,\"max_tokens\":9000", 7),
        (",\"max_tokens\":9000,\"max_completion_tokens\":7", 7),
        (",\"max_tokens\":9000,\"max_completion_tokens\":null", 9000),
    ] {
        assert_eq!(read(&with(members)).shape.completion_tokens, tokens, "{members}");
        assert!(!read(&with(members)).shape.unlimited, "{members}");
    }
    assert_eq!(read(&with(",\"n\":128")).shape.n, 128);
    assert_eq!(read(&with(",\"stream\":false,\"n\":2")).shape.n, 2);
    for (members, audio) in [
        (",\"modalities\":[\"text\"]", false),
        (",\"modalities\":[\"text\",\"audio\"]", true),
        (",\"modalities\":[\"\\u0061udio\"]", true),
        (",\"modalities\":\"audio\"", true),
        (",\"modalities\":[]", false),
        (",\"modalities\":[[\"audio\"]]", false),
        (",\"audio\":{\"voice\":\"alloy\",\"format\":\"wav\"}", true),
        (",\"modalities\":[\"text\"],\"audio\":{}", true),
        (",\"audio\":false", true),
    ] {
        assert_eq!(read(&with(members)).shape.audio_output, audio, "{members}");
    }
    assert!(read(&with(",\"web_search_options\":{}")).shape.web_search);
    assert!(read(&with(",\"web_search_options\":false")).shape.web_search);
}

#[test]
fn text_of_messages() {
    for (members, bytes) in [
        ("", 0),
        (r#""role":"user""#, 0),
        (r#""role":"developer","content":null"#, 0),
        (r#""role":"wizard""#, 8),
        (r#""content":"""#, 0),
        (r#""content":"hello""#, 5),
        (r#""content":"Grüße 😀""#, 12),
        (r#""content":"\u0047r\u00fc\u00dfe \ud83d\ude00""#, 12),
        (r#""content":"a\n\t\"\\\/b""#, 7),
        (r#""content":"\u0000\u20ac""#, 4),
        (r#""content":"x","name":"bob""#, 4),
        (r#""content":null,"refusal":"no!""#, 3),
        (r#""role":"tool","tool_call_id":"call_1","content":"42""#, 8),
        (r#""content":["ab",{"type":"text","text":"cd"},"é"]"#, 6),
        (
            r#""content":[{"type":"text","text":"one"},{"type":"text","text":"three"}]"#,
            8,
        ),
        (
            r#""content":[{"type":"refusal","refusal":"no"},{"type":"input_text","text":"yes"}]"#,
            5,
        ),
        (r#""content":{"type":"text","text":"cd"}"#, 2),
        (r#""content":[]"#, 0),
        (r#""content":[null,17,true]"#, 6),
        (r#""content":12.5"#, 4),
        (
            r#""annotations":null,"audio":null,"tool_calls":null,"function_call":null,"refusal":null"#,
            0,
        ),
        (r#""content":"a","content":"bc""#, 3),
        (r#""content":"a","CONTENT":"bc""#, 3),
        (r#""content":"a","con\u0074ent":"bc""#, 3),
        (r#""note":"hidden""#, 15),
        (r#""note" : [1, 2]"#, 13),
        (r#""note":null"#, 11),
    ] {
        assert_eq!(message(members), [bytes, 0, 0, 0], "{members}");
    }
}

/// Decision D68: the provider frames messages and parts, so empty ones also count.
#[test]
fn framing_of_messages_and_parts() {
    let text = r#"{"type":"text","text":""}"#;
    let framing = |messages: &str, members: &str| {
        let body = format!(r#"{{"model":"m","messages":[{messages}]{members}}}"#);
        let read = read(&body);
        [
            read.shape.framed,
            read.shape.content_parts,
            read.shape.predicted_parts,
            read.shape.predicted_bytes,
            read.shape.prompt_bytes,
        ]
    };
    for (messages, members, counts) in [
        ("{}".to_owned(), "", [1, 0, 0, 0, 0]),
        (vec!["{}"; 2_000].join(","), "", [2_000, 0, 0, 0, 0]),
        (r#"{"role":"user","content":""}"#.to_owned(), "", [1, 0, 0, 0, 0]),
        (r#"{"content":[]}"#.to_owned(), "", [1, 0, 0, 0, 0]),
        (format!(r#"{{"content":[{text}]}}"#), "", [1, 1, 0, 0, 0]),
        (
            format!(r#"{{"content":[{}]}}"#, vec![text; 500].join(",")),
            "",
            [1, 500, 0, 0, 0],
        ),
        (r#"{"content":["","",null]}"#.to_owned(), "", [1, 3, 0, 0, 0]),
        (r#"{"content":[{},{}]}"#.to_owned(), "", [1, 2, 0, 0, 4]),
        (format!(r#"{{"content":{text}}}"#), "", [1, 1, 0, 0, 0]),
        (
            r#"{"content":[{"type":"image_url","image_url":"x"}]}"#.to_owned(),
            "",
            [1, 1, 0, 0, 0],
        ),
        // Whichever of two equal keys another parser reads, its parts count.
        (
            format!(r#"{{"content":[{text}],"Content":[{text},{text}]}}"#),
            "",
            [1, 3, 0, 0, 0],
        ),
        // The model sees a tool call as a separate message.
        (
            r#"{"tool_calls":[{"id":""},{"id":""},"ab"]}"#.to_owned(),
            "",
            [3, 0, 0, 0, 2],
        ),
        (
            "{}".to_owned(),
            r#","prediction":{"type":"content","content":"abcde"}"#,
            [1, 0, 0, 5, 5],
        ),
        (
            format!(r#"{{"content":[{text}]}}"#),
            r#","prediction":{"type":"content","content":[{"type":"text","text":"abc"},{"type":"text","text":""}]}"#,
            [1, 3, 2, 3, 3],
        ),
        ("{}".to_owned(), r#","prediction":null"#, [1, 0, 0, 0, 0]),
    ] {
        let shown: String = messages.chars().take(80).collect();
        assert_eq!(framing(&messages, members), counts, "{shown} {members}");
    }
}

#[test]
fn tool_calls_and_functions() {
    for (members, bytes) in [
        // name 11, arguments {"city":"Oslo"} 15, id 6
        (
            r#""tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]"#,
            32,
        ),
        (
            r#""tool_calls":[{"type":"custom","custom":{"name":"run","input":"ls\n"}}]"#,
            6,
        ),
        (
            r#""tool_calls":[{"type":"function","function":{"name":"f","arguments":{"a":1}}}]"#,
            8,
        ),
        (r#""tool_calls":[{"type":"novel","index":0}]"#, 16),
        (r#""tool_calls":["ab",3]"#, 3),
        (r#""function_call":{"name":"f","arguments":"{}"}"#, 3),
        (r#""function_call":{"name":"f","more":"x"}"#, 11),
    ] {
        assert_eq!(message(members), [bytes, 0, 0, 0], "{members}");
    }
}

#[test]
fn media_parts() {
    for (part, counts) in [
        (
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"high"}}"#,
            [0, 1, 0, 0],
        ),
        (
            r#"{"type":"image_url","image_url":"https://example.com/a.png"}"#,
            [0, 1, 0, 0],
        ),
        (r#"{"image_url":{"url":"x"},"type":"image_url"}"#, [0, 1, 0, 0]),
        (r#"{"type":"image_url"}"#, [0, 1, 0, 0]),
        (
            r#"{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}"#,
            [0, 0, 1, 0],
        ),
        (r#"{"type":"file","file":{"file_id":"file-1"}}"#, [0, 0, 0, 1]),
        (
            r#"{"type":"file","file":{"file_data":"AAAA","filename":"a\"b.pdf"}}"#,
            [7, 0, 0, 1],
        ),
        // Text next to the payload counts, including keys: "note":"abc" has 12 bytes, "url":[1] counts its value.
        (
            r#"{"type":"image_url","image_url":{"url":"x","note":"abc"}}"#,
            [12, 1, 0, 0],
        ),
        (
            r#"{"type":"image_url","image_url":{"url":["long text"]}}"#,
            [13, 1, 0, 0],
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"x"},"text":"abcd"}"#,
            [4, 1, 0, 0],
        ),
        // Payloads are free only if they match the type.
        (r#"{"type":"text","text":"ab","image_url":"abc"}"#, [7, 1, 0, 0]),
        (
            r#"{"type":"image_url","image_url":"x","input_audio":{"data":"x"}}"#,
            [12, 1, 1, 0],
        ),
        (r#"{"type":"image_url","Image_URL":{"URL":"x"}}"#, [0, 1, 0, 0]),
        // Parts of unknown types count all their bytes, and an image if a member could be one.
        (r#"{"type":"novel","words":"hello"}"#, [32, 1, 0, 0]),
        (r#"{"image":"AAAA"}"#, [16, 1, 0, 0]),
        (r#"{"type":"image","source":{"data":"AAAA"}}"#, [41, 1, 0, 0]),
        (r#"{"type":"novel","text":"hello","x":null}"#, [40, 0, 0, 0]),
        (
            r#"{"type":"input_image","image_url":{"url":"abcd"}}"#,
            [49, 1, 0, 0],
        ),
        (r#"{"type":"image_url","type":"text","text":1}"#, [43, 0, 0, 0]),
        (r#"{}"#, [2, 0, 0, 0]),
        (r#"{"text":"a"}"#, [12, 0, 0, 0]),
        (r#"{"type":"text","text":"a","image_url":null}"#, [1, 0, 0, 0]),
    ] {
        assert_eq!(message(&format!("\"content\":[{part}]")), counts, "{part}");
    }
    let parts = r#""content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"a"}},{"type":"image_url","image_url":{"url":"b"}}]"#;
    assert_eq!(message(parts), [3, 2, 0, 0]);
    assert_eq!(
        message(r#""role":"assistant","audio":{"id":"audio_1"}"#),
        [16, 0, 1, 0],
        "it is heard again"
    );
}

#[test]
fn text_outside_the_messages() {
    for (members, bytes) in [
        (r#","tools":[{"type":"function","function":{"name":"f"}}]"#, 45),
        (r#","tools":[]"#, 2),
        (r#","functions":[{"name":"f"}]"#, 14),
        (r#","response_format":{"type":"json_object"}"#, 22),
        (r#","function_call":{"name":"f"}"#, 12),
        (r#","function_call":"auto""#, 0),
        (r#","tool_choice":"required""#, 0),
        (r#","tool_choice":"something""#, 11),
        (r#","tool_choice":{"type":"function"}"#, 19),
        (r#","prediction":{"type":"content","content":"ab\nc"}"#, 4),
        (
            r#","prediction":{"type":"content","content":[{"type":"text","text":"abc"}]}"#,
            3,
        ),
        (r#","web_search_options":{"a":1}"#, 7),
        (r#","future_prompt":"abc""#, 21),
        (r#","Functions":[1]"#, 15),
        (
            r#","temperature":0.7,"top_p":1,"user":"abc","metadata":{"k":"v"},"stop":["x"],"seed":5,"store":true"#,
            0,
        ),
        (
            r#","logit_bias":{"1":2},"stream_options":null,"parallel_tool_calls":false,"reasoning_effort":"low""#,
            0,
        ),
    ] {
        assert_eq!(read(&with(members)).shape.prompt_bytes, 2 + bytes, "{members}");
    }
}
