//! A mail server that keeps what it gets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quoted_printable::ParseMode;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::Result;

/// A mail that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Who it is from, by the envelope.
    pub from: String,
    /// Who it is to, by the envelope.
    pub to: String,
    /// Its headers.
    pub headers: String,
    /// Its text, decoded.
    pub text: String,
}

impl Received {
    /// A header's value.
    pub fn header(&self, wanted: &str) -> Option<&str> {
        let headers = self.headers.lines().filter_map(|line| line.split_once(": "));
        headers.into_iter().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct MailServer {
    address: SocketAddr,
    office: Arc<Office>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Office {
    received: watch::Sender<Vec<Received>>,
    connected: watch::Sender<usize>,
    open: watch::Sender<bool>,
    refuses: AtomicBool,
}

impl MailServer {
    /// Starts one.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let office = Arc::new(Office {
            received: watch::Sender::new(Vec::new()),
            connected: watch::Sender::new(0),
            open: watch::Sender::new(true),
            refuses: AtomicBool::new(false),
        });
        let serving = tokio::spawn(serve(listener, office.clone()));
        Ok(MailServer { address, office, serving })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Whether it refuses every receiver from now on.
    pub fn refuse(&self, refuses: bool) {
        self.office.refuses.store(refuses, Ordering::SeqCst);
    }

    /// Whoever connects is not greeted while it is not open.
    pub fn set_open(&self, open: bool) {
        self.office.open.send_replace(open);
    }

    /// How often somebody connected.
    pub fn connections(&self) -> usize {
        *self.office.connected.borrow()
    }

    /// Waits until somebody connected this often.
    pub async fn connected(&self, times: usize) {
        // The sender lives as long as this value does.
        let _ = self.office.connected.subscribe().wait_for(|count| *count >= times).await;
    }

    /// What came so far.
    pub fn received(&self) -> Vec<Received> {
        self.office.received.borrow().clone()
    }

    /// Tells of all mails, as more of them come.
    pub fn watch(&self) -> watch::Receiver<Vec<Received>> {
        self.office.received.subscribe()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, office: Arc<Office>) {
    let mut talking = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let office = office.clone();
        talking.spawn(async move { office.talk(BufReader::new(stream)).await.is_ok() });
        while talking.try_join_next().is_some() {}
    }
}

impl Office {
    async fn talk(&self, mut client: BufReader<TcpStream>) -> Result<()> {
        self.connected.send_modify(|count| *count += 1);
        self.open.subscribe().wait_for(|open| *open).await?;
        client.write_all(b"220 local sink\r\n").await?;
        let (mut from, mut to) = (String::new(), String::new());
        let mut line = String::new();
        while client.read_line(&mut line).await? > 0 {
            let command = line.trim_end().to_owned();
            line.clear();
            let verb = command.split([' ', ':']).next().unwrap_or("").to_uppercase();
            let reply = match verb.as_str() {
                "EHLO" => "250-local sink\r\n250 8BITMIME\r\n",
                "MAIL" => {
                    from = address(&command);
                    "250 ok\r\n"
                }
                "RCPT" if self.refuses.load(Ordering::SeqCst) => "550 no such mailbox here\r\n",
                "RCPT" => {
                    to = address(&command);
                    "250 ok\r\n"
                }
                "DATA" => {
                    client.write_all(b"354 end with a dot\r\n").await?;
                    let message = data(&mut client).await?;
                    let (headers, body) = message.split_once("\r\n\r\n").unwrap_or((&message, ""));
                    let (headers, text) = (headers.to_owned(), plain(body));
                    let mail = Received { from: from.clone(), to: to.clone(), headers, text };
                    self.received.send_modify(|received| received.push(mail));
                    "250 kept\r\n"
                }
                "QUIT" => {
                    client.write_all(b"221 bye\r\n").await?;
                    return Ok(());
                }
                _ => "502 not here\r\n",
            };
            client.write_all(reply.as_bytes()).await?;
        }
        Ok(())
    }
}

/// A quoted-printable body as it was written.
fn plain(body: &str) -> String {
    let bytes = quoted_printable::decode(body, ParseMode::Robust).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

/// What stands between the angle brackets.
fn address(command: &str) -> String {
    let inside = command.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inside.map_or_else(String::new, |(address, _)| address.to_owned())
}

/// A message up to the lone dot, without stuffed dots.
async fn data(client: &mut BufReader<TcpStream>) -> Result<String> {
    let mut message = String::new();
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).await? == 0 {
            return Err("hung up in the middle".into());
        }
        if line == ".\r\n" {
            return Ok(message);
        }
        message.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}
