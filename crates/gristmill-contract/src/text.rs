//! The text of a queue's contract as stores keep it: YAML of one fixed form,
//! which can be read back without a YAML reader.
//!
//! ```text
//! id: 1
//! name: emails
//! fields:
//!   - {name: to, type: "string"}
//!   - {name: user_id, type: "int64"}
//! retired:
//!   - {name: cc, type: "string?"}
//! ```
//!
//! `retired` is there when fields were taken out: standing tasks may hold them.
//!
//! Only what decides how payloads are read is in it: settings have a place of
//! their own in the store, and prose may change freely.

use std::fmt::Write as _;

use gristmill_core::{QueueName, SettingsPatch};

use crate::{Field, FieldType, QueueContract};

impl QueueContract {
    /// The text that a store keeps.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("id: {}\nname: {}\nfields:", self.number, self.name);
        if self.fields.is_empty() {
            text.push_str(" []");
        }
        text.push('\n');
        add(&mut text, &self.fields);
        if !self.retired.is_empty() {
            text.push_str("retired:\n");
            add(&mut text, &self.retired);
        }
        text
    }

    /// Reads a text that a store kept; none when it is of another form.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let number = lines.next()?.strip_prefix("id: ")?.parse().ok()?;
        let name = QueueName::new(lines.next()?.strip_prefix("name: ")?).ok()?;
        let head = lines.next()?;
        if head != "fields:" && head != "fields: []" {
            return None;
        }
        let field = |line: &str| {
            let inside = line.strip_prefix("  - {name: ")?.strip_suffix("\"}")?;
            let (name, kind) = inside.split_once(", type: \"")?;
            Some(Field { name: name.to_owned(), kind: FieldType::parse(kind)?, doc: None })
        };
        let lines: Vec<&str> = lines.collect();
        let mut parts = lines.split(|line| *line == "retired:");
        let read = |part: &[&str]| part.iter().map(|line| field(line)).collect::<Option<Vec<_>>>();
        let fields = read(parts.next()?)?;
        let retired = parts.next().map_or(Some(Vec::new()), read)?;
        if parts.next().is_some() {
            return None;
        }
        let settings = SettingsPatch::default();
        Some(QueueContract { number, name, doc: None, fields, retired, settings, said: Vec::new() })
    }
}

fn add(text: &mut String, fields: &[Field]) {
    for Field { name, kind, .. } in fields {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - {{name: {name}, type: \"{kind}\"}}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;

    #[test]
    fn a_text_is_read_back() {
        let field = |name: &str, kind| Field { name: name.to_owned(), kind, doc: None };
        let list = FieldType { scalar: Scalar::Bytes, list: true, optional: true };
        for fields in
            [vec![], vec![field("to", FieldType::of(Scalar::String)), field("parts", list)]]
        {
            let queue = QueueContract {
                number: 7,
                name: QueueName::new("emails").expect("a name"),
                doc: None,
                fields,
                retired: Vec::new(),
                settings: SettingsPatch::default(),
                said: Vec::new(),
            };
            let without = QueueContract { fields: Vec::new(), ..queue.clone() };
            let after = without.following(&queue);
            assert_eq!(after.retired, queue.fields);
            for queue in [queue, after] {
                assert_eq!(QueueContract::from_text(&queue.text()), Some(queue));
            }
        }
        for other in [
            "",
            "v1",
            "id: 1\nname: x\n",
            "id: 1\nname: x\nfields:\n  - {name: a}\n",
            "id: 1\nname: x\nfields: []\nretired:\nretired:\n",
        ] {
            assert_eq!(QueueContract::from_text(other), None, "{other}");
        }
    }
}
