# Every target does its own set-up; `make help` lists them.

# Debian's toolchain, also where another one comes first in the caller's PATH.
export PATH := /usr/bin:/bin:/usr/sbin:/sbin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: setup blobs agents build test test-packages test-crossings test-containers test-suites demo demo-programs bench-translate bench-recode bench-quiesce bench-containers fmt lint clean help

setup: ## install missing Debian packages and fetch crates
	@setup/install

blobs: setup ## build the in-process runtime for every host (dist/runtime-*)
	@runtime/build-blobs --locked

agents: setup ## build the node agent and the OCI runtime for every machine (dist/node-*, dist/tranship-runc-*)
	@node/build-agents --locked

build: setup blobs agents ## build the command line (target/release/tranship)
	cargo build --release --workspace --bins

test: setup blobs agents ## lints, unit, differential and migration tests, fuzzing; ends with one line of totals
	@tests/run

test-packages: setup ## run two dozen Debian programs under the runtime for each host, those that take long too
	cargo test -q -p tranship-runtime --locked --features long --test runtime packages::

test-crossings: setup blobs agents ## redis, nginx, Python and threads cross 20 times, the servers under load, and twice to arm64, where sqlite3 runs, too
	cargo test -q -p tranship --locked --features long --test nodes servers::

test-containers: setup blobs agents ## servers in containers go to arm64 and back ten times under load, and through Docker and containerd, after a pre-copy, supplied with code; the arm64 machine dies
	cargo test -q -p tranship --locked --features long --test nodes -- --test-threads 1 --nocapture rounds:: engines:: precopy:: supplied_containers:: container_partitions::

test-suites: build ## compare other projects' test suites natively and translated; writes docs/suites.md
	target/release/tranship-suites --output docs/suites.md

demo: build ## redis moves from x86-64 to arm64 and back while 50 clients write to it; ends with a picture of that
	@cli/demo/run

demo-programs: build ## two Debian programs cross from x86-64 to arm64 and back in mid-run, without a container
	@cli/demo/programs

bench-translate: build ## compare translated programs with native and qemu-user; writes docs/bench-translate.md
	target/release/tranship-bench --output docs/bench-translate.md

bench-recode: setup blobs ## measure what recoding a checkpoint costs; writes docs/bench-recode.md
	cargo bench -q -p tranship-recode --bench cost -- --output docs/bench-recode.md

bench-quiesce: setup blobs agents ## measure what bringing translated programs to a stop takes; writes docs/bench-quiesce.md
	cargo bench -q -p tranship --bench quiesce -- --output docs/bench-quiesce.md

bench-containers: setup blobs agents ## measure what crossing costs a container; writes docs/bench-containers.md
	cargo bench -q -p tranship-oci --bench overhead -- --output docs/bench-containers.md

fmt: ## format all Rust sources
	cargo fmt --all

lint: setup ## clippy, warnings are errors
	cargo clippy --workspace --all-targets -- -D warnings

clean: ## remove everything that was built
	rm -rf target dist fuzz/target

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18
