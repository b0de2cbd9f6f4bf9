//! Pages and documents over HTTP and HTTPS, within limits.

use std::path::Path;
use std::time::Duration;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Error, ResponseExt as _};

use crate::error::Result;

/// How often a server may send us elsewhere.
const REDIRECTS: u32 = 5;

/// Who asks. Some servers answer nobody who does not say.
const NAME: &str = concat!("morning-deck/", env!("CARGO_PKG_VERSION"));

/// Fetches pages.
#[derive(Debug, Clone)]
pub struct Client {
    /// How long an answer may take, redirects included.
    pub timeout: Duration,
    /// Most bytes of an answer.
    pub most: usize,
    agent: Agent,
}

impl Default for Client {
    fn default() -> Self {
        Client::over(TlsConfig::default())
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
    fn over(tls: TlsConfig) -> Self {
        let config = Agent::config_builder()
            .user_agent(NAME)
            .max_redirects(REDIRECTS)
            .http_status_as_error(false)
            .tls_config(tls);
        let agent = config.build().into();
        Client { timeout: Duration::from_secs(30), most: 4 << 20, agent }
    }

    /// One that believes in the authorities of this file alone, instead of the public
    /// ones.
    ///
    /// # Errors
    /// When there is none in it.
    pub fn with_authorities(path: &Path) -> Result<Self> {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let pem = std::fs::read(path).map_err(|error| told(&error))?;
        let mut authorities = Vec::new();
        for item in parse_pem(&pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|error| told(&error))? {
                authorities.push(certificate);
            }
        }
        if authorities.is_empty() {
            return Err(told(&"there is no certificate in it").into());
        }
        let roots = RootCerts::new_with_certs(&authorities);
        Ok(Client::over(TlsConfig::builder().root_certs(roots).build()))
    }

    /// Fetches a page, and follows where it is said to be.
    ///
    /// # Errors
    /// When nobody answers in time, or anything but a 200 or a redirect.
    pub async fn get(&self, url: &str) -> Result<Page> {
        self.apart(url, |client, url| {
            let ask = client.agent.get(url).config().timeout_global(Some(client.timeout)).build();
            let mut answer = ask.call()?;
            if answer.status().as_u16() != 200 {
                return Ok(Err(answer.status().as_u16()));
            }
            let url = answer.get_uri().to_string();
            let most = client.most as u64;
            let body = answer.body_mut().with_config().limit(most).lossy_utf8(true);
            Ok(Ok(Page { url, body: body.read_to_string()? }))
        })
        .await
    }

    /// Posts JSON, with this key if there is one; anything but a 2xx is an error.
    ///
    /// # Errors
    /// When nobody answers in time, or not with success.
    pub async fn post_json(&self, url: &str, key: Option<&str>, json: &str) -> Result<()> {
        let (key, json) = (key.map(|key| format!("Bearer {key}")), json.to_owned());
        self.apart(url, move |client, url| {
            let ask = client.agent.post(url).config().timeout_global(Some(client.timeout)).build();
            let ask = ask.content_type("application/json");
            let ask = match &key {
                Some(key) => ask.header("Authorization", key),
                None => ask,
            };
            let status = ask.send(&json)?.status();
            Ok(if status.is_success() { Ok(()) } else { Err(status.as_u16()) })
        })
        .await
    }

    /// Asks on a thread where waiting blocks nobody else.
    async fn apart<T: Send + 'static>(
        &self,
        url: &str,
        ask: impl FnOnce(&Client, &str) -> Result<Result<T, u16>, Error> + Send + 'static,
    ) -> Result<T> {
        let (client, url) = (self.clone(), url.to_owned());
        let asked = tokio::task::spawn_blocking(move || {
            let answer = ask(&client, &url);
            let why = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(status)) => format!("the server answered {status}"),
                Err(Error::TooManyRedirects) => format!("more than {REDIRECTS} redirects"),
                Err(Error::Timeout(_)) => format!("no answer within {:?}", client.timeout),
                Err(Error::BodyExceedsLimit(most)) => {
                    format!("the answer has more than {most} bytes")
                }
                Err(error) => error.to_string(),
            };
            Err(format!("{url}: {why}"))
        });
        Ok(asked.await??)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::WebServer;

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
