//! Log lines on standard error: what happens, and everything with `--debug`.

use tracing::Level;

/// Shows log lines from now on.
pub(crate) fn install(debug: bool) {
    tracing_subscriber::fmt()
        .with_max_level(if debug { Level::DEBUG } else { Level::INFO })
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        // Who closed standard error wants no more of it.
        .log_internal_errors(false)
        .init();
}
