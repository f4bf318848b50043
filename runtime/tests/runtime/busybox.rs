//! Debian's static busybox, unmodified.

use crate::run::{HOSTS, On, compare_in, scratch};
use std::fs;
use std::path::Path;

const BUSYBOX: &str = "/bin/busybox";

/// Numbers in a scrambled order.
fn numbers() -> Vec<u8> {
    let lines: Vec<String> = (0..2000_u64).map(|n| format!("{}\n", n * 7919 % 2003)).collect();
    lines.concat().into_bytes()
}

fn applets(on: On, commands: &[&[&str]]) {
    let directory = scratch(&format!("busybox-{on:?}"));
    for (name, text) in [("one", "first\n"), ("two", "second\nthird\n")] {
        fs::write(directory.join(name), text).unwrap();
    }
    for command in commands {
        compare_in(on, &directory, Path::new(BUSYBOX), command, &numbers());
    }
}

const APPLETS: &[&[&str]] = &[
    &["echo", "hello", "there"],
    &["false"],
    &["sha256sum"],
    &["sha1sum", "one", "two"],
    &["md5sum"],
    &["cksum"],
    &["sort", "-n"],
    &["sort", "-r"],
    &["uniq"],
    &["wc"],
    &["tail", "-n", "3"],
    &["od", "-x"],
    &["gzip", "-c"],
    &["bzip2", "-c"],
    &["ls", "-l", "--full-time", "/usr", "."],
    &["stat", "-c", "%s %a %h %U %F", "one", "."],
    &["cat", "one", "two", "nonexistent"],
    &["grep", "-c", "1"],
    &["sed", "s/1/x/g"],
    &["tr", "12", "ab"],
    &["dd", "bs=100", "count=3", "status=none"],
    &["find", "."],
    &["expr", "3", "*", "14"],
    &["factor", "123456789"],
    &["date", "-u", "-d", "@86400"],
    &["uname", "-m"],
    &["id"],
    &["pwd"],
    &["readlink", "/proc/self/exe"],
    &[
        "awk",
        "{ s += $1 * 1.5; a[$1 % 7] += sqrt($1) } END { for (i = 0; i < 7; i++) print a[i]; printf(\"%.9g\\n\", s) }",
    ],
    &[
        "awk",
        "BEGIN { for (i = 0; i < 9; i++) print i, sin(i), exp(i), log(i + 1), i / 3, int(i * 1.7), substr(\"abcdefghi\", i) }",
    ],
    &["cp", "nonexistent", "x"],
    &["no-such-applet"],
];

#[test]
fn applets_do_the_same_on_x86_64() {
    applets(On::X86_64, APPLETS);
}

#[test]
fn applets_do_the_same_on_aarch64() {
    applets(On::Aarch64, APPLETS);
}

fn shell(on: On, scripts: &[&str]) {
    let directory = scratch(&format!("shell-{on:?}"));
    for script in scripts {
        compare_in(on, &directory, Path::new(BUSYBOX), &["sh", "-c", script], &numbers());
    }
}

/// Pipes, jobs, traps: whatever forks but executes nothing.
#[test]
fn shell_scripts_do_the_same() {
    for on in HOSTS {
        shell(
            on,
            &[
                "x=$((3 * 4)); echo $x $# $0; set -- a b; echo $#",
                "seq 100 | sort -r | head -n 3",
                "yes | head -n 1000 | md5sum",
                "(echo a; echo b) | while read l; do echo \"<$l>\"; done",
                "trap 'echo got' USR1; kill -USR1 $$; echo after",
                "trap 'echo bye' EXIT; exit 3",
                "(exit 4) & wait $!; echo $?",
                "kill -TERM $$",
                "trap '' TERM; kill -TERM $$; echo still here",
                "echo text > file; read x < file; echo $x; rm file; ls",
            ],
        );
    }
}

/// execve: the runtime executes itself again. Emulated kernels have no way to do that.
#[test]
fn shell_scripts_execute_programs() {
    shell(
        On::X86_64,
        &[
            "sh -c 'kill -SEGV $$'; echo $?",
            "cat < /etc/hostname | wc -l; echo $(ls / | wc -l)",
            "for i in 1 2 3; do echo $i | cat; done",
            "timeout 0.2 sleep 5; echo $?",
            "find /etc/apt -type f | xargs cat | cksum",
            "printf '#!/bin/busybox sh\\necho script $0 $1\\n' > s; chmod +x s; ./s arg; rm s",
            "printf '#!/bin/busybox  sh  -x \\necho script $1\\n' > s; chmod +x s; ./s arg; rm s",
            "printf '#!/bin/busybox sh\\necho $0 $*\\n' > i; printf '#!./i x\\n' > s; chmod +x i s; ./s arg; rm i s",
            "printf '#!/nonexistent\\n' > s; chmod +x s; ./s; echo $?; printf '#!./s\\n' > s; ./s; echo $?; rm s",
            "mkfifo f; chmod +x f; ./f; echo $?; rm f",
            "sed s#/lib64/ld-#/lib64/no-# /bin/true > t; chmod +x t; ./t; echo $?; rm t",
            "printf 'echo no first line' > s; chmod +x s; ./s; rm s",
            "/etc/passwd; echo $?; /nonexistent; echo $?; /; echo $?",
            "exec /bin/busybox echo executed",
            "A=1 B=2 /bin/busybox env | sort",
            "/bin/busybox tr '\\0' ' ' < /proc/self/cmdline; cat /proc/self/comm",
            "trap '' USR1; sh -c 'kill -USR1 $$; echo ignored'",
        ],
    );
}

/// Programs with a program interpreter and shared libraries.
#[test]
fn dynamic_programs_run() {
    let directory = scratch("dynamic");
    let run =
        |program: &str, args: &[&str]| compare_in(On::X86_64, &directory, Path::new(program), args, b"");
    run("/bin/ls", &["-l", "/usr"]);
    run("/bin/bash", &["-c", "a=(1 2 3); echo ${a[@]} ${#a[@]}; /bin/true && echo yes"]);
}
