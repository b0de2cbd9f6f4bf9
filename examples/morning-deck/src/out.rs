//! Standard output. Whoever closes it (`| head -1`) has seen enough: nothing more is
//! said, and nothing fails for it.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};

/// Says a line, as `println!` does, and returns what went wrong.
macro_rules! say {
    ($($said:tt)*) => { $crate::out::line(format_args!($($said)*)) };
}
pub(crate) use say;

pub(crate) fn line(said: Arguments<'_>) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{said}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
