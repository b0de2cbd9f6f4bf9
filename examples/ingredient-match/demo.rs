//! Gives `demo.sh` a database: the one in `DATABASE_URL`, or a throw-away
//! PostgreSQL that is gone afterwards. Gristmill's schema is made in it.

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

use gristmill::Mill;
use gristmill_pgserver::{PrivateServer, Server};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (url, _server) = database()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { Mill::open(&url).await?.close().await })?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ended = Command::new(here.join("demo.sh")).env("DATABASE_URL", &url).status()?;
    Ok(if ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The server must outlive what runs on it.
fn database() -> Result<(String, Option<PrivateServer>), Box<dyn Error>> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        return Ok((url, None));
    }
    let server = Server::private()?;
    Ok((server.url(), Some(server)))
}
