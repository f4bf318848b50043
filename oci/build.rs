//! Generates the message types of CRIU's RPC from `rpc.proto`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=rpc.proto");
    protobuf_codegen::Codegen::new().pure().include(".").input("rpc.proto").cargo_out_dir("rpc").run()?;
    Ok(())
}
