// A small vDSO to put threads into. The first instruction of each function is one byte long.
    .hidden __ehdr_start
    .globl __vdso_time, __vdso_getcpu, __vdso_gettimeofday, __vdso_futex_robust_list64_try_unlock

// Stores the first word of the page in front of the vDSO, which is the kernel's data, and returns it.
__vdso_time:
    nop
    movq __ehdr_start - 4096(%rip), %rax
    movq %rax, (%rdi)
    ret

// Makes its system call, behind the end of what stands in for it abroad.
__vdso_getcpu:
    nop
    movl $309, %eax
    nop
    nop
    nop
    syscall
    ret

// Does not end.
__vdso_gettimeofday:
    nop
1:  jmp 1b

// Reads nothing of the kernel's.
__vdso_futex_robust_list64_try_unlock:
    nop
    movq $0, (%rdi)
    ret
