//! The files of others that pages need are those that their authors published.

use std::fs;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::client::{Site, request};

#[test]
fn each_is_as_it_was_published() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/vendor");
    let list = fs::read_to_string(folder.join("vendored.json")).unwrap();
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let text = |one: &Value, name: &str| {
        one[name].as_str().unwrap_or_else(|| panic!("{name}: {one}")).to_owned()
    };
    let mut known = vec!["vendored.json".to_owned()];
    for one in &list {
        let (file, version) = (text(one, "file"), text(one, "version"));
        assert!(file.contains(&version), "{file} names its version");
        let digest = Sha256::digest(fs::read(folder.join(&file)).unwrap());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            text(one, "sha256"),
            "{file}: fetch {} {version} again",
            text(one, "package")
        );
        let licence = text(one, "licence_file");
        assert!(fs::read_to_string(folder.join(&licence)).unwrap().len() > 200, "{licence}");
        known.extend([file, licence]);
    }
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "{name} is not in vendored.json");
    }
}

#[tokio::test]
async fn files_are_served_to_be_kept() {
    let site = Site::with(&[]).await;
    let text = site.raw(&request("GET", "/", &[], "")).await.text;
    let mut bytes = text.len();
    let named = text.split(['"']).filter(|part| part.starts_with("./assets/"));
    let named: Vec<&str> = named.collect();
    assert!(named.len() >= 5, "{named:?}");
    for file in named {
        let path = file.trim_start_matches('.');
        let answer = site.raw(&request("GET", path, &[], "")).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains("immutable"), "{}", answer.head);
        bytes += answer.text.len();
    }
    assert!(bytes < 200_000, "a first visit takes {bytes} bytes");
}
