//! The programs that containers are to start: what their `config.json` or `process.json` (OCI runtime specification) gets
//! from us.

use crate::command_line::CommandLine;
use crate::error::{OciError, Result};
use crate::{baseline, delegate, foreign};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use tranship_node::Isa;
use tranship_node::unit::process::{Program, find_script};
use tranship_node::unit::state_area::StateArea;

/// Options that name a file with a process for `exec`.
const PROCESS: &[&str] = &["process", "p"];

/// `create` and `run`: the program of a bundle.
pub(crate) fn of_bundle(line: CommandLine) -> Result<CommandLine> {
    let path = line.bundle().join("config.json");
    // What is wrong with it the runtime says better.
    let Some(mut config) = read(&path) else { return Ok(line) };
    let before = config.clone();
    let root = config.pointer("/root/path").and_then(Value::as_str).unwrap_or("rootfs");
    let root = line.bundle().join(root);
    let Some(process) = config.get_mut("process") else { return Ok(line) };
    undo(process);
    let line = prepare(process, &root, line)?;
    if config != before {
        let new = path.with_extension("json.tranship");
        fs::write(&new, text(&config)?).map_err(OciError::at("writing", &new))?;
        fs::rename(&new, &path).map_err(OciError::at("writing", &path))?;
    }
    Ok(line)
}

/// `exec`: a program in a container that runs.
pub(crate) fn of_exec(line: CommandLine) -> Result<CommandLine> {
    let Some((container, words)) = line.executed() else { return Ok(line) };
    let pid = delegate::first_process(line.global(), container)?;
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    if let Some(mut process) = line.option(PROCESS).and_then(|path| read(Path::new(path))) {
        let line = prepare(&mut process, &root, line)?;
        let file = in_memory(&text(&process)?)?;
        return Ok(line.with_option(PROCESS, &file));
    }
    // The container's own environment, with the baseline in it, is what the program gets.
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(name) = words.first().filter(|_| StateArea::find(pid).is_ok_and(|area| area.is_some())) else {
        return Ok(line);
    };
    let Ok(program) = find_script(&root, name, &environment(pid), "/") else { return Ok(line) };
    let (line, number) = line.with_descriptor();
    foreign::lend_runtime(Isa::here()?, number)?;
    let words = foreign::command_line(number, &program.path, &words);
    Ok(line.with_program(words.into_iter().map(OsString::from).collect()))
}

/// The environment that a process was started with.
fn environment(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    text.split(|byte| *byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect()
}

/// Have `process` run in a container with that root directory.
fn prepare(process: &mut Value, root: &Path, line: CommandLine) -> Result<CommandLine> {
    let Some((program, words)) = find(process, root) else { return Ok(line) };
    if let Some(env) = process.get_mut("env").and_then(Value::as_array_mut) {
        baseline::apply(env, program.isa);
    }
    let here = Isa::here()?;
    if !foreign::is_foreign(program.isa, here)? {
        return Ok(line);
    }
    let (line, number) = line.with_descriptor();
    foreign::lend_runtime(here, number)?;
    process["args"] = foreign::command_line(number, &program.path, &words).into();
    Ok(line)
}

/// The program of `process`, and its command line. A program that is not there is the runtime's to complain of.
fn find(process: &Value, root: &Path) -> Option<(Program, Vec<String>)> {
    let strings = |name: &str| -> Vec<String> {
        let list = process.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let words = strings("args");
    let directory = process.get("cwd").and_then(Value::as_str).unwrap_or("/");
    let program = find_script(root, words.first()?, &strings("env"), directory).ok()?;
    Some((program, words))
}

/// Take away what an earlier start of the same bundle added.
fn undo(process: &mut Value) {
    let Some(args) = process.get_mut("args").and_then(Value::as_array_mut) else { return };
    let is_ours = args.get(1).is_some_and(|word| word == "--own-fd");
    if let Some(end) = args.iter().position(|word| word == "--").filter(|_| is_ours) {
        args.drain(..=end);
    }
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn text(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|why| OciError::io("writing JSON", why))
}

/// A path by which the runtime, which this process becomes, finds these bytes.
fn in_memory(bytes: &[u8]) -> Result<String> {
    let failed = |why: &dyn std::fmt::Display| OciError::io("passing on the process", why);
    let file = memfd_create(c"tranship-process", MemfdFlags::empty()).map_err(|why| failed(&why))?;
    let mut file = File::from(file);
    file.write_all(bytes).map_err(|why| failed(&why))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // Open until the runtime has read it.
    std::mem::forget(file);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_second_start_begins_where_the_first_one_did() {
        let words = ["redis-server".to_owned(), "--".to_owned(), "x".to_owned()];
        let mut process = json!({ "args": foreign::command_line(3, "/usr/bin/redis-server", &words) });
        undo(&mut process);
        assert_eq!(process["args"], json!(words));
        undo(&mut process);
        assert_eq!(process["args"], json!(words));
    }
}
