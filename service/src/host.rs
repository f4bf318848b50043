//! What objects are made for.

use tranship_node::Cpu;
use tranship_translate::compile::Host;

/// The host that objects for such a CPU are made for; `None` if there is no code generator for it.
pub fn host(cpu: Cpu) -> Option<Host> {
    let level = match (cpu.isa.to_string().as_str(), cpu.is_v3) {
        ("x86_64", false) => Host::x86_64(),
        ("x86_64", true) => Host::x86_64_v3(),
        ("aarch64", _) => Host::aarch64(),
        _ => return None,
    };
    let level = if cpu.has_aes { level.with_aes() } else { level };
    Some(if cpu.has_sha { level.with_sha() } else { level })
}

/// The same for this machine: the oldest x86-64 one where that cannot be found out.
pub fn host_here() -> Host {
    Cpu::here().ok().and_then(host).unwrap_or_else(Host::x86_64)
}
