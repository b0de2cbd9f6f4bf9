//! The page about the command line lists every setting with its default.

use gristmill::{Settings, SettingsPatch};
use gristmill_contract::settings;

/// The cells of the page's table: a setting, and what is said of its default.
fn rows() -> Vec<(&'static str, &'static str)> {
    let page = include_str!("../../../../docs/cli.md");
    let table = page.lines().skip_while(|line| !line.starts_with("| setting | default |"));
    let lines = table.skip(2).take_while(|line| line.starts_with('|'));
    let cells = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    cells.flat_map(|cells| [(cells[1], cells[2]), (cells[3], cells[4])]).collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_page_lists_every_setting_with_its_default() {
    let mut told = Vec::new();
    for (name, default) in rows() {
        let Some(name) = quoted(name).first().copied() else { continue };
        let (group, parts) = name.split_once(": {").unwrap_or((name, ""));
        let parts = parts.trim_end_matches('}').split(", ");
        let names = parts.map(|part| [group, part].join(".").trim_end_matches('.').to_owned());
        for (name, value) in names.clone().zip(quoted(default)) {
            let mut patch = SettingsPatch::default();
            settings::set(&mut patch, &name, value).expect("a value that can be said");
            let mut said = Settings::default();
            patch.apply_to(&mut said);
            assert_eq!(said, Settings::default(), "{name} is not {value} by default");
        }
        told.extend(names);
    }
    for name in settings::NAMES {
        assert!(told.iter().any(|told| told == name), "the page lacks {name}");
    }
    assert_eq!(told.len(), settings::NAMES.len(), "{told:?}");
}
