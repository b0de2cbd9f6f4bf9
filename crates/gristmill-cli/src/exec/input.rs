//! A handler's standard input: the whole payload, before the handler starts.
//!
//! A pipe would have to be fed while the handler runs, and a worker that is
//! killed meanwhile would leave a handler with cut input that it cannot tell from
//! whole.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::process::Stdio;

/// The payload as a file without a name, read from its beginning.
pub(super) fn of(payload: &[u8]) -> io::Result<Stdio> {
    let mut file = nameless()?;
    file.write_all(payload)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Stdio::from(file))
}

#[cfg(target_os = "linux")]
fn nameless() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(File::from(memfd_create("payload", MemfdFlags::CLOEXEC)?))
}

#[cfg(not(target_os = "linux"))]
fn nameless() -> io::Result<File> {
    let token = gristmill::port::Token::random().map_err(io::Error::other)?;
    let path = std::env::temp_dir().join(format!("gristmill-{token}"));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
