//! Host-neutral bitcode to a translated object for one host: registers into the host's convention, LLVM's
//! optimisations, machine code, and one ELF shared object that needs no relocation.

mod fault_edge;
mod link;
mod object;
mod order;
mod partial_load;
mod prelude;
mod scalar_lane;
mod stubs;

use crate::bitcode::Bitcode;
use crate::hostconv::{self, HostConv};
use crate::ir::Ir;
use crate::lift::{self, ENTRIES, FAULTS_EXACT};
use crate::region::Faults;
use crate::{Progress, parallel};
use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use link::Shape;
use std::sync::Once;
use tranship_abi::block::machine_id;

/// A machine that objects are made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// ELF machine number.
    pub machine: u32,
    /// LLVM's name of the oldest CPU that must run the object.
    pub cpu: String,
    /// More features than the CPU has by its name, as LLVM writes them (`+sha,+bmi2`).
    pub features: String,
}

impl Host {
    /// x86-64 machines since about 2009 (level 2: up to SSE4.2 and POPCNT), tuned for no one of them: LLVM takes
    /// the name of the level for a machine of that time, whose fast instructions others have slow.
    pub fn x86_64() -> Host {
        let features = "+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2".into();
        Host { machine: machine_id::X86_64, cpu: "x86-64".into(), features }
    }

    /// x86-64 machines since about 2015 (level 3: with AVX2, FMA and BMI).
    pub fn x86_64_v3() -> Host {
        Host::x86_64().with("+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe")
    }

    /// The same with instructions for rounds of AES, and for carry-less products.
    #[must_use]
    pub fn with_aes(self) -> Host {
        let more = if self.machine == machine_id::X86_64 { "+aes,+pclmul" } else { "+aes" };
        self.with(more)
    }

    /// The same with x86-64's instructions for rounds of SHA-1 and SHA-256.
    #[must_use]
    pub fn with_sha(self) -> Host {
        self.with("+sha")
    }

    fn with(self, more: &str) -> Host {
        let separator = if self.features.is_empty() { "" } else { "," };
        Host { features: format!("{}{separator}{more}", self.features), ..self }
    }

    /// Whether it has a feature, by LLVM's name.
    pub(crate) fn has(&self, feature: &str) -> bool {
        self.features.split(',').any(|has| has.strip_prefix('+') == Some(feature))
    }

    /// Any 64-bit ARM machine.
    pub fn aarch64() -> Host {
        Host { machine: machine_id::AARCH64, cpu: "generic".into(), features: String::new() }
    }

    fn triple(&self) -> Option<TargetTriple> {
        match self.machine {
            machine_id::X86_64 => Some(TargetTriple::create("x86_64-unknown-linux-gnu")),
            machine_id::AARCH64 => Some(TargetTriple::create("aarch64-unknown-linux-gnu")),
            _ => None,
        }
    }

    /// LLVM's code generator for it.
    fn target_machine(&self) -> Result<TargetMachine, CompileError> {
        static INITIALIZED: Once = Once::new();
        INITIALIZED.call_once(|| {
            Target::initialize_x86(&InitializationConfig::default());
            keep_conditional_moves();
            Target::initialize_aarch64(&InitializationConfig::default());
        });
        let unsupported = || CompileError::UnsupportedHost { machine: self.machine };
        let triple = self.triple().ok_or_else(unsupported)?;
        let target = Target::from_triple(&triple).map_err(|_| unsupported())?;
        let level = OptimizationLevel::Default;
        target
            .create_target_machine(
                &triple,
                &self.cpu,
                &self.features,
                level,
                RelocMode::PIC,
                CodeModel::Small,
            )
            .ok_or_else(unsupported)
    }
}

/// Have LLVM leave conditional moves from memory as they are. It would make them branches around the load, `volatile` or
/// not, and with it around its fault.
fn keep_conditional_moves() {
    let arguments = [c"tranship", c"-x86-cmov-converter-force-mem-operand=false"].map(std::ffi::CStr::as_ptr);
    // SAFETY: the strings live through the call; LLVM has the option (`lib/Target/X86/X86CmovConversion.cpp`).
    unsafe { LLVMParseCommandLineOptions(2, arguments.as_ptr(), std::ptr::null()) };
}

/// How to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// LLVM's passes, as `opt -passes=` takes them.
    pub passes: String,
    /// Threads to use.
    pub jobs: usize,
    /// What to lift a program for; what is lifted already keeps to what it was lifted for.
    pub faults: Faults,
}

/// What pays for itself on lifted code; measured, see ARCHITECTURE.md. The guest's compiler has already chosen between
/// branches and conditional moves, so no branch is made a select. `bdce` finds the parts of registers that narrow
/// writes keep and nobody reads.
const PASSES: &str = "always-inline,function(sroa,early-cse<memssa>,simplifycfg<no-speculate-blocks>,\
    instcombine<no-verify-fixpoint>,correlated-propagation,simplifycfg<no-speculate-blocks>,gvn,loop-mssa(licm),dse,\
    bdce,instcombine<no-verify-fixpoint>,simplifycfg<no-speculate-blocks>)";

impl Default for Options {
    fn default() -> Options {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Options { passes: PASSES.into(), jobs, faults: Faults::default() }
    }
}

/// Why there is no object.
#[derive(Debug)]
pub enum CompileError {
    /// No code generator or convention for this host.
    UnsupportedHost {
        /// ELF machine number.
        machine: u32,
    },
    /// LLVM refuses a part of the bitcode.
    Bitcode {
        /// LLVM's words.
        message: String,
    },
    /// The bitcode uses an operation that this version does not have.
    UnknownOperation {
        /// Its name.
        name: String,
    },
    /// LLVM's passes or code generator failed.
    CodeGeneration {
        /// LLVM's words.
        message: String,
    },
    /// The linker could not be run, or failed.
    Link {
        /// What it or the system said.
        message: String,
    },
    /// A temporary file could not be written or read.
    Io(std::io::Error),
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::UnsupportedHost { machine } => {
                write!(
                    f,
                    "no code generator for hosts of ELF machine {machine}; x86-64 is 62, aarch64 is 183"
                )
            }
            CompileError::Bitcode { message } => {
                write!(f, "LLVM refuses the bitcode ({message}); lift again")
            }
            CompileError::UnknownOperation { name } => {
                write!(f, "the bitcode uses {name}, which this version does not have; lift again")
            }
            CompileError::CodeGeneration { message } => write!(f, "LLVM failed: {message}"),
            CompileError::Link { message } => write!(f, "ld.lld failed: {message}"),
            CompileError::Io(error) => write!(f, "temporary file: {error}"),
        }
    }
}

impl std::error::Error for CompileError {}

impl From<std::io::Error> for CompileError {
    fn from(error: std::io::Error) -> CompileError {
        CompileError::Io(error)
    }
}

/// A guest address at which the object can be entered, and the function to enter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    guest: u64,
    symbol: String,
}

/// Compile `bitcode` into a translated object for `host`: the bytes of an ELF shared object.
pub fn compile(
    bitcode: &Bitcode,
    host: &Host,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Vec<u8>, CompileError> {
    let conv = convention(host)?;
    let total = bitcode.parts.len();
    let parts = parallel::map(
        &bitcode.parts,
        options.jobs,
        |done| progress.advance("compile", done, total),
        |part| compile_part(part, host, &conv, options),
    );
    let mut entries = Vec::new();
    let mut objects = Vec::new();
    let mut faults = Faults::Exact;
    for part in parts {
        let (object, found, exact) = part?;
        objects.push(object);
        entries.extend(found);
        if !exact {
            faults = Faults::Fatal;
        }
    }
    entries.sort();
    entries.dedup_by_key(|e| e.guest);
    objects.insert(0, compile_support(bitcode, &entries, faults, host, &conv, options)?);
    progress.advance("link", 0, 1);
    let shape = if bitcode.sources.is_empty() { Shape::Mapped } else { Shape::Copied };
    link::link(&objects, shape)
}

fn compile_part(
    part: &[u8],
    host: &Host,
    conv: &HostConv,
    options: &Options,
) -> Result<(Vec<u8>, Vec<Entry>, bool), CompileError> {
    let context = Context::create();
    let ir = Ir::new(parse(&context, part)?);
    let (entries, exact) = (entries_of(&ir.module), is_exact(&ir.module));
    let machine = prepare(&ir, host, conv, options)?;
    Ok((emit(&machine, &ir.module, FileType::Object)?, entries, exact))
}

/// Whether all that the module defines was lifted with [`Faults::Exact`].
fn is_exact(module: &Module<'_>) -> bool {
    module
        .get_functions()
        .filter(|f| f.count_basic_blocks() > 0)
        .all(|f| f.get_string_attribute(AttributeLoc::Function, FAULTS_EXACT).is_some())
}

/// What the code generator gets of a module in neutral form, as text.
pub(crate) fn optimised_text(ir: &Ir<'_>, host: &Host, options: &Options) -> Result<String, CompileError> {
    prepare(ir, host, &convention(host)?, options)?;
    Ok(ir.module.print_to_string().to_string())
}

/// The host's assembly for a module in neutral form.
pub(crate) fn assembly_text(ir: &Ir<'_>, host: &Host, options: &Options) -> Result<String, CompileError> {
    let machine = prepare(ir, host, &convention(host)?, options)?;
    Ok(String::from_utf8_lossy(&emit(&machine, &ir.module, FileType::Assembly)?).into_owned())
}

fn convention(host: &Host) -> Result<HostConv, CompileError> {
    HostConv::of(host.machine).ok_or(CompileError::UnsupportedHost { machine: host.machine })
}

/// Stubs, header and entry table.
fn compile_support(
    bitcode: &Bitcode,
    entries: &[Entry],
    faults: Faults,
    host: &Host,
    conv: &HostConv,
    options: &Options,
) -> Result<Vec<u8>, CompileError> {
    let context = Context::create();
    let ir = Ir::new(context.create_module("support"));
    stubs::define(&ir);
    stubs::define_enter(&ir, conv);
    object::define_header(&ir, bitcode, entries, faults, host);
    let machine = prepare(&ir, host, conv, options)?;
    emit(&machine, &ir.module, FileType::Object)
}

fn parse<'c>(context: &'c Context, part: &[u8]) -> Result<Module<'c>, CompileError> {
    let buffer = MemoryBuffer::create_from_memory_range(part, "part");
    Module::parse_bitcode_from_buffer(&buffer, context)
        .map_err(|message| CompileError::Bitcode { message: message.to_string() })
}

/// Where the module's functions can be entered.
fn entries_of(module: &Module<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for function in module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
        let symbol = function.get_name().to_string_lossy().into_owned();
        match lift::parse_region_name(&symbol) {
            Some((guest, false)) => entries.push(Entry { guest, symbol }),
            Some((_, true)) => {
                let list = function.get_string_attribute(AttributeLoc::Function, ENTRIES);
                let list =
                    list.map(|a| a.get_string_value().to_string_lossy().into_owned()).unwrap_or_default();
                let addresses = list.split(',').filter_map(|a| u64::from_str_radix(a, 16).ok());
                entries.extend(addresses.map(|guest| Entry { guest, symbol: symbol.clone() }));
            }
            None => {}
        }
    }
    entries
}

/// From neutral form to optimised IR for the host.
fn prepare(
    ir: &Ir<'_>,
    host: &Host,
    conv: &HostConv,
    options: &Options,
) -> Result<TargetMachine, CompileError> {
    let machine = host.target_machine()?;
    ir.module.set_triple(&machine.get_triple());
    ir.module.set_data_layout(&machine.get_target_data().get_data_layout());
    hostconv::rewrite(ir, conv);
    prelude::define(ir, host)?;
    if cfg!(debug_assertions) {
        ir.module.verify().map_err(|m| CompileError::CodeGeneration { message: m.to_string() })?;
    }
    ir.module
        .run_passes(&options.passes, &machine, PassBuilderOptions::create())
        .map_err(|m| CompileError::CodeGeneration { message: m.to_string() })?;
    match host.machine {
        machine_id::X86_64 => {
            partial_load::hide(ir);
            scalar_lane::take_from_vector(ir);
        }
        _ => order::enforce_on_aarch64(ir),
    }
    fault_edge::bind(ir, host)?;
    Ok(machine)
}

fn emit(machine: &TargetMachine, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>, CompileError> {
    let buffer = machine
        .write_to_memory_buffer(module, kind)
        .map_err(|m| CompileError::CodeGeneration { message: m.to_string() })?;
    Ok(buffer.as_slice().to_vec())
}
