//! The prelude: operations whose guest-exact meaning costs a different thing on each host. Lifted code calls
//! them by name (`tranship.float.add.f64`); here each gets a body, the host's where it has a better one, and is
//! inlined.

mod floats;
mod fused;
mod instructions;
mod integers;
mod strings;
mod wide;
mod x86_64;

use super::Host;
use crate::ir::{FAULTING, Ir};
use inkwell::GlobalVisibility;
use inkwell::module::Linkage;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue};
use tranship_abi::block::machine_id;

/// LLVM's number of the C convention, which operations have and transfers between regions do not.
const C_CALL_CONV: u32 = 0;

/// An operation of the prelude, being defined.
pub(super) struct Operation<'a, 'c> {
    ir: &'a Ir<'c>,
    function: FunctionValue<'c>,
    arguments: Vec<BasicValueEnum<'c>>,
}

impl<'a, 'c> Operation<'a, 'c> {
    fn result_type(&self) -> BasicTypeEnum<'c> {
        self.function.get_type().get_return_type().expect("every operation has a result")
    }

    /// Call LLVM's operation of that name, which has one type only.
    fn intrinsic(&self, name: &str, arguments: &[BasicValueEnum<'c>]) -> BasicValueEnum<'c> {
        let arguments: Vec<BasicMetadataValueEnum<'c>> = arguments.iter().map(|&a| a.into()).collect();
        Ir::result(self.ir.intrinsic(name, &[], &arguments))
    }

    /// Run `text`, the host's assembly, on `arguments`.
    fn assembly(
        &self,
        text: &str,
        constraints: &str,
        effects: bool,
        result: BasicTypeEnum<'c>,
        arguments: &[BasicValueEnum<'c>],
    ) -> BasicValueEnum<'c> {
        let types: Vec<_> = arguments.iter().map(|a| a.get_type().into()).collect();
        let kind = result.fn_type(&types, false);
        let (text, constraints) = (text.to_owned(), constraints.to_owned());
        let code = self.ir.context.create_inline_asm(kind, text, constraints, effects, false, None, false);
        let arguments: Vec<BasicMetadataValueEnum<'c>> = arguments.iter().map(|&a| a.into()).collect();
        Ir::result(self.ir.call_pointer(kind, C_CALL_CONV, code, &arguments))
    }

    fn metadata(&self, text: &str) -> BasicMetadataValueEnum<'c> {
        self.ir.context.metadata_string(text).into()
    }
}

/// Define what the module uses of the prelude, and what that uses. An unknown name is bitcode of another version.
pub(super) fn define(ir: &Ir<'_>, host: &Host) -> Result<(), super::CompileError> {
    instructions::prefer_the_hosts(ir, host);
    loop {
        let undefined: Vec<FunctionValue> = ir.module.get_functions().filter(|f| is_operation(*f)).collect();
        if undefined.is_empty() {
            return Ok(());
        }
        for function in undefined {
            define_one(ir, host, function)?;
        }
    }
}

/// What all operations' names begin with.
const PREFIX: &str = "tranship.";

/// Whether it is an operation without a body.
fn is_operation(function: FunctionValue<'_>) -> bool {
    let name = function.get_name().to_bytes();
    name.starts_with(PREFIX.as_bytes())
        && !name.starts_with(FAULTING.as_bytes())
        && function.count_basic_blocks() == 0
        && function.get_call_conventions() == C_CALL_CONV
}

fn define_one<'c>(ir: &Ir<'c>, host: &Host, function: FunctionValue<'c>) -> Result<(), super::CompileError> {
    let name = function.get_name().to_string_lossy().into_owned();
    ir.builder.position_at_end(ir.block(function, "entry"));
    function.set_linkage(Linkage::Internal);
    function.as_global_value().set_visibility(GlobalVisibility::Default);
    ir.add_attribute(function, "alwaysinline");
    let body = Operation { ir, function, arguments: function.get_params() };
    let words: Vec<&str> = name.trim_start_matches(PREFIX).split('.').collect();
    let result = define_for(host, &body, &words).ok_or(super::CompileError::UnknownOperation { name })?;
    ir.builder.position_at_end(ir.here());
    ir.return_value(result);
    Ok(())
}

/// The body of the operation named by `words`: what it returns.
fn define_for<'c>(host: &Host, op: &Operation<'_, 'c>, words: &[&str]) -> Option<BasicValueEnum<'c>> {
    if host.has("fma")
        && let ["float", name @ ("fma" | "fms" | "fnma" | "fnms"), kind] = words
        && let Some(result) = x86_64::multiply_add(op, name, kind)
    {
        return Some(result);
    }
    if wide::is_wide(op) && words[0] != "permute" {
        return wide::by_halves(op, words);
    }
    if let Some(result) = instructions::define(host, op, words) {
        return Some(result);
    }
    if host.machine == machine_id::X86_64
        && let Some(result) = x86_64::define(op, words)
    {
        return Some(result);
    }
    match words {
        ["float", rest @ ..] => floats::define(op, rest),
        ["pin", _] => Some(pin(host, op)),
        ["copy_forward", _] => Some(strings::copy_forward(op)),
        ["fill_forward", _] => Some(strings::fill_forward(op)),
        _ => integers::define(op, words),
    }
}

/// The argument, of which LLVM knows no more than that it comes from here.
fn pin<'c>(host: &Host, op: &Operation<'_, 'c>) -> BasicValueEnum<'c> {
    let kind = op.result_type();
    let constraints = match (kind, host.machine) {
        (BasicTypeEnum::VectorType(_), machine_id::X86_64) => "=x,0",
        (BasicTypeEnum::VectorType(_), _) => "=w,0",
        _ => "=r,0",
    };
    op.assembly("", constraints, true, kind, &op.arguments[..1])
}
