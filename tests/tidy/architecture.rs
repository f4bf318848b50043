//! ARCHITECTURE.md's code map against the workspace: folders and dependency arrows.

use crate::tree;
use std::collections::{BTreeMap, BTreeSet};

/// Folders that hold no crate and are therefore not in the code map, with what they hold.
const OTHER_FOLDERS: &[(&str, &str)] = &[
    (".ci", "what continuous integration runs"),
    ("docs", "pages for readers"),
    ("fuzz", "fuzz targets, a workspace of their own"),
    ("setup", "what a fresh machine needs"),
];

/// A row of the code map: the folders that a folder's crate may depend on; `None` for "all".
type CodeMap = BTreeMap<String, Option<BTreeSet<String>>>;

fn code_map() -> CodeMap {
    let text = tree::read("ARCHITECTURE.md");
    let section = text.split("## Code map").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: CodeMap = section.lines().filter(|line| line.starts_with("| `")).map(parse_row).collect();
    assert!(rows.len() > 5, "the code map has lost its rows or its form");
    rows
}

fn parse_row(line: &str) -> (String, Option<BTreeSet<String>>) {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [folder, _, arrows] = cells[..] else { panic!("a code map row has three cells: {line}") };
    let folder = folder.trim_matches('`').trim_end_matches('/').to_owned();
    let arrows = match arrows {
        "all" => None,
        "–" => Some(BTreeSet::new()),
        list => Some(list.split(", ").map(str::to_owned).collect()),
    };
    (folder, arrows)
}

/// Folder of every workspace crate, with the folders of the workspace crates it depends on. Dev-dependencies
/// do not count: a test may compare with anything.
fn workspace_arrows() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = tree::metadata(&[]);
    let members: Vec<&serde_json::Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| metadata["workspace_members"].as_array().unwrap().contains(&package["id"]))
        .collect();
    let arrows_of = |package: &serde_json::Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours = dependencies.filter(|d| d["path"].is_string() && d["kind"] != "dev");
        ours.map(|d| folder_of(d["path"].as_str().unwrap())).collect()
    };
    let crates = members.iter();
    crates.map(|p| (folder_of(manifest_folder(p)), arrows_of(p))).collect()
}

fn manifest_folder(package: &serde_json::Value) -> &str {
    package["manifest_path"].as_str().unwrap().strip_suffix("/Cargo.toml").unwrap()
}

fn folder_of(path: &str) -> String {
    let top = tree::top().to_str().unwrap();
    path.strip_prefix(top).unwrap_or_else(|| panic!("{path} lies outside")).trim_matches('/').to_owned()
}

#[test]
fn dependency_arrows_are_those_of_the_code_map() {
    let map = code_map();
    let mut complaints = vec![];
    for (from, arrows) in workspace_arrows() {
        match map.get(&from) {
            None => complaints.push(format!("crate in {from}/ is missing in ARCHITECTURE.md's code map")),
            Some(None) => {}
            Some(Some(allowed)) => complaints.extend(
                arrows
                    .difference(allowed)
                    .map(|to| format!("{from} depends on {to}; ARCHITECTURE.md does not")),
            ),
        }
    }
    tree::expect_none(complaints);
}

#[test]
fn every_folder_is_in_the_code_map() {
    let map = code_map();
    let known =
        |folder: &str| map.contains_key(folder) || OTHER_FOLDERS.iter().any(|(name, _)| *name == folder);
    let folders: BTreeSet<String> = tree::files()
        .iter()
        .filter(|path| path.components().count() > 1)
        .map(|path| path.components().next().unwrap().as_os_str().to_str().unwrap().to_owned())
        .collect();
    let unknown = folders.iter().filter(|folder| !known(folder));
    tree::expect_none(unknown.map(|f| format!("{f}/ is not in ARCHITECTURE.md's code map")).collect());
}

#[test]
fn crates_are_named_after_their_folder_and_not_published() {
    let metadata = tree::metadata(&[]);
    let mut complaints = vec![];
    for package in metadata["packages"].as_array().unwrap().iter().filter(|p| p["source"].is_null()) {
        let folder = folder_of(manifest_folder(package)).replace('/', "-");
        let expected = if folder == "cli" { "tranship".to_owned() } else { format!("tranship-{folder}") };
        if package["name"] != expected.as_str() {
            complaints.push(format!("{folder}/: is called {}, not {expected}", package["name"]));
        }
        if package["publish"].as_array().is_none_or(|registries| !registries.is_empty()) {
            complaints.push(format!("{folder}/: lacks `publish.workspace = true`"));
        }
    }
    tree::expect_none(complaints);
}
