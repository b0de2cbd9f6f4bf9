//! `man`: the manual pages, made from what `--help` says.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man as Page;

use super::Session;
use crate::args::Cli;
use crate::failure::Failure;
use crate::output::count;

/// Show the page of the whole, or write the pages of all commands.
#[derive(Debug)]
pub(crate) struct Man {
    pub(crate) out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        // A page about how to ask for help is none that anybody looks up.
        let mut whole = without_help(Cli::command());
        whole.build();
        let Some(folder) = self.out else {
            return session.output.bytes(&page(whole)?);
        };
        let shown = folder.display().to_string();
        let cannot = |error: std::io::Error| Failure::io(&shown, &error);
        std::fs::create_dir_all(&folder).map_err(cannot)?;
        let mut pages = vec![whole];
        let mut written = 0;
        while let Some(command) = pages.pop() {
            pages.extend(command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned());
            let name = command.get_display_name().unwrap_or_else(|| command.get_name());
            let file = folder.join(format!("{name}.1"));
            std::fs::write(&file, page(command)?).map_err(cannot)?;
            written += 1;
        }
        session.output.either(
            &serde_json::json!({ "out": shown, "pages": written }),
            format_args!("{} written to {shown}", count(written, "page")),
        )
    }
}

fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    // A day would make every build's page another one.
    let rendered = Page::new(command).date("").render(&mut page);
    rendered.map_err(|error| Failure::io("a manual page", &error))?;
    Ok(page)
}
