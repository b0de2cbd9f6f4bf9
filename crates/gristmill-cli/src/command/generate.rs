//! `generate`: a contract's code, written where the project wants it.

use std::path::PathBuf;

use gristmill_contract::generate::{self, Place};
use serde_json::json;

use super::Session;
use super::contract::open;
use crate::args::{GenerateArgs, Language};
use crate::failure::{Exit, Failure};

/// Generate code.
#[derive(Debug)]
pub(crate) struct Generate {
    files: Vec<PathBuf>,
    out: PathBuf,
    check: bool,
    lang: Language,
}

impl Generate {
    pub(crate) fn meant(args: GenerateArgs) -> Self {
        Generate { files: args.files, out: args.out, check: args.check, lang: args.lang }
    }

    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let contract = open(&self.files)?;
        let names: Vec<&str> =
            self.files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        let stem = self.files.first().and_then(|file| file.file_stem()?.to_str());
        // A module's name: queues-v2.yaml is `mod queues_v2`.
        let stem = gristmill_contract::naming::snake_case(stem.unwrap_or("queues"));
        let (code, ending) = match self.lang {
            Language::Rust => (generate::rust(&contract, &names, Place::File), "rs"),
            Language::Typescript => (generate::typescript(&contract, &names), "ts"),
            Language::Python => (generate::python(&contract, &names), "py"),
        };
        let file = self.out.join(format!("{stem}.{ending}"));
        let shown = file.display().to_string();
        let there = std::fs::read_to_string(&file).ok();
        let same = there.as_deref() == Some(code.as_str());
        if self.check && !same {
            return Err(Failure::new(
                Exit::Refused,
                "out_of_date",
                format!("{shown} is not what the contract says: run 'gristmill generate' again"),
            ));
        }
        if !same {
            std::fs::create_dir_all(&self.out).map_err(|error| Failure::io(&shown, &error))?;
            std::fs::write(&file, code).map_err(|error| Failure::io(&shown, &error))?;
        }
        let what = if same { "up to date" } else { "written" };
        session
            .output
            .either(&json!({ "file": shown, "written": !same }), format_args!("{shown} is {what}"))
    }
}
