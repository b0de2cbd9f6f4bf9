//! The mail service's command: put mails and newsletters, work, look.

mod log;
mod out;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use gristmill::Mill;
use gristmill::signal::Signals;

use mail_service::handlers::Mailer;
use mail_service::outbox::Outbox;
use mail_service::queues::{self, Emails, Newsletters};
use mail_service::{scrape, service, tend};

use out::say;

/// Mails by contract: put now, sent later.
#[derive(Debug, Parser)]
struct Args {
    /// The store
    #[arg(long, default_value = "sqlite://mail.db", global = true)]
    store: String,

    /// Show everything that happens on standard error
    #[arg(long, global = true)]
    debug: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a mail to each reader
    Send {
        /// What it is about
        subject: String,
        /// Who gets it; busy+3@example.org is refused three times first
        #[arg(required = true)]
        readers: Vec<String>,
    },
    /// Put one newsletter for all readers
    Newsletter {
        /// What it is about
        subject: String,
        /// Who gets it
        #[arg(required = true)]
        readers: Vec<String>,
    },
    /// Send what is due
    Work {
        /// Where mails go
        #[arg(long, default_value = "outbox")]
        outbox: PathBuf,
        /// Processors at the start
        #[arg(long, default_value_t = 1)]
        processors: usize,
        /// A file with the number of processors; read every second
        #[arg(long)]
        control: Option<PathBuf>,
        /// Where metrics are written every second
        #[arg(long)]
        metrics: Option<PathBuf>,
        /// Where metrics are served: http://ADDRESS/metrics
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
        /// A cycle that takes longer is told and counted, in milliseconds
        #[arg(long, value_name = "MS", default_value_t = 10_000)]
        slow_cycle: u64,
        /// Run a manager, which moves processors to the longer queue
        #[arg(long)]
        managed: bool,
        /// End when nothing is due
        #[arg(long, conflicts_with_all = ["control", "listen"])]
        drain: bool,
    },
    /// Show the queues' numbers
    Show,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    log::install(args.debug);
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mail-service: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    let mill = Mill::open(&args.store).await?;
    queues::declare(&mill).await?;
    match args.command {
        Command::Send { subject, readers } => {
            let mails = readers.into_iter().zip(1..).map(|(to, user_id)| {
                let subject = subject.clone();
                Emails { to, user_id, subject, body: None, attachment: None }
            });
            let count = mill.put_all(mails).run().await?.enqueued;
            say!("{count} {} put", if count == 1 { "mail" } else { "mails" })?;
        }
        Command::Newsletter { subject, readers } => {
            let user_ids = (1..).take(readers.len()).collect();
            mill.put(Newsletters { subject, readers, user_ids }).await?;
            say!("newsletter put")?;
        }
        Command::Work {
            outbox,
            processors,
            control,
            metrics,
            listen,
            slow_cycle,
            managed,
            drain,
        } => {
            let outbox = Outbox::open(&outbox)?;
            let mailer = Mailer { outbox, give_up_after: 20, wait: Duration::from_secs(1) };
            let worker = service::worker(&mill, &mailer, managed)
                .processors(processors)
                .slow_cycle(Duration::from_millis(slow_cycle))
                .drain(drain);
            let scraped = match listen {
                Some(address) => Some(scrape::listen(&mill, address).await?),
                None => None,
            };
            let signals = Signals::listen()?;
            signals.stops(&worker);
            let metrics = metrics.as_deref();
            // A place that can never be written is told at once, not once a second.
            if let Some(file) = metrics {
                let told = |error| format!("{}: {error}", file.display());
                tend::write(file, &mill.metrics().text()).map_err(told)?;
            }
            // A killed process says last what it knew a second ago; one that is ended by
            // the second signal, what it knows then.
            let last = (mill.clone(), metrics.map(Path::to_owned));
            signals.before_the_end(move || tend::write_metrics(&last.0, last.1.as_deref()));
            let worker = worker.start().await?;
            tracing::info!(processors, managed, "working; Ctrl-C stops");
            let ended = tokio::select! {
                () = tend::tend(&mill, &worker, control.as_deref(), metrics) => None,
                () = signals.asked() => None,
                report = worker.ended() => Some(report),
            };
            let report = match ended {
                Some(report) => report?,
                None => {
                    tracing::info!("stopping: nothing more is begun, what runs may finish");
                    // The second signal ends the process, whatever a handler does.
                    worker.stop().await?
                }
            };
            tend::write_metrics(&mill, metrics);
            drop(scraped);
            signals.ended(&report);
            let slow = match report.slow_cycles {
                0 => String::new(),
                slow => format!(", {slow} slow cycles"),
            };
            say!("{} done, {} came back{slow}", report.done, report.not_done)?;
            if !report.left.is_empty() {
                let left = &report.left;
                say!("left: {} still run, {} not on record", left.running, left.unsettled)?;
            }
        }
        Command::Show => show(&mill).await?,
    }
    Ok(mill.close().await?)
}

async fn show(mill: &Mill) -> Result<()> {
    say!(
        "{:<16}{:>7}{:>7}{:>9}{:>12}{:>8}{:>8}",
        "queue",
        "total",
        "ready",
        "delayed",
        "processing",
        "failed",
        "done"
    )?;
    for queue in mill.inspect().stats().await? {
        let name = format!("{} {}", queue.number, queue.queue.as_str());
        say!(
            "{name:<16}{:>7}{:>7}{:>9}{:>12}{:>8}{:>8}",
            queue.total(),
            queue.ready,
            queue.delayed,
            queue.processing,
            queue.failed,
            queue.counters.done
        )?;
    }
    Ok(())
}
