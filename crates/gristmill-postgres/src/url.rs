//! The store's URL: the driver's own, with a few words of ours among its
//! parameters.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use gristmill_core::{Result, StoreError};
use tokio_postgres::Config;

use crate::errors::told;
use crate::server::Server;
use crate::ssl_mode::SslMode;
use crate::{Options, PostgresUrl, StatementMode};

/// What a limit can be.
const LIMITS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);

/// Reads a URL: the server, and the options it says.
pub(crate) fn read(url: &str, mut options: Options) -> Result<(Server, Options)> {
    // Refuses what the driver would read otherwise than it is shown.
    let url = PostgresUrl::from_str(url)?;
    let url = url.reveal();
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let mut theirs = Vec::new();
    let (mut mode, mut root_cert, mut must_write) = (SslMode::default(), None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "schema" => options.schema = decoded(value)?,
            "sslmode" => mode = SslMode::read(&decoded(value)?)?,
            "sslrootcert" => root_cert = Some(decoded(value)?).filter(|path| !path.is_empty()),
            "listen_url" => options.listen_url = Some(decoded(value)?.parse()?),
            "statement_mode" => {
                options.statement_mode = match value {
                    "prepared" => StatementMode::Prepared,
                    "unnamed" => StatementMode::Unnamed,
                    _ => {
                        return Err(StoreError::invalid(format!(
                            "statement_mode is '{value}': it is prepared or unnamed"
                        )));
                    }
                };
            }
            "timeout" => options.timeouts.flow = limit(name, value)?,
            "heartbeat_timeout" => options.timeouts.heartbeat = limit(name, value)?,
            "operator_timeout" => options.timeouts.operator = limit(name, value)?,
            "long_timeout" => options.timeouts.long = limit(name, value)?,
            "target_session_attrs" => must_write = Some(writes(&decoded(value)?)?),
            "connections" => {
                options.connections = value
                    .parse()
                    .ok()
                    .filter(|n| (1..=1_000).contains(n))
                    .ok_or_else(|| fault("connections is a number from 1 to 1000"))?;
            }
            _ => theirs.push(pair),
        }
    }
    check_schema(&options.schema)?;
    let rest =
        if theirs.is_empty() { place.to_owned() } else { format!("{place}?{}", theirs.join("&")) };
    let mut config =
        Config::from_str(&rest).map_err(|e| fault(&format!("the store's URL: {}", told(&e))))?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(options.connect_timeout);
    }
    if config.get_application_name().is_none() {
        config.application_name("gristmill");
    }
    notice_a_dead_machine(&mut config, &theirs);
    Ok((Server::new(config, mode, root_cert.as_deref(), must_write)?, options))
}

/// Has the kernel look whether the other side is still there, unless the URL says
/// otherwise: its own defaults take hours. A frozen server does not show this way.
fn notice_a_dead_machine(config: &mut Config, theirs: &[&str]) {
    let said = |name: &str| theirs.iter().any(|pair| pair.split('=').next() == Some(name));
    if !said("keepalives_idle") {
        config.keepalives_idle(Duration::from_secs(10));
    }
    if !said("keepalives_interval") {
        config.keepalives_interval(Duration::from_secs(5));
    }
    if !said("keepalives_retries") {
        config.keepalives_retries(3);
    }
    if !said("tcp_user_timeout") {
        config.tcp_user_timeout(Duration::from_secs(15));
    }
}

/// How long something may take: `10s`, `500ms`, `2m`, `1h`, or seconds.
fn limit(name: &str, value: &str) -> Result<Duration> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at_checked(digits).unwrap_or((value, ""));
    let millis = match unit {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let read = number.parse().ok().zip(millis);
    let span = read.and_then(|(number, millis): (u64, u64)| number.checked_mul(millis));
    span.map(Duration::from_millis).filter(|span| LIMITS.contains(span)).ok_or_else(|| {
        fault(&format!("{name} is '{value}': it is a time from 100ms to 24h, such as 10s"))
    })
}

/// Whether only a server that takes writes will do, in libpq's words.
fn writes(word: &str) -> Result<bool> {
    match word {
        "any" => Ok(false),
        "read-write" | "primary" => Ok(true),
        _ => Err(fault(&format!(
            "target_session_attrs is '{word}': it is any or read-write, because a store is \
             written to"
        ))),
    }
}

/// The name stands unquoted in every statement: it must need no quotes.
fn check_schema(name: &str) -> Result<()> {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let first = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if plain && first && name.len() <= 50 && !name.starts_with("pg_") {
        return Ok(());
    }
    Err(fault(&format!(
        "'{name}' cannot be the schema: use small letters, digits and '_', at most 50"
    )))
}

fn decoded(value: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(fault("the store's URL: a % is not followed by two digits"));
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
    }
    String::from_utf8(bytes).map_err(|_| fault("the store's URL is not UTF-8"))
}

fn fault(words: &str) -> StoreError {
    StoreError::invalid(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_are_taken_out_and_the_drivers_stay() {
        let url = "postgres://me@host/db?schema=mill&statement_mode=unnamed&sslmode=disable\
                   &listen_url=postgres%3A%2F%2Fother%2Fdb&connections=3";
        let (server, options) = read(url, Options::default()).expect("a URL");
        assert_eq!(server.config().get_dbname(), Some("db"));
        assert_eq!(options.schema, "mill");
        assert_eq!(options.statement_mode, StatementMode::Unnamed);
        let listen_url = options.listen_url.expect("another place to listen at");
        assert_eq!(listen_url.reveal(), "postgres://other/db");
        assert_eq!(options.connections, 3);
    }

    #[test]
    fn what_cannot_be_is_told() {
        for url in [
            "postgres://h/d?schema=Mill",
            "postgres://h/d?schema=a.b",
            "postgres://h/d?statement_mode=fast",
            "postgres://h/d?connections=0",
            "postgres://h/d?timeout=0",
            "postgres://h/d?timeout=soon",
            "postgres://h/d?long_timeout=2d",
            "postgres://h/d?target_session_attrs=standby",
            "postgres://a,b,c:1,d/d?port=1,2",
            "postgres://h/d?unheard=1",
            "postgres://h/d?sslmode=always",
            "postgres://h/d?sslrootcert=ca.crt",
            "postgres://h/d?sslmode=prefer&sslrootcert=ca.crt",
            "postgres://h/d?sslmode=verify-ca",
            "postgres://h/d?sslmode=require&sslrootcert=system",
            "postgres://h/d?sslmode=verify-full&sslrootcert=no-such-file",
        ] {
            assert!(read(url, Options::default()).is_err(), "{url}");
        }
    }

    #[test]
    fn limits_are_times() {
        let url = "postgres://h/d?timeout=500ms&heartbeat_timeout=2&operator_timeout=3m\
                   &long_timeout=1h";
        let (_, options) = read(url, Options::default()).expect("a URL");
        let crate::Timeouts { heartbeat, flow, operator, long } = options.timeouts;
        let millis = [heartbeat, flow, operator, long].map(|limit| limit.as_millis());
        assert_eq!(millis, [2_000, 500, 180_000, 3_600_000]);
    }

    #[test]
    fn of_several_hosts_each_stands_alone_and_one_that_writes_is_wanted() {
        let read = |url: &str| read(url, Options::default()).expect("a URL").0;
        let several = read("postgres://me:secret@a,b:6000,c/db?connect_timeout=3");
        assert_eq!(several.hosts(), ["a:5432", "b:6000", "c:5432"]);
        assert!(several.must_write());
        let config = several.config();
        assert_eq!((config.get_user(), config.get_dbname()), (Some("me"), Some("db")));
        assert_eq!(config.get_password(), Some("secret".as_bytes()));
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert!(!read("postgres://a/db").must_write());
        assert!(read("postgres://a/db?target_session_attrs=read-write").must_write());
        assert!(!read("postgres://a,b/db?target_session_attrs=any").must_write());
    }

    #[test]
    fn a_dead_machine_is_noticed_unless_the_url_knows_better() {
        let read = |url: &str| read(url, Options::default()).expect("a URL").0;
        let ours = read("postgres://a/db");
        assert_eq!(ours.config().get_keepalives_idle(), Duration::from_secs(10));
        assert_eq!(ours.config().get_tcp_user_timeout(), Some(&Duration::from_secs(15)));
        let theirs = read("postgres://a/db?keepalives_idle=60&tcp_user_timeout=90");
        assert_eq!(theirs.config().get_keepalives_idle(), Duration::from_secs(60));
        assert_eq!(theirs.config().get_tcp_user_timeout(), Some(&Duration::from_secs(90)));
    }

    #[test]
    fn libpqs_words_for_tls_become_the_drivers() {
        use tokio_postgres::config::SslMode::{Disable, Prefer, Require};
        let mut words = vec![
            ("postgres://h/d", Prefer),
            ("postgres://h/d?sslmode=disable", Disable),
            ("postgres://h/d?sslmode=prefer", Prefer),
            // PostgreSQL does not encrypt a socket of its own machine.
            ("postgres://%2Frun%2Fpostgresql/d", Disable),
        ];
        if cfg!(feature = "tls") {
            words.extend([
                ("postgres://h/d?sslmode=require", Require),
                ("postgres://h/d?sslmode=verify-full", Require),
                ("postgres://h/d?sslmode=verify%2Dfull&sslrootcert=system", Require),
                ("postgres://%2Frun%2Fpostgresql/d?sslmode=verify-full", Disable),
            ]);
        }
        for (url, mode) in words {
            let (server, _) = read(url, Options::default()).expect(url);
            assert_eq!(server.config().get_ssl_mode(), mode, "{url}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn without_tls_nothing_is_sent_in_the_clear_that_should_not_be() {
        for mode in ["require", "verify-full"] {
            let url = format!("postgres://h/d?sslmode={mode}");
            let error = read(&url, Options::default()).expect_err("no TLS here").to_string();
            assert!(error.contains("feature `tls`"), "{error}");
        }
    }
}
