//! Notices of new items: a line in a log, or a POST to a webhook.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

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
    Webhook(Agent, Webhook),
}

impl Receiver {
    /// Tells it; when this returns without an error, it was told.
    pub(crate) fn tell(&self, notice: &Notice) -> Result<()> {
        match self {
            Receiver::Log(path) => append(path, &line(notice))
                .map_err(|error| format!("{}: {error}", path.display()).into()),
            Receiver::Webhook(agent, webhook) => post(agent, webhook, &json(notice))
                .map_err(|error| format!("{webhook}: {error}").into()),
        }
    }
}

/// Whether a log can be at that place: every notice would be a failure otherwise.
pub(crate) fn check_log(path: &Path) -> Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(format!("there is no folder '{}' for the log", folder.display()).into())
        }
        _ if path.is_dir() => Err(format!("{} is a folder, not a log", path.display()).into()),
        _ => Ok(()),
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

/// A server that takes a POST, by HTTP or HTTPS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Webhook(Uri);

impl std::fmt::Display for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Webhook {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("it is no address: {error}"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err("it must begin with http:// or https://".to_owned());
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let port = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
        if port.contains(':') && uri.port_u16().is_none() {
            return Err("its port is not a number".to_owned());
        }
        match uri.host() {
            None | Some("") => Err("it names no host".to_owned()),
            Some(_) => Ok(Webhook(uri)),
        }
    }
}

/// Who posts: certificates are checked against the list of public authorities, or
/// against a file of one's own.
pub(crate) fn agent(authorities: Option<&Path>) -> Result<Agent> {
    let mut tls = TlsConfig::builder();
    if let Some(path) = authorities {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let pem = std::fs::read(path).map_err(|error| told(&error))?;
        let mut own = Vec::new();
        for item in parse_pem(&pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|error| told(&error))? {
                own.push(certificate);
            }
        }
        if own.is_empty() {
            return Err(told(&"there is no certificate in it").into());
        }
        tls = tls.root_certs(RootCerts::new_with_certs(&own));
    }
    // A redirect would lose the POST, and a status is ours to judge.
    let config = Agent::config_builder()
        .timeout_connect(Some(CONNECT_WITHIN))
        .timeout_global(Some(ANSWER_WITHIN))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .tls_config(tls.build());
    Ok(config.build().into())
}

/// Posts the text; anything but a 2xx is an error.
fn post(agent: &Agent, webhook: &Webhook, json: &str) -> Result<()> {
    let answer = agent.post(&webhook.0).content_type("application/json").send(json)?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("the webhook answered {}", status.as_u16()).into()),
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
        for good in ["http://a:81/x", "https://a/x?y=z"] {
            assert_eq!(read(good), Ok(good.to_owned()));
        }
        for bad in ["a", "ftp://a/", "http://", "http://a:x/", "http://a/b c", "http://a/\r\n"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
