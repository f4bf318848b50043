//! The CPU baseline in a container's environment.

use serde_json::Value;
use tranship_node::{Isa, baseline};

/// Have a program of machine `home` choose code that every node can run, unless `env` has an opinion of its own.
pub(crate) fn apply(env: &mut Vec<Value>, home: Isa) {
    add_missing(env, &baseline::environment(home));
}

fn add_missing(env: &mut Vec<Value>, settings: &[String]) {
    let name = |setting: &str| setting.split_once('=').map(|(name, _)| name.to_owned());
    for setting in settings {
        let has = |entry: &Value| entry.as_str().and_then(name) == name(setting);
        if !env.iter().any(has) {
            env.push(Value::String(setting.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_has_chosen_stays() {
        let mut env = vec![Value::from("PATH=/bin"), Value::from("GLIBC_TUNABLES=mine")];
        add_missing(&mut env, &["GLIBC_TUNABLES=ours".to_owned(), "OPENSSL_ia32cap=ours".to_owned()]);
        assert_eq!(env[1..], ["GLIBC_TUNABLES=mine", "OPENSSL_ia32cap=ours"].map(Value::from));
    }
}
