//! A worker beside an axum application that puts tasks and serves its metrics:
//! `curl -d '{"to":"ada"}' -H 'content-type: application/json' localhost:8080/mail`.

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use gristmill::{Mill, TaskType, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl TaskType for Mail {
    const QUEUE: &'static str = "mails";
}

async fn send(mail: Mail) {
    println!("to {}", mail.to);
}

async fn put(State(mill): State<Mill>, Json(mail): Json<Mail>) -> Result<String, String> {
    let put = mill.put(mail).await.map_err(|error| error.to_string())?;
    Ok(format!("{}\n", put.id()))
}

async fn metrics(State(mill): State<Mill>) -> String {
    mill.metrics().text()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mill = Mill::open("memory:").await?;
    mill.declare::<Mail>().await?;
    let app = Router::new()
        .route("/mail", post(put))
        .route("/metrics", get(metrics))
        .with_state(mill.clone());
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("http://{}/metrics; Ctrl-C ends it", listener.local_addr()?);
    let worker = Worker::new(&mill).processors(4).handle(send).start().await?;
    axum::serve(listener, app)
        .with_graceful_shutdown(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
        .await?;
    println!("{} done", worker.stop().await?.done);
    Ok(())
}
