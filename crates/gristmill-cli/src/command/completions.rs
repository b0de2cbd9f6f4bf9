//! `completions`: what a shell needs to complete our words.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Session;
use crate::args::Cli;
use crate::failure::Failure;

/// Print them for this shell.
#[derive(Debug)]
pub(crate) struct Completions {
    pub(crate) shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "gristmill", &mut script);
        session.output.line(String::from_utf8_lossy(&script).trim_end())
    }
}
