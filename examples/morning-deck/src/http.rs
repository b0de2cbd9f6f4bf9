//! A small HTTP client: one request a connection, within limits.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::Result;
use crate::url::{self, Url};

/// How often a server may send us elsewhere.
const REDIRECTS: usize = 5;

/// Fetches pages.
#[derive(Debug, Clone)]
pub struct Client {
    /// How long an answer may take, redirects included.
    pub timeout: Duration,
    /// Most bytes of an answer.
    pub most: usize,
}

impl Default for Client {
    fn default() -> Self {
        Client { timeout: Duration::from_secs(30), most: 4 << 20 }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it came from in the end.
    pub url: String,
    /// Its text.
    pub body: String,
}

impl Client {
    /// Fetches a page, and follows where it is said to be.
    ///
    /// # Errors
    /// When nobody answers in time, or anything but a 200 or a redirect.
    pub async fn get(&self, url: &str) -> Result<Page> {
        self.in_time(url, async {
            let mut url = url.to_owned();
            for _ in 0..=REDIRECTS {
                let answer = self.ask("GET", &url, "").await?;
                match (answer.status, answer.header("location")) {
                    (200, _) => return Ok(Page { url, body: answer.text() }),
                    (301 | 302 | 303 | 307 | 308, Some(link)) => url = url::join(&url, link),
                    (status, _) => return Err(format!("the server answered {status}").into()),
                }
            }
            Err(format!("more than {REDIRECTS} redirects").into())
        })
        .await
    }

    /// Posts JSON; anything but a 2xx is an error.
    ///
    /// # Errors
    /// When nobody answers in time, or not with success.
    pub async fn post_json(&self, url: &str, json: &str) -> Result<()> {
        self.in_time(url, async {
            match self.ask("POST", url, json).await?.status {
                200..=299 => Ok(()),
                status => Err(format!("the server answered {status}").into()),
            }
        })
        .await
    }

    async fn in_time<T>(&self, url: &str, ask: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.timeout;
        match tokio::time::timeout(limit, ask).await {
            Ok(answer) => answer.map_err(|error| format!("{url}: {error}").into()),
            Err(_) => Err(format!("{url}: no answer within {limit:?}").into()),
        }
    }

    async fn ask(&self, method: &str, url: &str, json: &str) -> Result<Answer> {
        let url: Url = url.parse()?;
        let mut stream = TcpStream::connect((url.host.as_str(), url.port)).await?;
        let mut request = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: morning-deck\r\nConnection: close\r\n",
            url.path,
            url.authority()
        );
        if method == "POST" {
            let length = json.len();
            request += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        stream.write_all(format!("{request}\r\n{json}").as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.take(self.most as u64 + 1).read_to_end(&mut bytes).await?;
        if bytes.len() > self.most {
            return Err(format!("the answer has more than {} bytes", self.most).into());
        }
        Answer::read(&bytes)
    }
}

/// An answer, whole.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Result<Self> {
        let cut = || "the answer is cut off";
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(cut)?;
        let (head, body) = bytes.split_at(end + 4);
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or("").split_whitespace();
        let status = match (first.next(), first.next().map(str::parse)) {
            (Some(version), Some(Ok(status))) if version.starts_with("HTTP/1.") => status,
            _ => return Err("this is not an answer of HTTP/1".into()),
        };
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let mut answer = Answer { status, headers: headers.collect(), body: Vec::new() };
        answer.body = if answer.header("transfer-encoding").is_some_and(|e| e.contains("chunked")) {
            unchunk(body)?
        } else if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse()?;
            body.get(..length).ok_or_else(cut)?.to_vec()
        } else {
            body.to_vec()
        };
        Ok(answer)
    }

    fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Joins a chunked body.
fn unchunk(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let cut = "the answer's chunks are cut off";
        let end = rest.windows(2).position(|two| two == b"\r\n").ok_or(cut)?;
        let (size, after) = rest.split_at(end);
        let size = String::from_utf8_lossy(size);
        let size = size.split(';').next().unwrap_or("").trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| "a chunk has no size")?;
        if size == 0 {
            return Ok(body);
        }
        let chunk = after.get(2..).and_then(|after| after.get(..size)).ok_or(cut)?;
        body.extend_from_slice(chunk);
        rest = after.get(size + 4..).ok_or(cut)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::WebServer;

    fn read(answer: &str) -> Result<(u16, String)> {
        Answer::read(answer.as_bytes()).map(|answer| (answer.status, answer.text()))
    }

    #[test]
    fn answers_are_read_in_every_way_they_come() {
        let ok = (200, "hello".to_owned());
        for text in [
            "HTTP/1.0 200 OK\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        ] {
            assert_eq!(read(text).expect(text), ok);
        }
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhe",
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhe\r\n",
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhe\r\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    fn client() -> Client {
        Client { timeout: Duration::from_secs(60), ..Client::default() }
    }

    #[tokio::test]
    async fn redirects_are_followed_but_not_in_circles() {
        let server = WebServer::start().await.expect("a server");
        server.set("/a/old", 301, "../new?x=1");
        server.set("/new?x=1", 200, "here");
        let page = client().get(&server.url("/a/old")).await.expect("a page");
        assert_eq!((page.url, page.body.as_str()), (server.url("/new?x=1"), "here"));
        server.set("/round", 302, "/round");
        let error = client().get(&server.url("/round")).await.expect_err("a circle").to_string();
        assert!(error.contains("more than 5 redirects"), "{error}");
        server.set("/away", 302, "https://example.com/");
        let error = client().get(&server.url("/away")).await.expect_err("no TLS").to_string();
        assert!(error.contains("plain http only"), "{error}");
    }

    #[tokio::test]
    async fn an_answer_that_is_late_large_or_none_is_an_error() {
        let server = WebServer::start().await.expect("a server");
        server.set("/", 200, "x".repeat(2_000));
        let url = server.url("/");
        let small = Client { most: 1_000, ..client() };
        let error = small.get(&url).await.expect_err("too large").to_string();
        assert!(error.contains("more than 1000 bytes"), "{error}");
        server.set_open(false);
        let hasty = Client { timeout: Duration::from_millis(50), ..client() };
        let error = hasty.get(&url).await.expect_err("too late").to_string();
        assert!(error.contains("no answer within 50ms"), "{error}");
        drop(server);
        let error = client().get(&url).await.expect_err("nobody").to_string();
        assert!(error.starts_with(&url), "{error}");
    }
}
