//! A payload as people read it: by its contract, as JSON, as text, or how much it is.

use gristmill::{Encoding, Task};
use maud::{Markup, html};

use crate::dashboard::words::number;
use crate::known::Queues;

/// Most of a text that a page shows.
const SHOWN: usize = 64 << 10;

/// The payload as text, where it is one.
fn text(task: &Task, queues: &Queues) -> Option<String> {
    if let Some(json) = queues.as_json(&task.queue, &task.payload) {
        return Some(json);
    }
    if task.payload.encoding == Encoding::Msgpack {
        return None;
    }
    String::from_utf8(task.payload.bytes.to_vec()).ok()
}

fn size(task: &Task) -> String {
    format!("{} bytes of {}", number(task.payload.bytes.len() as u64), task.payload.encoding)
}

/// The payload for one line of a list.
pub(crate) fn line(task: &Task, queues: &Queues) -> String {
    // Of a large one, only the beginning is looked at.
    match task.payload.bytes.get(..4096) {
        Some(start) if task.payload.encoding == Encoding::Json => {
            String::from_utf8_lossy(start).into_owned()
        }
        _ => text(task, queues).unwrap_or_else(|| size(task)),
    }
}

/// The text that a form begins with, to put an edited copy.
pub(crate) fn editable(task: &Task, queues: &Queues) -> Option<String> {
    text(task, queues).map(|text| pretty(&text))
}

/// The whole of it.
pub(crate) fn whole(task: &Task, queues: &Queues) -> Markup {
    let text = text(task, queues);
    html! {
        @match &text {
            Some(text) => { (block(text, task.payload.encoding != Encoding::Raw)) }
            None => { p { (size(task)) ". Only its handler knows what they say." } }
        }
        p.scope { (size(task)) }
    }
}

/// Any text in a box, JSON with one value a line.
pub(crate) fn block(text: &str, json: bool) -> Markup {
    let shown = if json { pretty(text) } else { text.to_owned() };
    let cut: String = shown.chars().take(SHOWN).collect();
    html! {
        pre.payload tabindex="0" { code { (cut) } }
        @if cut.len() < shown.len() {
            p.scope { (number(shown.len() as u64)) " bytes in all, " (number(cut.len() as u64)) " shown." }
        }
    }
}

/// JSON with one value a line. Only the white space changes: a number keeps its spelling.
/// What is no JSON comes back as it was.
pub(crate) fn pretty(text: &str) -> String {
    if serde_json::from_str::<&serde_json::value::RawValue>(text).is_err() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut chars = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(64)));
    };
    while let Some(c) = chars.next() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                quoted = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while chars.peek().is_some_and(|c| c.is_ascii_whitespace()) {
                    chars.next();
                }
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_spelling() {
        assert_eq!(
            pretty(r#"{"a":2.50,"b":[1,  {}],"c":"x, \" {y}"}"#),
            "{\n  \"a\": 2.50,\n  \"b\": [\n    1,\n    {}\n  ],\n  \"c\": \"x, \\\" {y}\"\n}"
        );
        assert_eq!(pretty("not { json"), "not { json");
        assert_eq!(pretty("123456789012345678901234567890"), "123456789012345678901234567890");
    }
}
