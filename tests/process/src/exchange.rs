//! A [`Chamber`] in another process, for another host: states go in through a pipe and come out through another.

use crate::chamber::{Chamber, Ended};
use crate::guard::Fault;
use crate::map;
use std::io::{ErrorKind, Read, Result, Write};
use tranship_isa::x86_64::Cpu;

const CPU_BYTES: usize = size_of::<Cpu>();

/// Run states as they come from `input`, with guest memory `sandbox` (address and bytes), until there are no more.
pub fn serve(
    object: &[u8],
    sandbox: (u64, usize),
    mut input: impl Read,
    mut output: impl Write,
) -> Result<()> {
    let mut chamber = Chamber::new(object);
    let at = map(sandbox.0, sandbox.1 as u64, false);
    // SAFETY: mapped for good; compiled code uses it only while `run` has it.
    let memory = || unsafe { std::slice::from_raw_parts_mut(at as *mut u8, sandbox.1) };
    let mut head = [0; 16];
    loop {
        match input.read_exact(&mut head) {
            Err(end) if end.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        let [linked, len] = [0, 8].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().unwrap()));
        let mut code = vec![0; len as usize];
        input.read_exact(&mut code)?;
        let mut cpu = read_cpu(&mut input)?;
        input.read_exact(memory())?;
        let ended = chamber.run(linked, &code, &mut cpu);
        output.write_all(&encode(ended))?;
        output.write_all(cpu_bytes(&cpu))?;
        output.write_all(memory())?;
        output.flush()?;
    }
}

/// Have the process at the other ends of the pipes run the entry at `linked`, whose code is `code`, on
/// `cpu` and `memory`.
pub fn request(
    linked: u64,
    code: &[u8],
    cpu: &mut Cpu,
    memory: &mut [u8],
    mut to: impl Write,
    mut from: impl Read,
) -> Result<Ended> {
    let mut message = linked.to_le_bytes().to_vec();
    message.extend((code.len() as u64).to_le_bytes());
    message.extend(code);
    message.extend(cpu_bytes(cpu));
    message.extend(&*memory);
    to.write_all(&message)?;
    to.flush()?;
    let mut ended = [0; ENDED_BYTES];
    from.read_exact(&mut ended)?;
    *cpu = read_cpu(&mut from)?;
    from.read_exact(memory)?;
    Ok(decode(ended))
}

/// The register file's layout is the same on all hosts.
fn cpu_bytes(cpu: &Cpu) -> &[u8] {
    // SAFETY: plain data without padding that matters, as it lies in checkpoints.
    unsafe { std::slice::from_raw_parts((&raw const *cpu).cast(), CPU_BYTES) }
}

fn read_cpu(input: &mut impl Read) -> Result<Cpu> {
    let mut cpu = Cpu::at_exec(0, 0);
    // SAFETY: plain data, for which any bits are valid.
    input.read_exact(unsafe { std::slice::from_raw_parts_mut((&raw mut cpu).cast(), CPU_BYTES) })?;
    Ok(cpu)
}

/// Kind, trap or signal, `si_code`, nothing, address.
const ENDED_BYTES: usize = 24;

fn encode(ended: Ended) -> [u8; ENDED_BYTES] {
    let (kind, number, code, address) = match ended {
        Ended::Left => (0, 0, 0, 0),
        Ended::Trapped(number) => (1, number, 0, 0),
        Ended::Faulted(fault) => (2, fault.signal as u32, fault.code as u32, fault.address),
    };
    let mut bytes = [0; ENDED_BYTES];
    for (at, word) in [kind, number, code, 0, address as u32, (address >> 32) as u32].into_iter().enumerate()
    {
        bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn decode(bytes: [u8; ENDED_BYTES]) -> Ended {
    let word = |at: usize| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap());
    match word(0) {
        0 => Ended::Left,
        1 => Ended::Trapped(word(1)),
        _ => Ended::Faulted(Fault {
            signal: word(1) as i32,
            code: word(2) as i32,
            address: u64::from(word(4)) | u64::from(word(5)) << 32,
        }),
    }
}
