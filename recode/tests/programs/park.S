// The smallest thing that can stand in for the runtime: a resumed thread says that it is parked and waits.
    .globl tranship_resume
    .type tranship_resume, @function
tranship_resume:
    movl $PARKED, PHASE(%rdi)
1:  movl $34, %eax // pause(2)
    syscall
    jmp 1b
    .size tranship_resume, . - tranship_resume
// Memory of every kind that mapping a file has to get right: initialised, zero in the file's last page, zero behind it.
    .data
    .quad 0x1122334455667788
    .bss
    .skip 20000
