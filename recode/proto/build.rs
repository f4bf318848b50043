//! Generates the message types of CRIU's images from `criu/`, and of each how to find fields that it does not define.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut protos: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir("criu")? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "proto") {
            protos.push(path);
        }
    }
    protos.sort();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=criu");
    protobuf_codegen::Codegen::new().pure().include("criu").inputs(&protos).cargo_out_dir("criu").run()?;
    let generated = Path::new(&std::env::var("OUT_DIR")?).join("criu");
    for entry in std::fs::read_dir(generated)? {
        let path = entry?.path();
        let source = std::fs::read_to_string(&path)?;
        std::fs::write(&path, format!("{source}{}", searches(&source)?))?;
    }
    Ok(())
}

/// The implementations of `Search` for the messages that are defined in `source`.
fn searches(source: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut searches = String::new();
    for (index, definition) in source.split("pub struct ").enumerate().skip(1) {
        let (name, rest) = definition.split_once(" {\n").ok_or("a message without fields")?;
        let (fields, _) =
            rest.split_once("\n}\n").ok_or_else(|| format!("message {index} is in another one"))?;
        let fields = fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": "));
        write!(searches, "impl crate::Search for {name} {{ fn unknown_field(&self) -> Option<u32> {{")?;
        write!(searches, "crate::own(&self.special_fields)")?;
        for (field, _) in fields.filter(|(_, of)| has_messages(of)) {
            write!(searches, ".or_else(|| crate::Search::unknown_field(&self.{field}))")?;
        }
        writeln!(searches, "}} }}")?;
    }
    Ok(searches)
}

/// Whether a field of this Rust type is one message or many.
fn has_messages(of: &str) -> bool {
    let element = of.strip_prefix("::std::vec::Vec<").unwrap_or_default();
    let is_ours = element.starts_with("super::") || element.starts_with(|c: char| c.is_ascii_uppercase());
    of.starts_with("::protobuf::MessageField<") || is_ours
}
