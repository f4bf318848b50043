//! Pages for readers: the index is complete and links lead somewhere.

use crate::tree;
use std::path::{Path, PathBuf};

/// Targets of a page's inline links, without anchors.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| target.split('#').next().unwrap_or(target)).collect()
}

fn pages() -> Vec<PathBuf> {
    tree::files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")).collect()
}

#[test]
fn the_index_lists_every_page() {
    let index = tree::read("docs/README.md");
    let listed = links(&index);
    let missing = pages().into_iter().filter(|page| {
        let inside = page.strip_prefix("docs").ok().and_then(Path::to_str);
        inside.is_some_and(|name| name != "README.md" && !listed.contains(&name))
    });
    tree::expect_none(missing.map(|p| format!("docs/README.md does not list {}", p.display())).collect());
}

#[test]
fn links_lead_somewhere() {
    let mut complaints = vec![];
    for page in pages() {
        let text = tree::read(&page);
        let local = links(&text).into_iter().filter(|link| !link.is_empty() && !link.contains("://"));
        let folder = tree::top().join(page.parent().unwrap());
        let dead = local.filter(|link| !folder.join(link).exists());
        complaints.extend(dead.map(|link| format!("{}: {link} does not exist", page.display())));
    }
    tree::expect_none(complaints);
}
