//! What was declared so far, in which file and on which line, so that a second
//! one can point at the first.

use std::collections::BTreeMap;

/// Everything that must be unique among the contracts of one place.
#[derive(Debug, Default)]
pub(super) struct Known {
    file: String,
    numbers: BTreeMap<u64, (String, Place)>,
    names: BTreeMap<String, Place>,
    /// Names of types in the generated code, and the queue each is for.
    types: BTreeMap<String, (String, Place)>,
}

#[derive(Debug, Clone)]
struct Place {
    file: String,
    line: u64,
}

impl Known {
    /// From now on, declarations stand in this file.
    pub(super) fn enter(&mut self, file: &str) {
        file.clone_into(&mut self.file);
    }

    fn place(&self, line: u64) -> Place {
        Place { file: self.file.clone(), line }
    }

    /// `on line 3`, or with the file when it is another.
    fn shown(&self, place: &Place) -> String {
        if place.file == self.file {
            format!("on line {}", place.line)
        } else {
            format!("in {} on line {}", place.file, place.line)
        }
    }

    /// Takes a number for a queue; in words who has it, if somebody has.
    pub(super) fn number(&mut self, number: u64, queue: &str, line: u64) -> Option<String> {
        if let Some((other, place)) = self.numbers.get(&number) {
            return Some(format!("queue '{other}' {} has it", self.shown(place)));
        }
        self.numbers.insert(number, (queue.to_owned(), self.place(line)));
        None
    }

    /// The least number that nobody has.
    pub(super) fn free_number(&self) -> u64 {
        (1..).find(|number| !self.numbers.contains_key(number)).unwrap_or(1)
    }

    /// Takes a queue's name; where it was declared, if it was.
    pub(super) fn name(&mut self, name: &str, line: u64) -> Option<String> {
        if let Some(place) = self.names.get(name) {
            return Some(self.shown(place));
        }
        self.names.insert(name.to_owned(), self.place(line));
        None
    }

    /// Takes a type's name for a queue; in words whose it is, if it is
    /// another's.
    pub(super) fn type_name(&mut self, type_name: &str, queue: &str, line: u64) -> Option<String> {
        if let Some((other, place)) = self.types.get(type_name) {
            return Some(format!("queue '{other}' {}", self.shown(place)));
        }
        self.types.insert(type_name.to_owned(), (queue.to_owned(), self.place(line)));
        None
    }
}
