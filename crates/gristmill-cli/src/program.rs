//! The program that a handler's command begins with: is it there? Asked of the shell that
//! will run the command, before a task has to show it.

use std::process::{Command, Stdio};

use crate::config::QueueConfig;
use crate::exec::Means;

/// What it says of a queue's command whose program is not there.
pub(crate) fn missing(queue: &QueueConfig) -> Option<String> {
    let command = match queue.means.as_ref()? {
        Means::Program(command) | Means::Stays(command) => command,
        Means::Hook(_) => return None,
    };
    let program = first_word(command)?;
    if is_there(program) {
        return None;
    }
    let hint = if program.contains('/') {
        "check its path from here, and that it may be executed"
    } else {
        "check its name and PATH"
    };
    let name = &queue.name;
    Some(format!("there is no program '{program}' for queue '{name}' here: {hint}"))
}

/// The word that names the program, where a command is as simple as that. What a shell
/// has to work out first is left to it.
fn first_word(command: &str) -> Option<&str> {
    let word = command.split_whitespace().next()?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
    (word.chars().all(is_plain) && !word.starts_with('-')).then_some(word)
}

/// Whether `sh` knows what to do with it: a program, or a word of its own.
fn is_there(program: &str) -> bool {
    let asked = Command::new("sh")
        .args(["-c", "command -v \"$1\"", "sh", program])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // Without a shell nothing runs, which is told elsewhere.
    asked.map_or(true, |status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_is_judged() {
        for (command, word) in [
            ("./send-mail --to x", Some("./send-mail")),
            ("cat; echo", None),
            ("cat", Some("cat")),
            ("TO=x ./send", None),
            ("\"./send mail\"", None),
            ("$HANDLER", None),
            ("(cat)", None),
            ("if true", Some("if")),
            ("", None),
        ] {
            assert_eq!(first_word(command), word, "{command}");
        }
        assert!(is_there("cat") && is_there("if") && is_there("cd") && is_there("/bin/sh"));
        assert!(!is_there("./not-there") && !is_there("no-such-program"));
    }
}
