//! Morning Deck as a program: the demonstration, or the service on a
//! configuration of one's own.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use gristmill::port::SystemClock;
use gristmill::signal::Signals;
use morning_deck::ai::WordCounter;
use morning_deck::app::App;
use morning_deck::config::{Config, PROPERTIES, QueuePlace};
use morning_deck::deck::Services;
use morning_deck::demo::{self, Servers};
use morning_deck::error::Result;
use morning_deck::http::Client;
use morning_deck::log;
use morning_deck::search::Search;
use morning_deck::smtp::Mailer;

/// Fetches sources, enriches news and mails briefings.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Show everything that happens
    #[arg(long, global = true)]
    debug: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run with local feeds, mail and search, fast enough to watch (the default)
    Demo {
        /// Keep the queues in memory instead of the database
        #[arg(long)]
        memory: bool,
        /// A file to keep and to go on with; without, all is gone at the end
        #[arg(long, value_name = "PATH")]
        db: Option<PathBuf>,
    },
    /// Run on a configuration of your own
    Run {
        /// YAML, or name=value lines in a file that ends in .properties
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// List every property with its default and its environment variable
    Properties,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    log::install(args.debug);
    let ran = match args.command {
        None => demo(false, None).await,
        Some(Command::Demo { memory, db }) => demo(memory, db).await,
        Some(Command::Run { config }) => run(config).await,
        Some(Command::Properties) => properties(),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("morning-deck: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn properties() -> Result<()> {
    for property in PROPERTIES {
        println!("{:<57} {:<26} {}", property.name, property.default, property.variable());
    }
    Ok(())
}

async fn run(path: Option<PathBuf>) -> Result<()> {
    let config = Config::load(path.as_deref(), std::env::vars())?;
    let app = open(config).await?;
    serve(&app).await
}

async fn demo(memory: bool, db: Option<PathBuf>) -> Result<()> {
    // Deleted when this goes out of scope.
    let folder = tempfile::tempdir()?;
    let servers = Servers::start().await?;
    let mut config = Config::read(Some(("demo.yaml", demo::CONFIG)), std::env::vars())?;
    config.database = db.unwrap_or_else(|| folder.path().join("morning-deck.db"));
    if memory {
        config.queue = QueuePlace::Memory;
    }
    config.mail = Some(("127.0.0.1".to_owned(), servers.mail.port()));
    config.search = config.search.map(|_| servers.web.url(""));
    let app = open(config).await?;
    let known = demo::seed(&app.deck, &servers).await?;
    println!("morning-deck: two readers, four sources each, local servers. Ctrl-C stops it.");
    tokio::select! {
        served = serve(&app) => served,
        () = servers.keep_going(known) => Ok(()),
        hurried = demo::hurry(&app.deck) => hurried,
    }
}

async fn open(config: Config) -> Result<App> {
    let from = config.mail_from.clone();
    let mailer = config.mail.clone().map(|(host, port)| Mailer {
        host,
        port,
        from,
        timeout: Duration::from_secs(30),
    });
    let search = config.search.clone().map(|url| Search { url, client: Client::default() });
    let services = Services { web: Client::default(), ai: Arc::new(WordCounter), mailer, search };
    App::open(config, Arc::new(SystemClock::default()), services).await
}

async fn serve(app: &App) -> Result<()> {
    let signals = Signals::listen()?;
    signals.waits(app.config.stop_within);
    // The second signal ends the patience with what still runs, and the process.
    let report = app.run(signals.asked(), signals.forced()).await?;
    signals.ended(&report);
    app.close().await?;
    println!(
        "morning-deck: stopped; {} tasks done, {} failed, {} given back, {} left running",
        report.done, report.not_done, report.released, report.left.running
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }
}
