//! Links the blob: static, position-independent, no libc, all relocations relative, file offsets equal to
//! addresses (so that its image in memory is its file again).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_BLOB").is_none() {
        return;
    }
    let options = [
        "-pie",
        // Unwind tables of the core library name it; nothing here unwinds.
        "--defsym=rust_eh_personality=0",
        "--no-dynamic-linker",
        "--no-eh-frame-hdr",
        "--entry=_start",
        "--export-dynamic-symbol=tranship_resume",
        "--hash-style=gnu",
        "--build-id=sha1",
        "-zmax-page-size=4096",
        "-zseparate-loadable-segments",
        "-ztext",
        "-znow",
        "-znorelro",
        "-znognustack",
    ];
    for option in options {
        println!("cargo::rustc-link-arg-bins={option}");
    }
}
