//! What clap says about a command line, in our form: one sentence on standard
//! error, and the exit code for it.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};

use crate::args::Cli;
use crate::failure::{Exit, Failure};

/// How clap's advice on an unknown option begins to say that it may be a value: it hardly
/// ever is one.
const AS_A_VALUE: &str = "as a value, use '-- ";

/// Shows help where it was asked for, and a sentence where something is wrong.
pub(crate) fn answer(error: &Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that went away wants no more help.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(Exit::Usage.code())
        }
        _ => {
            // The words before a mistake are not parsed: look for the flag.
            let json = std::env::args_os().any(|word| word == "--json");
            let words = std::env::args().skip(1);
            let failure = Failure::usage(sentence(error, words));
            failure.report(json);
            ExitCode::from(failure.exit.code())
        }
    }
}

/// The command that these words name, as far as they do: a complaint about a value does
/// not say of which it is.
fn command_of(words: impl Iterator<Item = String>) -> String {
    let (mut command, mut named) = (Cli::command(), "gristmill".to_owned());
    for word in words {
        let Some(inner) = command.find_subcommand(&word).cloned() else { continue };
        named = format!("{named} {}", inner.get_name());
        command = inner;
    }
    named
}

/// The paragraphs of a complaint as one sentence with where to read on.
fn sentence(error: &Error, words: impl Iterator<Item = String>) -> String {
    let mut sentence = String::new();
    let mut command = command_of(words);
    for line in error.render().to_string().lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            let words = usage.split(' ');
            let names = words.take_while(|word| word.chars().all(|c| c.is_ascii_lowercase()));
            command = names.collect::<Vec<_>>().join(" ");
        } else if !(line.starts_with("For more information") || line.contains(AS_A_VALUE)) {
            let line = line.strip_prefix("error: ").unwrap_or(line);
            let line = line.strip_prefix("tip: ").map_or_else(
                || if sentence.is_empty() { line.to_owned() } else { format!(" {line}") },
                |tip| format!("; {tip}"),
            );
            sentence.push_str(&line);
        }
    }
    let setting = as_setting(error, &command).unwrap_or_default();
    format!("{sentence}{setting}; see '{command} --help'")
}

/// What is said of `queue add emails --lease 60s`: settings have no dashes.
fn as_setting(error: &Error, command: &str) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument || !command.starts_with("gristmill queue ") {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let name = option.strip_prefix("--")?.replace('-', "_");
    Some(format!("; a setting is said as NAME=VALUE, like lease=60s: {name}=…"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn said(words: &[&str]) -> String {
        let error = Cli::try_parse_from(words).expect_err("a mistake");
        let words = words.iter().skip(1).map(|word| (*word).to_owned());
        sentence(&error, words)
    }

    #[test]
    fn mistakes_are_one_sentence() {
        for (words, parts) in [
            (&["gristmill", "sats"][..], ["unrecognized subcommand 'sats'", "'stats'"]),
            (&["gristmill", "work", "emails"], ["--exec <CMD>", "gristmill work --help"]),
            (
                &["gristmill", "put", "q", "1", "--priority", "99999"],
                ["99999", "gristmill put --help"],
            ),
            (
                &["gristmill", "work", "q", "--exec", "x", "--batch", "y"],
                ["'y'", "gristmill work --help"],
            ),
            (&["gristmill", "put", "q", "1", "--delay", "5s", "--at", "x"], ["--at", "--delay"]),
            (
                &["gristmill", "queue", "add", "q", "--max-attempts", "3"],
                ["NAME=VALUE", "max_attempts=…"],
            ),
        ] {
            let said = said(words);
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            assert!(!said.contains('\n') && !said.contains("error:"), "{said}");
            assert!(!said.contains("as a value"), "{said}");
        }
    }
}
