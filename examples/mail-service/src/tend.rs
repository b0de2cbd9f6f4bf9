//! Minds a running service: its processors are set by a file, and its metrics go to
//! another, for whoever collects them.

use std::path::Path;
use std::time::Duration;

use gristmill::Mill;
use gristmill::worker::WorkerHandle;

/// How often the control file is read and the metrics are written.
const EVERY: Duration = Duration::from_secs(1);

/// Keeps the number of processors at what a file says, and writes metrics to
/// another, until it is dropped.
pub async fn tend(
    mill: &Mill,
    worker: &WorkerHandle,
    control: Option<&Path>,
    metrics: Option<&Path>,
) {
    let mut known = None;
    loop {
        let wished = control
            .and_then(|file| std::fs::read_to_string(file).ok())
            .and_then(|text| text.trim().parse::<usize>().ok());
        if wished.is_some() && wished != known {
            known = wished;
            worker.set_processors(wished.unwrap_or(1));
            tracing::info!(processors = wished.unwrap_or(1), "the control file says how many");
        }
        write_metrics(mill, metrics);
        tokio::time::sleep(EVERY).await;
    }
}

/// Writes the metrics: also once after the end, which shows that nothing runs.
pub fn write_metrics(mill: &Mill, metrics: Option<&Path>) {
    if let Some(file) = metrics
        && let Err(error) = write(file, &mill.metrics().text())
    {
        tracing::warn!(file = %file.display(), %error, "metrics could not be written");
    }
}

/// Whole or not at all: a reader never sees half of it.
///
/// # Errors
/// When nothing can be written there.
pub fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, file)
}
