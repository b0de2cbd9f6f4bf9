//! A terminal that a command believes it is in: what it draws is kept as somebody before
//! it would see it, and keys are pressed.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::place::eventually;

/// A command in a terminal of its own. Killed when a test ends early.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Mutex<Screen>>,
}

/// What stands where, and how it came there.
struct Screen {
    rows: Vec<Vec<char>>,
    at: (usize, usize),
    /// What was sent: all of it.
    sent: String,
    /// The beginning of an order whose end has not come yet.
    cut: String,
}

impl Terminal {
    pub(crate) fn of(command: &Command, columns: u16, rows: u16) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let side = || File::options().read(true).write(true).open(&name).unwrap();
        // A session of its own, whose terminal this is: else it would ask the one that the
        // test itself was started from.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        session.env("TERM", "xterm-256color");
        session.current_dir(command.get_current_dir().unwrap());
        let [stdin, stdout, stderr] = [side(), side(), side()].map(Stdio::from);
        let child = session.stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
        let keys = File::from(terminal);
        let blank = vec![vec![' '; columns.into()]; rows.into()];
        let screen = Screen { rows: blank, at: (0, 0), sent: String::new(), cut: String::new() };
        let shown = Arc::new(Mutex::new(screen));
        let (mut from, to) = (keys.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let (mut bytes, mut rest) = ([0; 4096], Vec::new());
            // It fails once the last program in the terminal has ended.
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                rest.extend_from_slice(&bytes[..read]);
                let whole = match std::str::from_utf8(&rest) {
                    Ok(text) => text.len(),
                    Err(cut) => cut.valid_up_to(),
                };
                let text = String::from_utf8(rest.drain(..whole).collect()).unwrap();
                to.lock().unwrap_or_else(PoisonError::into_inner).take(&text);
            }
        });
        Terminal { child, keys, shown }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The screen, line by line, without blanks at the end of each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned();
        shown.rows.iter().map(line).collect()
    }

    pub(crate) fn until(&self, text: &str) {
        let seen = || self.lines().iter().any(|line| line.contains(text));
        eventually(&format!("'{text}' on\n{}", self.lines().join("\n")), seen);
    }

    /// Everything that was sent to it so far.
    pub(crate) fn sent(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).sent.clone()
    }

    /// Waits for the end of the command; its exit code.
    pub(crate) fn end(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Screen {
    /// Takes in what a program writes: text, and where it is to stand.
    fn take(&mut self, text: &str) {
        self.sent.push_str(text);
        let text = std::mem::take(&mut self.cut) + text;
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let whole =
                |c: char| c.is_ascii_alphabetic() || (c != '[' && !rest.starts_with("\u{1b}["));
            if first == '\u{1b}' && !rest[1..].contains(whole) {
                self.cut = rest.to_owned();
                return;
            }
            rest = &rest[first.len_utf8()..];
            match first {
                '\u{1b}' => rest = self.obey(rest),
                '\r' => self.at.1 = 0,
                '\n' => self.at.0 += 1,
                letter => {
                    if let Some(place) =
                        self.rows.get_mut(self.at.0).and_then(|row| row.get_mut(self.at.1))
                    {
                        *place = letter;
                    }
                    self.at.1 += 1;
                }
            }
        }
    }

    /// One order; what follows it.
    fn obey<'a>(&mut self, rest: &'a str) -> &'a str {
        let Some(order) = rest.strip_prefix('[') else { return rest.get(1..).unwrap_or_default() };
        let Some(end) = order.find(|c: char| c.is_ascii_alphabetic()) else { return "" };
        let mut numbers = order[..end].split(';').map(|n| n.parse::<usize>().unwrap_or(1));
        match &order[end..=end] {
            "H" => {
                let (row, column) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
                self.at = (row.max(1) - 1, column.max(1) - 1);
            }
            // Cleared, or another screen than the one before.
            "J" => self.blank(),
            "h" | "l" if order.starts_with("?1049") => self.blank(),
            _ => {}
        }
        &order[end + 1..]
    }

    fn blank(&mut self) {
        self.rows.iter_mut().flatten().for_each(|place| *place = ' ');
    }
}
