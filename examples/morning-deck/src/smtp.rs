//! A small SMTP client: one mail a connection.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::error::Result;
use crate::mail::Mail;

/// Longest reply line that is read.
const LONGEST_LINE: usize = 4_096;

/// Sends mails through one server.
#[derive(Debug, Clone)]
pub struct Mailer {
    /// The server's host.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// Who the mails are from.
    pub from: String,
    /// How long a mail may take.
    pub timeout: Duration,
}

/// Whether this can be an address in a command: one word with an @ in it.
///
/// # Errors
/// When it cannot.
pub fn check_address(address: &str) -> Result<()> {
    let odd = |c: char| c.is_control() || c.is_whitespace() || "<>,;".contains(c);
    match address.split_once('@') {
        Some((name, host)) if !name.is_empty() && !host.is_empty() && !address.contains(odd) => {
            Ok(())
        }
        _ => Err(format!("'{address}' is not a mail address").into()),
    }
}

impl Mailer {
    /// Sends a mail. When this returns without an error, the server has it.
    ///
    /// # Errors
    /// When the server does not answer in time or refuses the mail.
    pub async fn send(&self, mail: &Mail) -> Result<()> {
        let Mailer { host, port, timeout, .. } = self;
        let sent = tokio::time::timeout(*timeout, self.talk(mail)).await;
        let sent = sent.unwrap_or_else(|_| Err(format!("no answer within {timeout:?}").into()));
        sent.map_err(|error| format!("mail to {} by {host}:{port}: {error}", mail.to).into())
    }

    async fn talk(&self, mail: &Mail) -> Result<()> {
        check_address(&mail.to)?;
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let mut server = Server(BufReader::new(stream));
        server.expect(220).await?;
        server.say("EHLO morning-deck", 250).await?;
        server.say(&format!("MAIL FROM:<{}>", self.from), 250).await?;
        server.say(&format!("RCPT TO:<{}>", mail.to), 250).await?;
        server.say("DATA", 354).await?;
        server.say(&format!("{}.", stuffed(&mail.message(&self.from))), 250).await?;
        // The server has it; how it takes the farewell changes nothing.
        let _ = server.say("QUIT", 221).await;
        Ok(())
    }
}

/// A line that begins with a dot would end the mail: it gets another one.
fn stuffed(message: &str) -> String {
    let lines = message.split_inclusive("\r\n");
    lines
        .map(|line| if line.starts_with('.') { format!(".{line}") } else { line.to_owned() })
        .collect()
}

struct Server(BufReader<TcpStream>);

impl Server {
    async fn say(&mut self, line: &str, expected: u16) -> Result<()> {
        self.0.write_all(format!("{line}\r\n").as_bytes()).await?;
        self.expect(expected).await
    }

    /// Reads a reply, which may have several lines: `250-` goes on, `250 ` is
    /// the last.
    async fn expect(&mut self, expected: u16) -> Result<()> {
        loop {
            let mut line = String::new();
            let mut limited = tokio::io::AsyncReadExt::take(&mut self.0, LONGEST_LINE as u64);
            if limited.read_line(&mut line).await? == 0 {
                return Err("the server hung up".into());
            }
            let code = line.get(..3).and_then(|code| code.parse::<u16>().ok());
            match (code, line.as_bytes().get(3)) {
                (Some(code), _) if code != expected => {
                    return Err(format!("the server said: {}", line.trim_end()).into());
                }
                (Some(_), Some(b'-')) => {}
                (Some(_), _) => return Ok(()),
                (None, _) => return Err("the server does not speak SMTP".into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_stuffed() {
        assert_eq!(stuffed("a\r\n.\r\n..b\r\nc.\r\n"), "a\r\n..\r\n...b\r\nc.\r\n");
    }

    #[test]
    fn an_address_cannot_carry_a_command() {
        assert!(check_address("reader@example.com").is_ok());
        for bad in ["", "a", "@b", "a@", "a@b>\r\nDATA", "a b@c", "<a@b>", "a@b,c@d"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
