//! The thread that hears signals, and ends the process when its time has come.

use std::io;
use std::time::{Duration, Instant};

use super::{INTERRUPTED, SAME_WISH, Shared};

/// How often it is looked whether the time has come.
const LOOK: Duration = Duration::from_millis(20);

/// The number of SIGHUP.
const HANGUP: i32 = 1;

/// Starts the thread; signals are heard when this returns.
pub(super) fn start(shared: &'static Shared) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut source = {
        let _entered = runtime.enter();
        Source::new()?
    };
    std::thread::Builder::new().name("gristmill-signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let mut same_wish: Option<Instant> = None;
            loop {
                tokio::select! {
                    number = source.next() => {
                        // Whose terminal is gone has nobody left to stop it.
                        if number == HANGUP && !source.lost_terminal() && shared.hear_hangup() {
                            continue;
                        }
                        let now = Instant::now();
                        if same_wish.is_some_and(|until| now < until) {
                            continue;
                        }
                        if shared.hear() {
                            shared.end(128 + number);
                        }
                        same_wish.get_or_insert(now + SAME_WISH);
                    }
                    () = tokio::time::sleep(LOOK), if same_wish.is_some() => {}
                }
                if shared.lock().ends_at.is_some_and(|at| Instant::now() >= at) {
                    shared.end(i32::from(INTERRUPTED));
                }
            }
        });
    })?;
    Ok(())
}

#[cfg(unix)]
struct Source {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: Option<tokio::signal::unix::Signal>,
    /// It was started in a terminal.
    terminal: bool,
}

#[cfg(unix)]
impl Source {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hears_hangup = !ignores_hangup();
        Ok(Source {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: hears_hangup.then(|| signal(SignalKind::hangup())).transpose()?,
            terminal: has_terminal(),
        })
    }

    /// Whether the terminal it was started in is there no more.
    fn lost_terminal(&self) -> bool {
        self.terminal && !has_terminal()
    }

    /// The number of the next one.
    async fn next(&mut self) -> i32 {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
            _ = hangup => HANGUP,
        }
    }
}

/// Whether this process belongs to a terminal.
#[cfg(unix)]
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether the process was started to outlive its terminal.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(not(unix))]
struct Source;

#[cfg(not(unix))]
impl Source {
    fn new() -> io::Result<Self> {
        Ok(Source)
    }

    /// Nothing here hears of it.
    fn lost_terminal(&self) -> bool {
        false
    }

    /// The number of the next one.
    async fn next(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        2
    }
}
