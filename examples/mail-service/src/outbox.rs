//! Where mails go: a folder with one file a mail, behind a relay that has its
//! moods.
//!
//! A real service would speak SMTP here. This relay refuses by the address, so
//! that everything a real one does can be seen: `busy+3@…` is refused three
//! times and then taken, and what has no `@` is refused for good.

use std::io;
use std::path::{Path, PathBuf};

/// A mail on its way out.
#[derive(Debug, Clone, Copy)]
pub struct Mail<'a> {
    /// Names the file: the same task writes the same mail, however often it
    /// runs.
    pub id: i64,
    /// How often it came back before.
    pub returns: u32,
    /// Who gets it.
    pub to: &'a str,
    /// What it is about.
    pub subject: &'a str,
    /// What it says.
    pub body: &'a str,
    /// What it brings along.
    pub attachment: &'a [u8],
}

/// Why a mail was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It may be taken later.
    Later(String),
    /// It never will.
    Never(String),
}

/// The folder.
#[derive(Debug, Clone)]
pub struct Outbox {
    folder: PathBuf,
}

impl Outbox {
    /// Opens the folder, and makes it if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let told = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
        std::fs::create_dir_all(folder).map_err(told)?;
        Ok(Outbox { folder: folder.to_owned() })
    }

    /// Hands a mail to the relay.
    ///
    /// # Errors
    /// Why it was not taken, and whether another try is worth it.
    pub fn deliver(&self, mail: &Mail<'_>) -> Result<(), Refused> {
        let Some((local, _)) = mail.to.split_once('@') else {
            return Err(Refused::Never(format!("'{}' is no address", mail.to)));
        };
        let busy = local.strip_prefix("busy+").and_then(|times| times.parse::<u32>().ok());
        if busy.is_some_and(|times| mail.returns < times) {
            return Err(Refused::Later(format!("{} has no room now", mail.to)));
        }
        let text = format!(
            "To: {}\nSubject: {}\nX-Task: {}\nX-Returns: {}\nX-Attachment: {} bytes\n\n{}\n",
            mail.to,
            mail.subject,
            mail.id,
            mail.returns,
            mail.attachment.len(),
            mail.body
        );
        let file = self.folder.join(format!("{}.eml", mail.id));
        std::fs::write(&file, text)
            .map_err(|error| Refused::Later(format!("{}: {error}", file.display())))
    }

    /// Keeps a line about a mail that was given up.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn give_up(&self, line: &str) -> io::Result<()> {
        use std::io::Write;
        let file = self.folder.join("undelivered.log");
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
        writeln!(log, "{line}")
    }

    /// A delivered mail's text.
    #[must_use]
    pub fn read(&self, id: i64) -> Option<String> {
        std::fs::read_to_string(self.folder.join(format!("{id}.eml"))).ok()
    }
}
