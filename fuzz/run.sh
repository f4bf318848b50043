#!/bin/bash
# fuzz/run.sh TARGET SECONDS: fuzz TARGET (a file of targets/) for SECONDS. Exits 1 on a crash, an input that takes
# longer than 10 s or more than 2 GiB, and names the file that has it. Seeds are made from this system's own
# files at every run; what was found to be interesting is kept in fuzz/target/corpus.
set -euo pipefail
cd "$(dirname "$0")"

target=${1:?TARGET} seconds=${2:?SECONDS}
corpus=target/corpus/$target seeds=target/seeds/$target findings=target/findings/$target

main() {
    mkdir -p "$corpus" "$seeds" "$findings"
    build
    "seeds_of_$target"
    "target/x86_64-unknown-linux-gnu/release/$target" "$corpus" "$seeds" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
        -artifact_prefix="$findings/" -print_final_stats=1 2>"$findings/log" || failed
    grep -E '^(stat::number_of_executed_units|stat::average_exec_per_sec|#[0-9]+.*DONE)' "$findings/log"
}

failed() {
    grep -A1 -E 'panicked at|ERROR: libFuzzer|Test unit written' "$findings/log" >&2
    echo "fuzz $target: failed; the input is in fuzz/$findings, run it with the target's binary" >&2
    exit 1
}

# Instrumented as LLVM's libFuzzer wants it; with a target triple, so that build scripts are not.
build() {
    local flags=(--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1
        -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares)
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="${flags[*]}" \
        cargo build -q --release --locked --target x86_64-unknown-linux-gnu --bin "$target"
}

# Programs of every kind, as small as the linker makes them: speed is what finds things.
seeds_of_elf_discovery() {
    local source='int main(int c, char **v) { switch (c) { case 0: return 3; case 1: return v[0][1]; case 2: return
        main(c + 1, v); case 3: return c ^ v[0][0]; case 4: return 77; case 5: return 1; } return main(2, v); }
        void _start(void) { main(1, 0); __builtin_trap(); }'
    link() { echo "$source" | gcc -x c - -nostdlib -Wl,-z,noseparate-code -o "$seeds/$1" "${@:2}"; }
    link static -O2 -static -no-pie
    link static-pie -O2 -static-pie -s
    link dynamic -O2 -pie
    link unoptimised -O0 -static -no-pie
    link bare -Os -static -no-pie -s -fno-asynchronous-unwind-tables
}

# The target puts the magic numbers itself: a type and nothing behind them will do.
seeds_of_image_decoding() {
    local type
    for type in {0..99}; do
        printf '%b' "\\x$(printf %02x "$type")" >"$seeds/$type"
    done
}

main
