//! A slow reference parser on a tree of `serde_json` values: the rules of `prompt.rs` and `prompt/part.rs`, written
//! again without the scanner. It supports only valid bodies.

use super::generated::{Spelling, fold};
use serde_json::{Map, Value};

/// Prompt bytes, images, audios, files, framed messages and calls, content parts, and the bytes and parts of
/// `prediction`.
pub(super) type Counts = [u64; 8];

/// Counts of a tree that is written with a given spelling.
pub(super) struct Reference<'a> {
    pub(super) spelling: &'a Spelling,
    pub(super) counts: Counts,
}

impl Reference<'_> {
    /// Counts the prompt of a whole body.
    pub(super) fn body(&mut self, body: &Map<String, Value>) {
        for (key, value) in body {
            match key.as_str() {
                "messages" => value
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|message| self.message(message)),
                "tools" | "functions" | "response_format" | "web_search_options" => self.word(value, &[]),
                "tool_choice" | "function_call" => self.word(value, &["auto", "none", "required"]),
                "prediction" => {
                    let before = self.counts;
                    self.fields(value, |this, name, key, value| match name {
                        "type" => this.word(value, &["content"]),
                        "content" => this.content(value),
                        _ => this.member(key, value),
                    });
                    self.counts[6] += self.counts[0] - before[0];
                    self.counts[7] += self.counts[5] - before[5];
                }
                "model"
                | "stream"
                | "n"
                | "max_tokens"
                | "max_completion_tokens"
                | "service_tier"
                | "modalities"
                | "audio"
                | "temperature"
                | "metadata"
                | "user" => {}
                _ => self.member(key, value),
            }
        }
    }

    fn message(&mut self, message: &Value) {
        self.counts[4] += 1;
        let roles = ["user", "assistant", "system", "developer", "tool", "function"];
        self.fields(message, |this, name, key, value| match name {
            "role" => this.word(value, &roles),
            "content" => this.content(value),
            "name" | "refusal" | "tool_call_id" => this.text(value),
            "tool_calls" => this.each(value, |this, call| {
                this.counts[4] += 1;
                this.fields(call, |this, name, key, value| match name {
                    "id" => this.text(value),
                    "type" => this.word(value, &["function", "custom"]),
                    "function" | "custom" => this.function(value),
                    _ => this.member(key, value),
                });
            }),
            "function_call" => this.function(value),
            "audio" if value.is_null() => {}
            "audio" => {
                this.counts[2] += 1;
                this.counts[0] += this.spelling.size(value);
            }
            "annotations" => this.word(value, &[]),
            _ => this.member(key, value),
        });
    }

    fn content(&mut self, content: &Value) {
        self.counts[5] += match content {
            Value::Array(parts) => parts.len() as u64,
            alone => u64::from(alone.is_object()),
        };
        self.each(content, |this, part| {
            let members = part.as_object().unwrap();
            let named = |wanted: &str| -> Vec<&Value> {
                let named = members.iter().filter(|(key, _)| fold(key) == wanted);
                named.map(|(_, value)| value).collect()
            };
            let kind = match named("type")[..] {
                [Value::String(kind)] => kind.as_str(),
                _ => "",
            };
            for (place, name) in [(1, "image_url"), (2, "input_audio"), (3, "file")] {
                let there = named(name).into_iter().filter(|value| !value.is_null()).count() as u64;
                this.counts[place] += there.max(u64::from(kind == name));
            }
            let known = ["refusal", "input_text", "image_url", "input_audio", "file"];
            if kind != "text" && !known.contains(&kind) {
                let of_text = ["type", "text", "refusal", "image_url", "input_audio", "file"];
                let of_cache = ["cache_control", "prompt_cache_breakpoint"];
                let is_media = |(key, value): (&String, &Value)| {
                    let name = fold(key);
                    !value.is_null() && !of_text.contains(&&*name) && !of_cache.contains(&&*name)
                };
                if members.iter().any(is_media) && named("image_url").iter().all(|value| value.is_null()) {
                    this.counts[1] += 1;
                }
                this.counts[0] += this.spelling.size(part);
                return;
            }
            this.fields(part, |this, name, key, value| match name {
                "type" => {}
                "text" | "refusal" => this.text(value),
                "image_url" | "input_audio" | "file" if name == kind => this.media(value),
                "image_url" | "input_audio" | "file" => this.word(value, &[]),
                _ => this.member(key, value),
            });
        });
    }

    fn media(&mut self, media: &Value) {
        if media.is_string() {
            return;
        }
        self.fields(media, |this, name, key, value| match name {
            "url" | "data" | "file_data" | "file_id" | "detail" | "format" if value.is_string() => {}
            "url" | "data" | "file_data" | "file_id" | "detail" | "format" => this.word(value, &[]),
            "filename" => this.text(value),
            _ => this.member(key, value),
        });
    }

    fn function(&mut self, function: &Value) {
        self.fields(function, |this, name, key, value| match name {
            "name" | "arguments" | "input" => this.text(value),
            _ => this.member(key, value),
        });
    }

    fn each(&mut self, value: &Value, object: impl Fn(&mut Self, &Value)) {
        let alone = std::slice::from_ref(value);
        for element in value.as_array().map_or(alone, Vec::as_slice) {
            if element.is_object() {
                object(self, element)
            } else {
                self.text(element)
            }
        }
    }

    fn fields(&mut self, value: &Value, member: impl Fn(&mut Self, &str, &str, &Value)) {
        match value.as_object() {
            Some(members) => members
                .iter()
                .for_each(|(key, value)| member(self, &fold(key), key, value)),
            None => self.text(value),
        }
    }

    fn member(&mut self, key: &str, value: &Value) {
        self.counts[0] += self.spelling.member_size(key, value);
    }

    fn text(&mut self, value: &Value) {
        self.counts[0] += self.spelling.text_size(value);
    }

    fn word(&mut self, value: &Value, free: &[&str]) {
        self.counts[0] += self.spelling.word_size(value, free);
    }
}
