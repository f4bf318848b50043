//! Programs that are supplied with code while they run: they must print what they print natively, and must have used
//! what came.
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is test code; a failure is a panic")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tranship_node::protocol::{MappedFile, ProcessId, ProcessLook};
use tranship_node::unit::supply::{Consumers, Image};
use tranship_service::{Counts, Result, Site, Supplier, Workshop, host_here};

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The runtime, built from the sources as they are.
fn runtime() -> &'static PathBuf {
    static RUNTIME: OnceLock<PathBuf> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let status = Command::new(top().join("runtime/build-blobs")).status().unwrap();
        assert!(status.success(), "runtime/build-blobs: {status}");
        top().join("dist/runtime-x86_64")
    })
}

/// An empty directory of a test's own.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("service").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// What became of a program that was supplied.
struct Run {
    output: String,
    counts: Counts,
    /// Instructions that were interpreted.
    interpreted: u64,
}

/// Run `program` translated, supplied from `kept` and with what is compiled meanwhile.
fn run(kept: &Path, program: &[&str]) -> Run {
    run_at(kept, program, Consumers::of)
}

/// The same for processes that are looked at in another way.
fn run_at<S: Site + 'static>(kept: &Path, program: &[&str], site: fn(u32) -> S) -> Run {
    let mut child = Command::new(runtime())
        .args(["--stats-fd", "2", "--"])
        .args(program)
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (pid, kept) = (child.id(), kept.to_owned());
    let service = std::thread::spawn(move || {
        let workshop = Workshop::new(host_here(), &kept);
        let mut errors = Vec::new();
        let mut supplier = Supplier::new(&workshop);
        supplier.serve(&mut site(pid), |error| errors.push(error.to_string()));
        workshop.keep(|error| errors.push(error.to_string()));
        assert_eq!(errors, Vec::<String>::new());
        supplier.counts()
    });
    let (mut output, mut said) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{program:?}: {status}, {said}");
    let interpreted = said.lines().find_map(|line| line.strip_prefix("interpreted_instructions "));
    Run { output, counts: service.join().unwrap(), interpreted: interpreted.unwrap().parse().unwrap() }
}

fn native(program: &[&str]) -> String {
    let output = Command::new(program[0]).args(&program[1..]).env_clear().output().unwrap();
    assert!(output.status.success(), "{program:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn hot_code_of_files_is_compiled_and_kept_for_the_next_run() {
    let kept = scratch("files");
    let program = ["/bin/busybox", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $i"];
    let first = run(&kept, &program);
    assert_eq!(first.output, native(&program));
    assert!(first.counts.objects > 0, "{:?}", first.counts);
    let mut latest = first.interpreted;
    // What is only called by what was interpreted shows in the run after that.
    for _ in 0..3 {
        let next = run(&kept, &program);
        assert_eq!(next.output, first.output);
        latest = next.interpreted;
    }
    assert!(
        latest * 5 < first.interpreted,
        "{latest} instructions interpreted, {} at first",
        first.interpreted
    );
}

/// A program that has a handler for faults and computes; `name` is the test's.
fn program_with_handler(name: &str) -> String {
    let program = scratch(name).join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/handler.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
    assert!(gcc.status().unwrap().success());
    program.into_os_string().into_string().unwrap()
}

/// It was right, and its loop was compiled, which has at least 30 million iterations of half a dozen instructions.
fn assert_loop_was_compiled(ours: &Run, program: &[&str]) {
    assert_eq!(ours.output, native(program));
    assert!(ours.counts.objects > 0, "{:?}", ours.counts);
    assert!(ours.interpreted < 100_000_000, "{} instructions interpreted", ours.interpreted);
}

#[test]
fn a_program_with_a_handler_for_faults_gets_exact_code() {
    let program = program_with_handler("handler");
    let program = [program.as_str(), "3000"];
    assert_loop_was_compiled(&run(&scratch("handler-kept"), &program), &program);
}

/// A process that is said to take the other kind of objects, too, once it has got one of its own.
struct BothKinds {
    consumers: Consumers,
    others: Vec<ProcessLook>,
    has_own: bool,
}

impl BothKinds {
    fn of(root: u32) -> BothKinds {
        BothKinds { consumers: Consumers::of(root), others: Vec::new(), has_own: false }
    }
}

impl Site for BothKinds {
    fn look(&mut self) -> Result<Option<Vec<ProcessLook>>> {
        let Some(mut looks) = self.consumers.look()? else { return Ok(None) };
        self.others.extend(looks.iter().map(|look| ProcessLook { exact: !look.exact, ..look.clone() }));
        if self.has_own {
            looks.append(&mut self.others);
        }
        Ok(Some(looks))
    }

    fn read_memory(&mut self, of: ProcessId, start: u64, end: u64) -> Result<Vec<u8>> {
        Site::read_memory(&mut self.consumers, of, start, end)
    }

    fn read_file(&mut self, of: ProcessId, file: &MappedFile) -> Result<Vec<u8>> {
        Site::read_file(&mut self.consumers, of, file)
    }

    fn supply(&mut self, process: ProcessId, image: &Image) -> Result<bool> {
        self.has_own = true;
        Site::supply(&mut self.consumers, process, image)
    }
}

#[test]
fn exact_code_stays_in_use_when_other_code_comes() {
    let program = program_with_handler("both");
    let program = [program.as_str(), "60000"];
    let ours = run_at(&scratch("both-kept"), &program, BothKinds::of);
    assert_loop_was_compiled(&ours, &program);
}

#[test]
fn generated_code_is_compiled_until_it_changes() {
    let program = scratch("generated").join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/generated.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source).arg("-lpthread");
    assert!(gcc.status().unwrap().success());
    let program = [program.to_str().unwrap()];
    let ours = run(&scratch("generated-kept"), &program);
    assert_eq!(ours.output, native(&program));
    assert!(ours.counts.objects > 0, "{:?}", ours.counts);
}

#[test]
fn a_just_in_time_compiler_s_code_is_compiled() {
    let script = "local function f(n) local s = 0 for i = 1, n do s = (s * 31 + i) % 1000003 end return s end \
                  local t = {} for i = 1, 300 do t[#t + 1] = f(20000 + i) end print(table.concat(t, ' '))";
    let program = ["/usr/bin/luajit", "-e", script];
    let ours = run(&scratch("luajit"), &program);
    assert_eq!(ours.output, native(&program));
    assert!(ours.counts.objects > 0, "{:?}", ours.counts);
}
