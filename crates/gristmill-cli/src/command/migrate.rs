//! `migrate`: brings the store's schema to the newest version.

use gristmill::StoreUrl;
use serde_json::json;

use super::Session;
use crate::failure::{Exit, Failure};
use crate::progress;
use crate::store::Missing;

/// Make the schema or bring it up to date, or only show how it is made.
#[derive(Debug)]
pub(crate) struct Migrate {
    pub(crate) print: bool,
    /// The roles of SQL clients too.
    pub(crate) roles: bool,
}

impl Migrate {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let StoreUrl::Postgres(shown) = session.url() else {
            return self.by_opening(session).await;
        };
        let url = shown.reveal();
        if self.print {
            let script = if self.roles {
                gristmill::postgres::roles_for(url)?
            } else {
                gristmill::postgres::migrations_for(url)?
            };
            return session.output.line(script.trim_end());
        }
        let bar = progress::looking("bringing the schema up to date");
        let (from, to) = gristmill::postgres::versions(url).await?;
        // Also when there is nothing to do: whoever asks wants to know that the
        // store opens.
        session.open(Missing::Create).await?.close().await?;
        // What somebody removed or changed by hand stands again.
        let restored = gristmill::postgres::restore(url).await?;
        if self.roles {
            gristmill::postgres::make_roles(url).await?;
        }
        bar.finish_and_clear();
        let mut words = match from {
            0 => format!("made the schema of {shown}, version {to}"),
            _ if from == to => format!("the schema of {shown} is up to date, version {to}"),
            _ => format!("brought the schema of {shown} from version {from} to {to}"),
        };
        if !restored.is_empty() {
            words += &format!("; made again: {}", restored.join(", "));
        }
        if self.roles {
            words += "; its roles stand";
        }
        let all = json!({ "from": from, "to": to, "restored": restored, "roles": self.roles });
        session.output.either(&all, words)
    }

    /// Other stores bring themselves up to date whenever they are opened.
    async fn by_opening(self, session: &Session) -> Result<(), Failure> {
        if self.print || self.roles {
            let message = "only a PostgreSQL store has a schema to print, and roles";
            return Err(Failure::new(Exit::Wrong, "not_supported", message));
        }
        let bar = progress::looking("bringing the store up to date");
        session.open(Missing::Fail).await?.close().await?;
        bar.finish_and_clear();
        let words = format!("{} is up to date: it is whenever it is opened", session.url());
        session.output.either(&json!({ "from": null, "to": null }), words)
    }
}
