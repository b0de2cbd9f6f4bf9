//! A web server with the pages it is given.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::Result;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// GET or POST.
    pub method: String,
    /// The path.
    pub path: String,
    /// What was posted.
    pub body: String,
    /// What it identified itself with.
    pub authorization: Option<String>,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    site: Arc<Site>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Site {
    pages: Mutex<HashMap<String, (u16, String)>>,
    seen: watch::Sender<Vec<Seen>>,
    open: watch::Sender<bool>,
}

impl WebServer {
    /// Starts one without pages.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (seen, open) = (watch::Sender::new(Vec::new()), watch::Sender::new(true));
        let site = Arc::new(Site { pages: Mutex::default(), seen, open });
        let serving = tokio::spawn(serve(listener, site.clone()));
        Ok(WebServer { address, site, serving })
    }

    /// The address of a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What this path answers from now on. A redirect's text is where to.
    pub fn set(&self, path: &str, status: u16, text: impl Into<String>) {
        self.site.pages().insert(path.to_owned(), (status, text.into()));
    }

    /// Requests wait for their answer while it is not open.
    pub fn set_open(&self, open: bool) {
        self.site.open.send_replace(open);
    }

    /// What was asked for so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.site.seen.borrow().clone()
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.site.seen.borrow().iter().filter(|seen| seen.path == path).count()
    }

    /// Waits until there were this many requests.
    pub async fn asked_for(&self, times: usize) {
        // The sender lives as long as this value does.
        let _ = self.site.seen.subscribe().wait_for(|seen| seen.len() >= times).await;
    }

    /// Waits until a path was asked for this often.
    pub async fn asked(&self, path: &str, times: usize) {
        let mut seen = self.site.seen.subscribe();
        let enough =
            |seen: &Vec<Seen>| seen.iter().filter(|seen| seen.path == path).count() >= times;
        // The sender lives as long as this value does.
        let _ = seen.wait_for(enough).await;
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Site {
    fn pages(&self) -> MutexGuard<'_, HashMap<String, (u16, String)>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, mut stream: BufReader<TcpStream>) -> Result<()> {
        let request = read(&mut stream).await?;
        let path = request.path.clone();
        let posted = request.method == "POST";
        self.seen.send_modify(|seen| seen.push(request));
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open).await?;
        let page = self.pages().get(&path).cloned();
        // Whoever posts to a path without a page only wants to be heard.
        let missing = if posted { (202, String::new()) } else { (404, "not here".to_owned()) };
        let (status, text) = page.unwrap_or(missing);
        let location = if (300..400).contains(&status) {
            format!("Location: {text}\r\n")
        } else {
            String::new()
        };
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status} -\r\n{location}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(format!("{head}{text}").as_bytes()).await?;
        stream.shutdown().await?;
        Ok(())
    }
}

async fn serve(listener: TcpListener, site: Arc<Site>) {
    let mut answering = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let site = site.clone();
        answering.spawn(async move { site.answer(BufReader::new(stream)).await.is_ok() });
        while answering.try_join_next().is_some() {}
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Result<Seen> {
    let mut first = String::new();
    stream.read_line(&mut first).await?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut line, mut authorization) = (0, String::new(), None);
    while stream.read_line(&mut line).await? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.to_lowercase().starts_with("authorization:") {
            authorization = line.split_once(':').map(|(_, value)| value.trim().to_owned());
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Seen { method, path, body: String::from_utf8_lossy(&body).into_owned(), authorization })
}
