//! Notices of new items: a line in a log, or a POST to a webhook.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::Result;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// What is told of a new item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The task that tells it.
    pub(crate) task: i64,
    pub(crate) item: i64,
    pub(crate) name: String,
    pub(crate) price_cents: i64,
}

/// Who is told.
#[derive(Debug, Clone)]
pub(crate) enum Receiver {
    /// A file that grows by a line.
    Log(PathBuf),
    /// A server that takes a POST.
    Webhook(Webhook),
}

impl Receiver {
    /// Tells it; when this returns without an error, it was told.
    pub(crate) fn tell(&self, notice: &Notice) -> Result<()> {
        match self {
            Receiver::Log(path) => append(path, &line(notice))
                .map_err(|error| format!("{}: {error}", path.display()).into()),
            Receiver::Webhook(webhook) => {
                webhook.post(&json(notice)).map_err(|error| format!("{webhook}: {error}").into())
            }
        }
    }
}

/// The notice as a line. A name must not be able to begin another one.
fn line(notice: &Notice) -> String {
    let Notice { task, item, name, price_cents } = notice;
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("new item {item}: {name} at {} (task {task})\n", money(*price_cents))
}

fn json(notice: &Notice) -> String {
    let Notice { task, item, name, price_cents } = notice;
    serde_json::json!({"task": task, "item": item, "name": name, "price_cents": price_cents})
        .to_string()
}

/// Cents as a price.
pub(crate) fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Appends in one write, so that lines of two processes do not mix, and lets
/// the disk have it: the task is deleted right after.
fn append(path: &PathBuf, line: &str) -> std::io::Result<()> {
    let mut log = OpenOptions::new().create(true).append(true).open(path)?;
    log.write_all(line.as_bytes())?;
    log.sync_data()
}

/// A plain HTTP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    host: String,
    port: u16,
    path: String,
}

impl std::fmt::Display for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}:{}{}", self.host, self.port, self.path)
    }
}

impl FromStr for Webhook {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").ok_or("it must begin with http://")?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => {
                (host, port.parse().map_err(|_| format!("'{port}' is not a port"))?)
            }
            None => (authority, 80),
        };
        if host.is_empty() || url.contains(|c: char| c.is_control() || c == ' ') {
            return Err("it names no host, or has a blank in it".to_owned());
        }
        Ok(Webhook { host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl Webhook {
    /// Posts the text; anything but a 2xx is an error.
    fn post(&self, json: &str) -> Result<()> {
        let address = (self.host.as_str(), self.port)
            .to_socket_addrs()?
            .next()
            .ok_or("the host has no address")?;
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        let Webhook { host, port, path } = self;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{json}",
            json.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        match answer.split_whitespace().nth(1) {
            Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
            Some(status) => Err(format!("the webhook answered {status}").into()),
            None => Err("the webhook closed the connection without an answer".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> Notice {
        Notice { task: 3, item: 7, name: "Lamp\nnew item 8".to_owned(), price_cents: 1205 }
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(line(&notice()), "new item 7: Lamp new item 8 at 12.05 (task 3)\n");
        assert!(json(&notice()).contains(r#""name":"Lamp\nnew item 8""#));
    }

    #[test]
    fn lines_are_appended() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Receiver::Log(folder.path().join("log"));
        for _ in 0..2 {
            log.tell(&notice()).expect("told");
        }
        let text = std::fs::read_to_string(folder.path().join("log")).expect("a log");
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn addresses_are_read() {
        let read = |url: &str| url.parse::<Webhook>().map(|webhook| webhook.to_string());
        assert_eq!(read("http://a:81/x"), Ok("http://a:81/x".to_owned()));
        assert_eq!(read("http://a"), Ok("http://a:80/".to_owned()));
        for bad in ["a", "https://a", "http://", "http://a:x/", "http://a/b c", "http://a/\r\n"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
