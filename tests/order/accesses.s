# A function for each class of memory access. What they become is in accesses.txt.
.globl _start
_start: ud2
.macro function name
.globl \name
.type \name, @function
\name:
.endm
.macro end name
ret
.size \name, . - \name
.endm

function frame_push_pop
    push %rbx
    mov %rdi, %rbx
    pop %rbx
end frame_push_pop
function frame_load_store
    mov %rdi, -8(%rsp)
    mov -16(%rsp), %rax
end frame_load_store
function shared_frame_load_store
    lea -64(%rsp), %rcx
    mov %rdi, -8(%rsp)
    mov -16(%rsp), %rax
end shared_frame_load_store
function heap_load_8
    movzbl (%rdi), %eax
end heap_load_8
function heap_load_16
    movzwl (%rdi), %eax
end heap_load_16
function heap_load_32
    mov (%rdi), %eax
end heap_load_32
function heap_load_64
    mov (%rdi), %rax
end heap_load_64
function heap_load_folded
    add 8(%rdi,%rsi,8), %rax
end heap_load_folded
function heap_load_unused
    mov (%rdi), %rax
    mov $1, %eax
end heap_load_unused
function heap_load_twice
    mov (%rdi), %rax
    mov (%rdi), %rcx
end heap_load_twice
function heap_store_8
    mov %sil, (%rdi)
end heap_store_8
function heap_store_16
    mov %si, (%rdi)
end heap_store_16
function heap_store_32
    mov %esi, (%rdi)
end heap_store_32
function heap_store_64
    mov %rsi, (%rdi)
end heap_store_64
function heap_store_twice
    mov %rsi, (%rdi)
    mov %rdx, (%rdi)
end heap_store_twice
function heap_store_load
    mov %rsi, (%rdi)
    mov (%rdi), %rax
end heap_store_load
function vector_load
    movdqu (%rdi), %xmm0
end vector_load
function vector_store
    movdqu %xmm0, (%rdi)
end vector_store
function scalar_float_load
    movsd (%rdi), %xmm0
end scalar_float_load
function rmw
    addl %esi, (%rdi)
end rmw
function locked_rmw
    lock addl %esi, (%rdi)
end locked_rmw
function exchange
    xchg %rsi, (%rdi)
end exchange
function compare_exchange
    lock cmpxchg %rsi, (%rdi)
end compare_exchange
function fence
    mov %rsi, (%rdi)
    mfence
    mov (%rdx), %rax
end fence
