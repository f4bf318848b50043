//! A container's bundle: what its `config.json` (OCI runtime specification) gets from us.

use crate::error::{OciError, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tranship_node::{Isa, baseline};

/// Have the container's programs choose code that every node can run, unless its environment has an opinion of its own.
pub(crate) fn apply_baseline(bundle: &Path) -> Result<()> {
    let path = bundle.join("config.json");
    // What is wrong with it the runtime says better.
    let Ok(text) = fs::read(&path) else { return Ok(()) };
    let Ok(mut config) = serde_json::from_slice::<Value>(&text) else { return Ok(()) };
    let Some(env) = config.pointer_mut("/process/env").and_then(Value::as_array_mut) else { return Ok(()) };
    let settings = baseline::environment(Isa::here()?);
    if add_missing(env, &settings) {
        let new = bundle.join("config.json.tranship");
        let text = serde_json::to_vec(&config).map_err(OciError::at("writing", &new))?;
        fs::write(&new, text).map_err(OciError::at("writing", &new))?;
        fs::rename(&new, &path).map_err(OciError::at("writing", &path))?;
    }
    Ok(())
}

/// Add those of `settings` whose variables `env` does not have. Whether there were any.
fn add_missing(env: &mut Vec<Value>, settings: &[String]) -> bool {
    let name = |setting: &str| setting.split_once('=').map(|(name, _)| name.to_owned());
    let before = env.len();
    for setting in settings {
        let has = |entry: &Value| entry.as_str().and_then(name) == name(setting);
        if !env.iter().any(has) {
            env.push(Value::String(setting.clone()));
        }
    }
    env.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_has_chosen_stays() {
        let mut env = vec![Value::from("PATH=/bin"), Value::from("GLIBC_TUNABLES=mine")];
        let settings = ["GLIBC_TUNABLES=ours".to_owned(), "OPENSSL_ia32cap=ours".to_owned()];
        assert!(add_missing(&mut env, &settings));
        assert_eq!(env[1..], ["GLIBC_TUNABLES=mine", "OPENSSL_ia32cap=ours"].map(Value::from));
        assert!(!add_missing(&mut env, &settings));
    }
}
