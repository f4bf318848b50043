//! For exact faults: loads and stores that a fault leads away from. LLVM's own have one way on only, so lifting calls
//! functions that nobody defines ([`FAULTING`]) and branches on whether that has faulted. Here, last of all, the three become
//! the terminator `callbr`: the host's instruction as assembly, which also writes down where it is and where its fault goes.
//! The runtime's handler looks there ([`tranship_abi::block::FaultEdge`]); until then it costs nothing.

use super::{CompileError, Host, object};
use crate::ir::{FAULTING, Ir};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::core::LLVMBuildCallBr;
use inkwell::types::{AnyType, AsTypeRef, BasicTypeEnum, FunctionType};
use inkwell::values::{
    AsValueRef, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue,
};
use tranship_abi::block::machine_id;
use tranship_isa::machine::Width;

/// Bind all edges of the module, which is as it goes to the code generator.
pub(super) fn bind(ir: &Ir<'_>, host: &Host) -> Result<(), CompileError> {
    let blocks: Vec<_> = ir.module.get_functions().flat_map(|function| function.get_basic_blocks()).collect();
    for edge in blocks.into_iter().filter_map(Edge::at_end_of) {
        edge.bind(ir, host)?;
    }
    for function in ir.module.get_functions().filter(|function| faulting_name(*function).is_some()) {
        if function.as_global_value().as_pointer_value().get_first_use().is_some() {
            return Err(lost(&function.get_name().to_string_lossy()));
        }
        // SAFETY: nothing refers to it any more.
        unsafe { function.delete() };
    }
    Ok(())
}

fn lost(what: &str) -> CompileError {
    CompileError::CodeGeneration { message: format!("{what} is without its fault's way") }
}

/// What is called, if it is one of ours, without [`FAULTING`].
fn faulting_name(function: FunctionValue<'_>) -> Option<String> {
    function.get_name().to_string_lossy().strip_prefix(FAULTING).map(str::to_owned)
}

fn faulting_call(instruction: InstructionValue<'_>) -> Option<String> {
    let call = CallSiteValue::try_from(instruction).ok()?;
    call.get_called_fn_value().and_then(faulting_name)
}

/// A branch on whether the access before it has faulted.
struct Edge<'c> {
    question: InstructionValue<'c>,
    branch: InstructionValue<'c>,
    landing: BasicBlock<'c>,
    on: BasicBlock<'c>,
}

impl<'c> Edge<'c> {
    fn at_end_of(block: BasicBlock<'c>) -> Option<Edge<'c>> {
        let branch = block.get_terminator().filter(|end| end.get_num_operands() == 3)?;
        let BasicValueEnum::IntValue(condition) = branch.get_operand(0)?.value()? else { return None };
        let question = condition.as_instruction().filter(|i| i.get_opcode() == InstructionOpcode::Call)?;
        // The way for a false condition is the first.
        let [on, landing] = [1, 2].map(|n| branch.get_operand(n).and_then(|operand| operand.block()));
        (faulting_call(question).as_deref() == Some("outcome")).then_some(Edge {
            question,
            branch,
            landing: landing?,
            on: on?,
        })
    }

    /// Make the access, the question and the branch one.
    fn bind(&self, ir: &Ir<'c>, host: &Host) -> Result<(), CompileError> {
        let before = std::iter::successors(Some(self.question), |i| i.get_previous_instruction());
        let found = before.skip(1).find_map(|i| Some((i, faulting_call(i)?)));
        let (access, template) = found
            .and_then(|(i, name)| Some((i, Template::of(host, &name)?)))
            .ok_or_else(|| lost("a fault"))?;
        let call = CallSiteValue::try_from(access).map_err(|()| lost("a fault"))?;
        let function = call.get_called_fn_value().ok_or_else(|| lost("a fault"))?;
        ir.builder.position_before(&self.branch);
        let bound = self.emit(ir, &template, function.get_type(), access);
        let loaded = bound.try_as_basic_value().basic();
        if let Some(value) = loaded.and_then(|value| value.as_instruction_value()) {
            access.replace_all_uses_with(&value);
        }
        for done in [self.branch, self.question, access] {
            done.erase_from_basic_block();
        }
        Ok(())
    }

    /// The terminator, with the operands of `access`.
    fn emit(
        &self,
        ir: &Ir<'c>,
        template: &Template,
        kind: FunctionType<'c>,
        access: InstructionValue<'c>,
    ) -> CallSiteValue<'c> {
        let code = ir.context.create_inline_asm(
            kind,
            template.text(),
            template.constraints(),
            true,
            false,
            None,
            false,
        );
        let operands = (0..kind.count_param_types()).filter_map(|n| access.get_operand(n)?.value());
        let mut operands: Vec<_> = operands.map(|operand| operand.as_value_ref()).collect();
        let mut landing = self.landing.as_mut_ptr();
        // SAFETY: the builder is positioned, operands and assembly are of this type, and both ways are the function's.
        let bound = unsafe {
            CallSiteValue::new(LLVMBuildCallBr(
                ir.builder.as_mut_ptr(),
                kind.as_type_ref(),
                code.as_value_ref(),
                self.on.as_mut_ptr(),
                &raw mut landing,
                1,
                operands.as_mut_ptr(),
                operands.len() as u32,
                std::ptr::null_mut(),
                0,
                c"".as_ptr(),
            ))
        };
        ir.keeps_order_only(bound);
        let element = Attribute::get_named_enum_kind_id("elementtype");
        let element = ir.context.create_type_attribute(element, template.in_memory(ir).as_any_type_enum());
        bound.add_attribute(AttributeLoc::Param(0), element);
        bound
    }
}

/// The host's assembly for an access.
struct Template {
    machine: u32,
    has_avx: bool,
    loads: bool,
    bits: u32,
}

impl Template {
    /// For `load.BITS` and `store.BITS`.
    fn of(host: &Host, name: &str) -> Option<Template> {
        let (direction, bits) = name.split_once('.')?;
        let (machine, has_avx) = (host.machine, host.has("avx"));
        Some(Template { machine, has_avx, loads: direction == "load", bits: bits.parse().ok()? })
    }

    /// What is accessed.
    fn in_memory<'c>(&self, ir: &Ir<'c>) -> BasicTypeEnum<'c> {
        match self.bits {
            8 => ir.int_type(Width::W8).into(),
            16 => ir.int_type(Width::W16).into(),
            32 => ir.int_type(Width::W32).into(),
            64 => ir.int_type(Width::W64).into(),
            bits => ir.vec_type(Width::W64, bits).into(),
        }
    }

    /// The operands in LLVM's notation: what is loaded, the address, what is stored, the landing. On x86-64 the address is
    /// whatever addresses memory, and a store's value may be a constant; on arm64 both are in registers.
    fn constraints(&self) -> String {
        let (memory, register) = match (self.machine, self.bits) {
            (machine_id::X86_64, 128..) => ("*m", "x"),
            (machine_id::X86_64, _) if self.loads => ("*m", "r"),
            (machine_id::X86_64, 8) => ("*m", "qi"),
            (machine_id::X86_64, 64) => ("*m", "re"),
            (machine_id::X86_64, _) => ("*m", "ri"),
            (_, 128..) => ("*Q", "w"),
            _ => ("*Q", "r"),
        };
        if self.loads { format!("={register},{memory},!i") } else { format!("{memory},{register},!i") }
    }

    /// The access, with what [`super::order`] has around others on arm64, and its fault edge.
    fn text(&self) -> String {
        let (register, memory) = if self.loads { (0, 1) } else { (1, 0) };
        let (name, part) = self.instruction();
        let (register, memory) = (format!("${{{register}:{part}}}"), format!("${memory}"));
        let operands = match (self.machine, self.loads) {
            (machine_id::X86_64, true) => format!("{memory}, {register}"),
            _ => format!("{register}, {memory}"),
        };
        let (before, behind) = match (self.machine, self.loads) {
            (machine_id::X86_64, _) => ("", ""),
            (_, true) => ("", "\n\tdmb ishld"),
            (_, false) => ("dmb ishst\n", ""),
        };
        let section = object::FAULT_EDGES;
        format!(
            "{before}1:\n\t{name} {operands}{behind}\n\t.pushsection {section},\"a\",@progbits\n\
             \t.long 1b-., ${{2:l}}-.\n\t.popsection"
        )
    }

    /// The host's mnemonic, and how LLVM is told which part of the register it has.
    fn instruction(&self) -> (&'static str, char) {
        match (self.machine, self.bits, self.loads) {
            (machine_id::X86_64, 8, true) => ("movzbl", 'k'),
            (machine_id::X86_64, 8, false) => ("movb", 'b'),
            (machine_id::X86_64, 16, true) => ("movzwl", 'k'),
            (machine_id::X86_64, 16, false) => ("movw", 'w'),
            (machine_id::X86_64, 32, _) => ("movl", 'k'),
            (machine_id::X86_64, 64, _) => ("movq", 'q'),
            (machine_id::X86_64, ..) if self.has_avx => ("vmovups", 'x'),
            (machine_id::X86_64, ..) => ("movups", 'x'),
            (_, 8, true) => ("ldrb", 'w'),
            (_, 8, false) => ("strb", 'w'),
            (_, 16, true) => ("ldrh", 'w'),
            (_, 16, false) => ("strh", 'w'),
            (_, 32, true) => ("ldr", 'w'),
            (_, 32, false) => ("str", 'w'),
            (_, 64, true) => ("ldr", 'x'),
            (_, 64, false) => ("str", 'x'),
            (.., true) => ("ldr", 'q'),
            (.., false) => ("str", 'q'),
        }
    }
}
