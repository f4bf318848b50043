//! What every object has besides its regions: the rare transfers in the region convention, and the way in
//! from C.

use crate::hostconv::{EXACT, HostConv, Signature, slot_type};
use crate::ir::{Ir, Memory, REGION_CALL_CONV, built};
use crate::layout::{self, RuntimeCall};
use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::llvm_sys::LLVMTailCallKind;
use inkwell::module::Linkage;
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, IntValue, PointerValue, StructValue};
use tranship_abi::block::UNWIND;
use tranship_isa::machine::Trap;

/// Name of the function that enters compiled code from C.
pub(super) const ENTER: &str = "tranship.enter";
/// Name of the region function that has the runtime interpret a call.
pub(super) const INTERPRET_CALL: &str = "tranship.interpret_call";

/// Define the stubs, in neutral form.
pub(super) fn define(ir: &Ir<'_>) {
    Stub::begin(ir, "tranship.unwind").unwind();
    Stub::begin(ir, "tranship.syscall").continue_unless_refused(RuntimeCall::SYSCALL);
    Stub::begin(ir, "tranship.interpret_one").continue_unless_refused(RuntimeCall::INTERPRET_ONE);
    Stub::begin(ir, INTERPRET_CALL).continue_unless_refused(RuntimeCall::INTERPRET_CALL);
    Stub::begin(ir, "tranship.safepoint").safepoint();
    Stub::begin(ir, "tranship.lookup").look_up_and_go();
    for trap in Trap::ALL {
        Stub::begin(ir, &format!("tranship.trap.{}", trap as u32)).raise(trap);
    }
}

/// A stub being built.
struct Stub<'a, 'c> {
    ir: &'a Ir<'c>,
    function: FunctionValue<'c>,
    thread: PointerValue<'c>,
}

impl<'a, 'c> Stub<'a, 'c> {
    fn begin(ir: &'a Ir<'c>, name: &str) -> Self {
        let function = ir.region(name);
        let thread = function.get_first_param().expect("a region has a parameter").into_pointer_value();
        ir.builder.position_at_end(ir.block(function, "entry"));
        Stub { ir, function, thread }
    }

    fn field(&self, offset: usize) -> PointerValue<'c> {
        self.ir.byte_offset(self.thread, self.ir.i64(offset as u64))
    }

    fn rip(&self) -> IntValue<'c> {
        self.ir.load(Memory::State, self.ir.context.i64_type(), self.field(layout::RIP)).into_int_value()
    }

    /// Call the runtime; with `exact`, all registers are in the thread block meanwhile.
    fn call(&self, call: RuntimeCall, more: Option<IntValue<'c>>, exact: bool) -> IntValue<'c> {
        let code =
            self.ir.load(Memory::State, self.ir.ptr_type(), self.field(call.offset())).into_pointer_value();
        let mut types = vec![self.ir.ptr_type().into()];
        let mut arguments: Vec<BasicMetadataValueEnum<'c>> = vec![self.thread.into()];
        if let Some(value) = more {
            types.push(value.get_type().into());
            arguments.push(value.into());
        }
        let kind = self.ir.context.i64_type().fn_type(&types, false);
        let call = self.ir.call_pointer(kind, 0, code, &arguments);
        if exact {
            let attribute = self.ir.string_attribute(EXACT);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        Ir::result(call).into_int_value()
    }

    /// Return, with everything in the thread block.
    fn unwind(&self) {
        let nothing = self.ir.intrinsic("llvm.donothing", &[], &[]);
        nothing.add_attribute(AttributeLoc::Function, self.ir.string_attribute(EXACT));
        self.ir.return_value(self.ir.i64(UNWIND));
    }

    fn continue_unless_refused(&self, call: RuntimeCall) {
        let refused = self.call(call, None, true);
        let refused = self.ir.compare(IntPredicate::NE, refused, self.ir.i64(0));
        let pc = built(self.ir.builder.build_select(refused, self.ir.i64(UNWIND), self.rip(), ""));
        self.ir.return_value(pc.into_int_value());
    }

    fn safepoint(&self) {
        let refused = self.call(RuntimeCall::SAFEPOINT, None, true);
        let refused = self.ir.compare(IntPredicate::NE, refused, self.ir.i64(0));
        let (leave, stay) = (self.ir.block(self.function, "leave"), self.ir.block(self.function, "stay"));
        built(self.ir.builder.build_conditional_branch(refused, leave, stay));
        self.ir.builder.position_at_end(leave);
        self.ir.return_value(self.ir.i64(UNWIND));
        self.ir.builder.position_at_end(stay);
        self.look_up_and_go();
    }

    fn look_up_and_go(&self) {
        let code = self.call(RuntimeCall::LOOKUP, Some(self.rip()), false);
        let nowhere = self.ir.compare(IntPredicate::EQ, code, self.ir.i64(0));
        let (leave, go) = (self.ir.block(self.function, "nowhere"), self.ir.block(self.function, "go"));
        built(self.ir.builder.build_conditional_branch(nowhere, leave, go));
        self.ir.builder.position_at_end(leave);
        self.unwind();
        self.ir.builder.position_at_end(go);
        let code = built(self.ir.builder.build_int_to_ptr(code, self.ir.ptr_type(), ""));
        let arguments = [self.thread.into()];
        let call = self.ir.call_pointer(self.ir.region_type(), REGION_CALL_CONV, code, &arguments);
        call.set_tail_call_kind(LLVMTailCallKind::LLVMTailCallKindMustTail);
        self.ir.return_value(Ir::result(call).into_int_value());
    }

    fn raise(&self, trap: Trap) {
        let number = self.ir.context.i32_type().const_int(trap as u64, false);
        self.call(RuntimeCall::TRAP, Some(number), true);
        self.ir.return_value(self.ir.i64(UNWIND));
    }
}

/// Define `extern "C" fn enter(thread, code)`: carried registers go from the thread block into the call and
/// back.
pub(super) fn define_enter(ir: &Ir<'_>, conv: &HostConv) {
    let signature = Signature::new(ir, conv);
    let kind = ir.context.void_type().fn_type(&[ir.ptr_type().into(), ir.ptr_type().into()], false);
    let function = ir.module.add_function(ENTER, kind, Some(Linkage::External));
    function.as_global_value().set_visibility(inkwell::GlobalVisibility::Hidden);
    ir.add_attribute(function, "nounwind");
    let parameter = |n| function.get_nth_param(n).expect("there are two").into_pointer_value();
    let (thread, code) = (parameter(0), parameter(1));
    let field = |offset: usize| ir.byte_offset(thread, ir.i64(offset as u64));

    ir.builder.position_at_end(ir.block(function, "entry"));
    let arguments: Vec<BasicMetadataValueEnum<'_>> = signature
        .positions
        .iter()
        .map(|p| {
            p.map_or(thread.into(), |s| ir.load(Memory::State, slot_type(ir, s), field(s.offset())).into())
        })
        .collect();
    let results: StructValue<'_> = Ir::result(signature.call(ir, code, &arguments)).into_struct_value();
    let pc = built(ir.builder.build_extract_value(results, signature.thread(), "")).into_int_value();
    let complete = ir.compare(IntPredicate::EQ, pc, ir.i64(UNWIND));
    let (save, done) = (ir.block(function, "save"), ir.block(function, "done"));
    built(ir.builder.build_conditional_branch(complete, done, save));
    ir.builder.position_at_end(save);
    for (n, position) in (0..).zip(&signature.positions) {
        let value = built(ir.builder.build_extract_value(results, n, ""));
        let offset = position.map_or(layout::RIP, |s| s.offset());
        ir.store(Memory::State, field(offset), value);
    }
    ir.branch(done);
    ir.builder.position_at_end(done);
    built(ir.builder.build_return(None));
}
