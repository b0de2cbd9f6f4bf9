//! What clap says about a command line, in our form: one sentence on standard
//! error, and the exit code for it.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::failure::{Exit, Failure};

/// Shows help where it was asked for, and a sentence where something is wrong.
pub(crate) fn answer(error: &clap::Error) -> ExitCode {
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
            let failure = Failure::usage(sentence(&error.render().to_string()));
            failure.report(json);
            ExitCode::from(failure.exit.code())
        }
    }
}

/// The paragraphs of a complaint as one sentence with where to read on.
fn sentence(said: &str) -> String {
    let mut sentence = String::new();
    let mut command = "gristmill".to_owned();
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            let words = usage.split(' ');
            let names = words.take_while(|word| word.chars().all(|c| c.is_ascii_lowercase()));
            command = names.collect::<Vec<_>>().join(" ");
        } else if !line.starts_with("For more information") {
            let line = line.strip_prefix("error: ").unwrap_or(line);
            let line = line.strip_prefix("tip: ").map_or_else(
                || if sentence.is_empty() { line.to_owned() } else { format!(" {line}") },
                |tip| format!("; {tip}"),
            );
            sentence.push_str(&line);
        }
    }
    format!("{sentence}; see '{command} --help'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    fn said(words: &[&str]) -> String {
        let error = Cli::try_parse_from(words).expect_err("a mistake");
        sentence(&error.render().to_string())
    }

    #[test]
    fn mistakes_are_one_sentence() {
        for (words, parts) in [
            (&["gristmill", "sats"][..], ["unrecognized subcommand 'sats'", "'stats'"]),
            (&["gristmill", "work", "emails"], ["--exec <CMD>", "gristmill work --help"]),
            (&["gristmill", "put", "q", "1", "--priority", "99999"], ["99999", "--help"]),
            (&["gristmill", "put", "q", "1", "--delay", "5s", "--at", "x"], ["--at", "--delay"]),
        ] {
            let said = said(words);
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            assert!(!said.contains('\n') && !said.contains("error:"), "{said}");
        }
    }
}
