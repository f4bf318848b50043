//! Small programs, compiled by the system's C compiler, run natively and translated: same output, same exit code.
#![allow(clippy::unwrap_used, clippy::panic)]

mod harness;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tranship_translate::bitcode::Bitcode;
use tranship_translate::compile::{Host, Options, compile};
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;

const SYSTEM: &str = r#"
static long sys(long n, long a, long b, long c) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return r;
}
static void print(unsigned long v) {
    char text[24]; int at = 23;
    text[at] = '\n';
    do { text[--at] = '0' + v % 10; v /= 10; } while (v);
    sys(1, 1, (long)text + at, 24 - at);
}
long run(void);
__attribute__((force_align_arg_pointer)) void _start(void) { sys(60, run() & 0xff, 0, 0); for (;;); }
"#;

fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

fn build(name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (c, program) = (scratch(&format!("{name}.c")), scratch(name));
    std::fs::write(&c, format!("{SYSTEM}\n{source}")).unwrap();
    let status = Command::new("gcc")
        .args(["-O2", "-static", "-nostdlib", "-fno-stack-protector", "-fcf-protection=none"])
        .args(flags)
        .args(["-o".as_ref(), program.as_os_str(), c.as_os_str()])
        .status();
    assert!(status.unwrap().success(), "compiling {name}");
    program
}

/// In a process of its own, as the guest writes to the real standard output and may crash.
fn translated(program: &Path) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--include-ignored"])
        .env("TRANSLATED_PROGRAM", program)
        .output()
        .unwrap()
}

fn lines_of_numbers(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter(|l| !l.is_empty() && l.bytes().all(|b| b.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

fn check(name: &str, source: &str, flags: &[&str]) {
    let program = build(name, source, flags);
    let native = Command::new(&program).output().unwrap();
    let translated = translated(&program);
    assert_eq!(lines_of_numbers(&native), lines_of_numbers(&translated), "{name}: {translated:?}");
    assert_eq!(native.status.code(), translated.status.code(), "{name}: {translated:?}");
}

/// Not a test: the process that a test starts to run a translated program.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let Some(path) = std::env::var_os("TRANSLATED_PROGRAM") else { return };
    let elf = GuestElf::parse(std::fs::read(path).unwrap()).unwrap();
    let program = discover(&elf);
    let bitcode = Bitcode::lift(&elf, &program, 1, &());
    let bitcode = Bitcode::from_bytes(&bitcode.to_bytes()).unwrap();
    let object = compile(&bitcode, &Host::x86_64(), &Options::default(), &()).unwrap();
    let code = harness::Process::load(&elf, &object, &["program"]).run();
    std::process::exit(code);
}

#[test]
fn recursion() {
    check(
        "recursion",
        "__attribute__((noinline)) static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
         __attribute__((noinline)) static long ack(long m, long n) {
             return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1)); }
         long run(void) { volatile long n = 20; print(fib(n)); print(ack(2, n)); return 7; }",
        &[],
    );
}

#[test]
fn deep_recursion_outgrows_the_host_stack() {
    check(
        "deep",
        "__attribute__((noinline)) static long sum(volatile long *p, long n) {
             return n == 0 ? *p : sum(p, n - 1) + (n ^ *p); }
         long run(void) { volatile long n = 3; print(sum(&n, 60000)); return 0; }",
        &["-fno-optimize-sibling-calls"],
    );
}

#[test]
fn switches_and_function_pointers() {
    check(
        "switches",
        "static long a(long x) { return x + 1; } static long b(long x) { return x * 3; }
         static long c(long x) { return x ^ 5; }
         long (*volatile table[])(long) = {a, b, c, a};
         __attribute__((noinline)) static long pick(long op, long x) {
             switch (op) { case 0: return x + 7; case 1: return x * 13; case 2: return x - 100; case 3: return x ^ 77;
                 case 4: return x << 3; case 5: return ~x; case 6: return x / 3; case 7: return x % 5; default: return 1; } }
         long run(void) { unsigned long v = 1;
             for (long i = 0; i < 1000; i++) v = table[i % 4](v) + pick(i % 10, v & 0xffff);
             print(v); return 0; }",
        &[],
    );
}

/// The table may be written to, so that nothing is known of where the jumps go but the labels.
#[test]
fn computed_gotos() {
    let source = "static void *volatile where[8];
         __attribute__((noinline)) static unsigned long interpret(const unsigned char *code, unsigned long v) {
             static void *table[] = {&&add, &&mul, &&sub, &&xor, &&shl, &&not, &&loop, &&end};
             if (!where[0]) for (int i = 0; i < 8; i++) where[i] = table[i];
             unsigned long left = 5000; const unsigned char *at = code;
             #define NEXT goto *where[*at++ & 7]
             NEXT;
             add: v += *at; NEXT;
             mul: v *= *at | 1; NEXT;
             sub: v -= 3; NEXT;
             xor: v ^= v >> 7; NEXT;
             shl: v = v << 3 | v >> 61; NEXT;
             not: v = ~v; NEXT;
             loop: if (--left) at = code; NEXT;
             end: return v; }
         long run(void) { static const unsigned char code[] = {0, 1, 17, 9, 2, 3, 4, 5, 8, 3, 12, 1, 6, 7};
             print(interpret(code, 1)); print(interpret(code + 5, 2)); return 0; }";
    check("gotos", source, &[]);
    check("gotos-pie", source, &["-static-pie", "-fpie"]);
}

#[test]
fn position_independent() {
    check(
        "pie",
        "static long values[] = {3, 1, 4, 1, 5}; long *pointer = values + 2;
         long (*volatile self)(void);
         long run(void) { self = run; print(*pointer + values[0]); print(self == run); return 9; }",
        &["-static-pie", "-fpie"],
    );
}

#[test]
fn floats() {
    check(
        "floats",
        "static unsigned long bits(double d) { union { double d; unsigned long u; } x = {d}; return x.u; }
         long run(void) { volatile double zero = 0, big = 1e300; double s = 0;
             print(bits(zero / zero)); print(bits(-(zero / zero))); print(bits(big * big)); print(bits(big * big - big * big));
             for (int i = 1; i < 1000; i++) s += 1.0 / i - (float)i * 0.5f;
             print(bits(s)); print((long)(s * -1e3)); print((int)big == (int)0x80000000); print(zero / zero > 1);
             print(__builtin_sqrt(2) > 1.41); return 0; }",
        &[],
    );
}

#[test]
fn strings_and_division() {
    check(
        "strings",
        "long run(void) { static unsigned char from[300], to[400]; unsigned long h = 0;
             for (int i = 0; i < 300; i++) from[i] = i * 7;
             void *d = to + 3, *s = from; long n = 290;
             __asm__ volatile(\"rep movsb\" : \"+D\"(d), \"+S\"(s), \"+c\"(n) :: \"memory\");
             d = to + 8; s = to; n = 40;
             __asm__ volatile(\"rep movsq\" : \"+D\"(d), \"+S\"(s), \"+c\"(n) :: \"memory\");
             d = to + 350; n = 11;
             __asm__ volatile(\"rep stosw\" : \"+D\"(d), \"+c\"(n) : \"a\"(0x1234) : \"memory\");
             for (int i = 0; i < 400; i++) h = h * 31 + to[i];
             print(h); volatile long x = -1234567890123, y = 977; print(-(x / y)); print(-(x % y));
             unsigned __int128 w = (unsigned __int128)h << 20; unsigned long q, r;
             __asm__(\"divq %4\" : \"=a\"(q), \"=d\"(r) : \"0\"((unsigned long)w), \"1\"((unsigned long)(w >> 64)), \"r\"(h | 1ul << 63));
             print(q); print(r); return 0; }",
        &[],
    );
}
