//! The prelude: operations whose guest-exact meaning costs a different thing on each host. Lifted code calls
//! them by name (`tranship.float.add.f64`); here each gets a body, the host's where it has a better one, and is
//! inlined.

mod floats;
mod integers;
mod strings;
mod x86_64;

use super::Host;
use crate::ir::Ir;
use inkwell::GlobalVisibility;
use inkwell::module::Linkage;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue};
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

    fn metadata(&self, text: &str) -> inkwell::values::BasicMetadataValueEnum<'c> {
        self.ir.context.metadata_string(text).into()
    }
}

/// Define what the module uses of the prelude. An unknown name is bitcode of another version.
pub(super) fn define(ir: &Ir<'_>, host: &Host) -> Result<(), super::CompileError> {
    for function in ir.module.get_functions() {
        let name = function.get_name().to_string_lossy().into_owned();
        let Some(operation) = name.strip_prefix("tranship.") else { continue };
        if function.count_basic_blocks() > 0 || function.get_call_conventions() != C_CALL_CONV {
            continue;
        }
        ir.builder.position_at_end(ir.block(function, "entry"));
        function.set_linkage(Linkage::Internal);
        function.as_global_value().set_visibility(GlobalVisibility::Default);
        ir.add_attribute(function, "alwaysinline");
        let arguments = function.get_params();
        let body = Operation { ir, function, arguments };
        let words: Vec<&str> = operation.split('.').collect();
        let result = define_for(host, &body, &words).ok_or(super::CompileError::UnknownOperation { name })?;
        ir.builder.position_at_end(ir.here());
        ir.return_value(result);
    }
    Ok(())
}

/// The body of the operation named by `words`: what it returns.
fn define_for<'c>(host: &Host, op: &Operation<'_, 'c>, words: &[&str]) -> Option<BasicValueEnum<'c>> {
    if host.machine == machine_id::X86_64
        && let Some(result) = x86_64::define(op, words)
    {
        return Some(result);
    }
    match words {
        ["float", rest @ ..] => floats::define(op, rest),
        ["copy_forward", _] => Some(strings::copy_forward(op)),
        ["fill_forward", _] => Some(strings::fill_forward(op)),
        _ => integers::define(op, words),
    }
}
