//! Mails out through an SMTP server: in the clear for one on this machine, over TLS
//! and with a login for a provider's.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};

use crate::error::Result;
use crate::mail::Mail;

/// How long a mail may take.
const WITHIN: Duration = Duration::from_secs(30);

/// How what is said to the server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all.
    None,
    /// From STARTTLS on, which the server must offer: mostly on port 587.
    StartTls,
    /// From the first byte on: mostly on port 465.
    Tls,
}

/// Who we are to the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Where mails go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The server's host.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// How what is said to it is protected.
    pub encryption: Encryption,
    /// Who we are to it, if it asks.
    pub login: Option<Login>,
}

/// Sends mails through one server.
#[derive(Clone)]
pub struct Mailer {
    server: Server,
    from: Address,
    tls: Option<TlsParameters>,
    timeout: Duration,
}

impl fmt::Debug for Mailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailer").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Reads an address, which then carries no command.
///
/// # Errors
/// When it is none.
pub fn address(address: &str) -> Result<Address> {
    address.parse().map_err(|_| format!("'{address}' is not a mail address").into())
}

impl Mailer {
    /// Sends through this server, which must have a certificate of one of these
    /// authorities; of a public one where none are given.
    ///
    /// # Errors
    /// When there is no certificate in that file.
    pub fn new(server: Server, from: &str, authorities: Option<&Path>) -> Result<Self> {
        let tls = match server.encryption {
            Encryption::None => None,
            Encryption::StartTls | Encryption::Tls => Some(tls(&server.host, authorities)?),
        };
        Ok(Mailer { server, from: address(from)?, tls, timeout: WITHIN })
    }

    /// The same, with another patience for one mail.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Mailer { timeout, ..self }
    }

    /// Sends a mail. When this returns without an error, the server has it.
    ///
    /// # Errors
    /// When the server does not answer in time or refuses the mail.
    pub async fn send(&self, mail: &Mail) -> Result<()> {
        let (Server { host, port, .. }, timeout) = (&self.server, self.timeout);
        let sent = tokio::time::timeout(timeout, self.talk(mail)).await;
        let sent = sent.unwrap_or_else(|_| Err(format!("no answer within {timeout:?}").into()));
        sent.map_err(|error| format!("mail to {} by {host}:{port}: {error}", mail.to).into())
    }

    async fn talk(&self, mail: &Mail) -> Result<()> {
        let message: Message = mail.message(self.from.clone())?;
        let Server { host, port, encryption, login } = &self.server;
        let (name, place) = (ClientId::Domain("morning-deck".to_owned()), (host.as_str(), *port));
        let at_once = self.tls.clone().filter(|_| *encryption == Encryption::Tls);
        let connect = AsyncSmtpConnection::connect_tokio1(place, None, &name, at_once, None);
        let mut server = connect.await?;
        if let (Some(tls), Encryption::StartTls) = (&self.tls, encryption) {
            // An error where it is not offered: somebody between us may have taken it out.
            server.starttls(tls.clone(), &name).await?;
        }
        if let Some(Login { user, password }) = login {
            let login = Credentials::new(user.clone(), password.clone());
            server.auth(DEFAULT_MECHANISMS, &login).await?;
        }
        server.send(message.envelope(), &message.formatted()).await?;
        // The server has it; how it takes the farewell changes nothing.
        let _ = server.quit().await;
        Ok(())
    }
}

fn tls(host: &str, authorities: Option<&Path>) -> Result<TlsParameters> {
    let builder = TlsParameters::builder(host.to_owned());
    let builder = match authorities {
        None => builder.certificate_store(CertificateStore::WebpkiRoots),
        Some(path) => {
            let told = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
            let pem = std::fs::read(path).map_err(|error| told(&error))?;
            let own = Certificate::from_pem(&pem).map_err(|error| told(&error))?;
            builder.certificate_store(CertificateStore::None).add_root_certificate(own)
        }
    };
    Ok(builder.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_cannot_carry_a_command() {
        for good in ["reader@example.com", "a@localhost", "a+b@xn--exmple-cua.com"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["", "a", "@b", "a@", "a@b>\r\nDATA", "a b@c", "<a@b>", "a@b,c@d"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let login = Login { user: "ada".to_owned(), password: "hunter2".to_owned() };
        let server = Server {
            host: "localhost".to_owned(),
            port: 587,
            encryption: Encryption::StartTls,
            login: Some(login),
        };
        let mailer = Mailer::new(server, "ada@example.com", None).expect("a mailer");
        let shown = format!("{mailer:?}");
        assert!(shown.contains("ada") && !shown.contains("hunter2"), "{shown}");
    }
}
