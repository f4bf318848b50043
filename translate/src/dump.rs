//! What a translation makes of a program on its way, as text for people: regions, lifted IR, what LLVM made of it for a
//! host, and the host's assembly.

use crate::compile::{CompileError, Host, Options, assembly_text, optimised_text};
use crate::elf::GuestElf;
use crate::ir::Ir;
use crate::lift;
use crate::region::{Discovery, Region};
use inkwell::context::Context;
use std::io::{self, Write};

/// A stage of translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Regions with their blocks.
    Cfg,
    /// Host-neutral LLVM IR.
    Lift,
    /// LLVM IR for the host, optimised.
    Opt,
    /// Assembly for the host.
    Asm,
}

/// Why there is no text.
#[derive(Debug)]
pub enum DumpError {
    /// It cannot be compiled.
    Compile(CompileError),
    /// It cannot be written.
    Write(io::Error),
}

impl std::fmt::Display for DumpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DumpError::Compile(error) => error.fmt(f),
            DumpError::Write(error) => write!(f, "writing the dump: {error}"),
        }
    }
}

impl std::error::Error for DumpError {}

/// The region that `name` means: its symbol, or its entry as `0x…`.
pub fn region<'a>(program: &'a Discovery, name: &str) -> Option<&'a Region> {
    let address = name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match address {
        Some(address) => program.region(address),
        None => program.regions.iter().find(|region| region.name.as_deref() == Some(name)),
    }
}

/// Write `regions` of `program`, which is what was found in `elf`, as they are at `stage` of a translation for `host`.
/// Each is taken by itself.
pub fn dump(
    stage: Stage,
    elf: &GuestElf,
    program: &Discovery,
    regions: &[&Region],
    host: &Host,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), DumpError> {
    for region in regions {
        let text = match stage {
            Stage::Cfg => Ok(region.to_string()),
            _ => with_lifted(elf, program, region, |ir| match stage {
                Stage::Opt => optimised_text(ir, host, options),
                Stage::Asm => assembly_text(ir, host, options),
                _ => Ok(ir.module.print_to_string().to_string()),
            }),
        };
        let text = text.map_err(DumpError::Compile)?;
        out.write_all(text.as_bytes()).map_err(DumpError::Write)?;
    }
    Ok(())
}

fn with_lifted<T>(
    elf: &GuestElf,
    program: &Discovery,
    region: &Region,
    then: impl FnOnce(&Ir<'_>) -> T,
) -> T {
    let context = Context::create();
    let ir = Ir::new(context.create_module(&lift::region_name(region.entry)));
    lift::lift_region(&ir, elf, program, region);
    then(&ir)
}
