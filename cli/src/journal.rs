//! Moves of containers that commands of this user have begun and of which none has seen the end: a file for each, there before any
//! node is asked for anything, and removed when it is known where the container runs.

use crate::error::{CliError, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tranship_node::container::migrate::How;

/// A move that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// What the container was called by whoever moved it.
    pub name: String,
    /// Its id, which it keeps.
    pub id: String,
    /// Name of the node that it was on.
    pub from: String,
    /// Name of the node that it was to go to.
    pub to: String,
    /// What it was to take with it.
    pub how: How,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
}

impl Journal {
    /// The journal in a directory, which need not exist yet.
    pub(crate) fn at(directory: PathBuf) -> Journal {
        Journal { directory }
    }

    /// Note a move, in the place of an earlier one of the same container.
    pub(crate) fn begin(&self, begun: &Begun) -> Result<()> {
        let path = self.file(&begun.id)?;
        let next = path.with_extension("next");
        let write = || {
            fs::create_dir_all(&self.directory)?;
            fs::write(&next, serde_json::to_vec(begun)?)?;
            fs::rename(&next, &path)
        };
        write().map_err(|why| CliError::io(format!("writing {}", path.display()), why))
    }

    /// The move of the container of this name or id.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Begun>> {
        let failed = |why| CliError::io(format!("listing {}", self.directory.display()), why);
        let entries = match fs::read_dir(&self.directory) {
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let begun = read(&path)?;
                if begun.name == name || begun.id == name {
                    return Ok(Some(begun));
                }
            }
        }
        Ok(None)
    }

    /// It is over.
    pub(crate) fn end(&self, begun: &Begun) -> Result<()> {
        let path = self.file(&begun.id)?;
        fs::remove_file(&path).map_err(|why| CliError::io(format!("removing {}", path.display()), why))
    }

    /// Engines' ids are hexadecimal; what is none names no file.
    fn file(&self, id: &str) -> Result<PathBuf> {
        match !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            true => Ok(self.directory.join(format!("{id}.json"))),
            false => Err(CliError::io("noting a move", format!("{id:?} is no container's id"))),
        }
    }
}

fn read(path: &Path) -> Result<Begun> {
    let failed = |why: &dyn std::fmt::Display| CliError::io(format!("reading {}", path.display()), why);
    let text = fs::read(path).map_err(|why| failed(&why))?;
    serde_json::from_slice(&text).map_err(|why| failed(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(name: &str, id: &str) -> Begun {
        let [from, to] = ["x86", "arm64"].map(str::to_owned);
        let (name, id) = (name.to_owned(), id.to_owned());
        Begun { name, id, from, to, how: How { keep_address: true, copy_volumes: false } }
    }

    #[test]
    fn moves_are_found_by_name_and_id_until_they_end() {
        let directory = std::env::temp_dir().join(format!("tranship-journal-{}", std::process::id()));
        let journal = Journal::at(directory.clone());
        assert_eq!(journal.find("cache").unwrap(), None);
        let (cache, site) = (begun("cache", "0af1"), begun("site", "77"));
        journal.begin(&cache).unwrap();
        journal.begin(&site).unwrap();
        assert_eq!(journal.find("cache").unwrap().as_ref(), Some(&cache));
        assert_eq!(journal.find("77").unwrap().as_ref(), Some(&site));
        journal.end(&cache).unwrap();
        assert_eq!(journal.find("0af1").unwrap(), None);
        for id in ["", "../x", "a/b", "."] {
            assert!(journal.begin(&begun("odd", id)).is_err());
        }
        fs::write(directory.join("1.json"), "{").unwrap();
        assert!(journal.find("cache").unwrap_err().to_string().contains("1.json"));
        fs::remove_dir_all(directory).unwrap();
    }
}
