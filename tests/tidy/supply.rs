//! deny.toml against Cargo.lock's crates: licences, sources, bans and duplicates. The file is in cargo-deny's
//! format; Debian 12 has no such package and building it takes longer than everything else that set-up does.

use crate::tree;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

fn policy() -> toml::Table {
    tree::read("deny.toml").parse().unwrap()
}

/// The strings of a list in the policy, or the `key` of its tables.
fn list(section: &str, name: &str, key: &str) -> BTreeSet<String> {
    let policy = policy();
    let items = policy[section][name].as_array().unwrap().iter();
    items.map(|item| item.get(key).unwrap_or(item).as_str().unwrap().to_owned()).collect()
}

fn metadata() -> Json {
    let targets = list("graph", "targets", "triple");
    tree::metadata(&targets.iter().map(String::as_str).collect::<Vec<_>>())
}

fn foreign_packages() -> Vec<Json> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.filter(|package| !package["source"].is_null()).cloned().collect()
}

fn label(package: &Json) -> String {
    format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap())
}

/// Whether an SPDX expression can be met with `allowed` licences. Brackets are understood around alternatives
/// in a conjunction, `(A OR B) AND C`, which is all that crates use.
fn licence_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ");
    let one = |name: &str| allowed.contains(name.trim_matches(['(', ')', ' ']));
    if expression.contains('(') {
        expression.split(" AND ").all(|part| part.split(" OR ").any(one))
    } else {
        expression.split(" OR ").any(|part| part.split(" AND ").all(one))
    }
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = BTreeSet::from(["MIT", "Unicode-3.0"].map(str::to_owned));
    for good in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(licence_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", ""] {
        assert!(!licence_allowed(bad, &allowed), "{bad}");
    }
}

#[test]
fn licences_are_allowed() {
    let allowed = list("licenses", "allow", "name");
    let licence = |package: &Json| package["license"].as_str().unwrap_or("").to_owned();
    let bad = foreign_packages().into_iter().filter(|p| !licence_allowed(&licence(p), &allowed));
    tree::expect_none(bad.map(|p| format!("{}: licence {:?}", label(&p), licence(&p))).collect());
}

#[test]
fn sources_are_known() {
    let registries = list("sources", "allow-registry", "name");
    let known = |package: &Json| {
        let source = package["source"].as_str().unwrap();
        source.strip_prefix("registry+").is_some_and(|registry| registries.contains(registry))
    };
    let bad = foreign_packages().into_iter().filter(|package| !known(package));
    tree::expect_none(bad.map(|p| format!("{}: comes from {}", label(&p), p["source"])).collect());
}

#[test]
fn no_banned_crate_and_no_wildcard() {
    let banned = list("bans", "deny", "name");
    let packages = foreign_packages();
    let bad = packages.iter().filter(|package| banned.contains(package["name"].as_str().unwrap()));
    let mut complaints: Vec<String> = bad.map(|p| format!("{}: banned in deny.toml", label(p))).collect();
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap().iter().filter(|p| p["source"].is_null()) {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let wild = dependencies.filter(|d| d["req"] == "*" && d["path"].is_null());
        complaints.extend(wild.map(|d| format!("{}: {} = \"*\"", label(package), d["name"])));
    }
    tree::expect_none(complaints);
}

#[test]
fn one_version_of_each_crate() {
    let excused = list("bans", "skip", "name");
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in foreign_packages() {
        versions.entry(package["name"].as_str().unwrap().to_owned()).or_default().push(label(&package));
    }
    let mut complaints = vec![];
    for (name, labels) in versions {
        match (labels.len() > 1, excused.contains(&name)) {
            (true, false) => complaints.push(format!("two versions: {}", labels.join(", "))),
            (false, true) => complaints.push(format!("{name}: one version, needs no `skip` in deny.toml")),
            _ => {}
        }
    }
    tree::expect_none(complaints);
}
