//! What crossings there were: a file of a client's, one line of JSON per crossing, oldest first. Clients may append at the
//! same time.

use crate::error::{NodeError, Result};
use crate::migrate::Crossing;
use crate::record::UnitId;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// The file, which need not exist yet.
#[derive(Clone, Debug)]
pub struct History {
    path: PathBuf,
}

impl History {
    /// The history in `path`.
    pub fn at(path: PathBuf) -> History {
        History { path }
    }

    /// Add a crossing.
    pub fn add(&self, crossing: &Crossing) -> Result<()> {
        let mut line = serde_json::to_vec(crossing).map_err(NodeError::at("writing", &self.path))?;
        line.push(b'\n');
        // One write of a file opened for appending: lines of two clients do not mix.
        let add = || File::options().create(true).append(true).open(&self.path)?.write_all(&line);
        add().map_err(NodeError::at("writing", &self.path))
    }

    /// All crossings, or those of one unit.
    pub fn crossings(&self, unit: Option<&UnitId>) -> Result<Vec<Crossing>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(vec![]),
            Err(why) => return Err(NodeError::at("reading", &self.path)(why)),
        };
        let parsed: serde_json::Result<Vec<Crossing>> = text.lines().map(serde_json::from_str).collect();
        let mut crossings = parsed.map_err(NodeError::at("reading", &self.path))?;
        crossings.retain(|crossing| unit.is_none_or(|unit| crossing.unit == *unit));
        Ok(crossings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossing(unit: &str, bytes: u64) -> Crossing {
        Crossing {
            unit: unit.parse().unwrap(),
            from: "here".to_owned(),
            to: "there".to_owned(),
            prepare_us: 1,
            quiesce_us: 2,
            dump_us: 3,
            recode_us: 4,
            transfer_us: 5,
            restore_us: 6,
            downtime_us: 7,
            bytes,
            prepared_bytes: 8,
        }
    }

    #[test]
    fn crossings_are_kept_in_order_and_found_by_unit() {
        let directory = std::env::temp_dir().join(format!("tranship-history-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let history = History::at(directory.join("history.jsonl"));
        assert_eq!(history.crossings(None).unwrap(), []);
        let all = [crossing("a", 1), crossing("b", 2), crossing("a", 3)];
        all.iter().for_each(|crossing| history.add(crossing).unwrap());
        assert_eq!(history.crossings(None).unwrap(), all);
        let b = "b".parse().unwrap();
        assert_eq!(history.crossings(Some(&b)).unwrap(), all[1..2]);
        fs::write(&history.path, "{\"unit\":\n").unwrap();
        assert!(history.crossings(None).unwrap_err().to_string().contains("history.jsonl"));
        fs::remove_dir_all(&directory).unwrap();
    }
}
